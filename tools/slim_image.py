"""slim_image.py — a folder of installed packages in, the same without what `beamwood serve` never loads, out.

    python3 tools/slim_image.py /opt/beamwood

Of scipy only the sparse matrices are left, and no package keeps its tests, headers, stubs and symbols. At the end what
is left trains a model and answers from it in an interpreter of its own: a scipy that needs more fails here, and not in
service.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

KEPT_OF_SCIPY = {"_lib", "sparse", "__pycache__"}
NEVER_LOADED = ("numpy/_core/include", "numpy/_core/lib", "numpy/random/lib", "numpy/random/_examples", "scipy.libs")
NEVER_LOADED_OF_SPARSE = ("scipy/sparse/linalg", "scipy/sparse/csgraph")  # they would bring in linear algebra, 40 MB
FOLDERS, SUFFIXES = ("tests", "test"), (".pyi", ".a", ".pxd", ".pyx", ".h")
CHECK = """
import beamwood, beamwood.cli.app, beamwood.server.process.worker, beamwood.server.process.supervisor
texts, labels = ["red socks", "blue hat"] * 9, [["socks"], ["hats"]] * 9
model = beamwood.train_text(texts, labels, progress=False).calibrate(texts * 9, labels * 9)
assert model.search("red socks")[0].key == "socks" and model.search_many(texts) and model.explain("red", "socks")
assert model.search("hat", filter=model.filter(deny=["hats"]))[0].key == "socks" and model.evaluate(texts, labels)
model.save("/tmp/slim.bw")
assert beamwood.load("/tmp/slim.bw", verify=True).search("hat")[0].key == "hats"
"""


def drop(path: Path) -> None:
    """Removes a file or a folder; one that is not there is no error."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def slim(home: Path) -> None:
    """Removes what is never loaded, and the symbols of what is."""
    for part in (home / "scipy").iterdir():
        if part.is_dir() and part.name not in KEPT_OF_SCIPY:
            drop(part)
    for name in (*NEVER_LOADED, *NEVER_LOADED_OF_SPARSE, "bin"):
        drop(home / name)
    for path in sorted(home.rglob("*"), reverse=True):
        if (path.is_dir() and path.name in FOLDERS) or path.suffix in SUFFIXES:
            drop(path)
    for library in [*home.rglob("*.so"), *home.rglob("*.so.*")]:
        if ".libs" not in str(library):  # those of wheels were renamed and patched: strip may spoil them
            subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)


def megabytes(home: Path) -> float:
    """What the files take."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    """Removes, checks, says what is left."""
    home = Path(sys.argv[1])
    before = megabytes(home)
    slim(home)
    subprocess.run([sys.executable, "-c", CHECK], check=True, env={"PYTHONPATH": str(home), "PATH": "/usr/bin:/bin"})
    print(f"{home}: {before:.0f} MB, {megabytes(home):.0f} MB are left")


if __name__ == "__main__":
    main()
