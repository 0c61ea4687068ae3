"""install.py — names of rivals in, an environment for each out: build/rivals/NAME with a `ready.json` that starts it.

Rivals pin older packages than we do, so each gets a virtual environment of its own, made from PyPI on first use.
`beamwood bench PLAN --rivals build/rivals` and the scripts of bench/ talk to what stands here; nothing in the wheel
installs anything.

    python bench/rivals/install.py libpecos napkinxc omikuji
"""

from __future__ import annotations

import argparse
import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beamwood.bench.rivals import READY, Pecos, RivalError

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
HOMES = BUILD / "rivals"
PECOS_VERSION = "libpecos==1.2.8"

# What pip installs, one line per call; then the import that must work.
PACKAGES: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "libpecos": ((("numpy<2", "scipy<1.14", "scikit-learn"), ("--no-deps", PECOS_VERSION)), "pecos.xmc.xlinear"),
    "napkinxc": ((("numpy<2", "scipy<1.14", "napkinxc==0.7.2"),), "napkinxc.models"),
    "omikuji": ((("numpy", "scipy", "omikuji==0.5.2"),), "omikuji"),
    "libmultilabel": ((("torch==2.13.0",), ("libmultilabel==0.10.0",)), "libmultilabel.linear"),
    "bm25s": ((("numpy", "scipy", "bm25s"),), "bm25s"),
    "searchers": ((("numpy", "scipy", "numba", "bm25s", "tantivy", "sparse_dot_topn"),), "tantivy"),
    "fasttext": ((("numpy<2", "fasttext-wheel"),), "fasttext"),
    "annif": ((("annif==1.4.*",),), "annif"),
}
WORKERS = {"libpecos": "serve_pecos.py", "napkinxc": "serve_napkinxc.py", "omikuji": "serve_omikuji.py"}


def python_of(name: str) -> Path:
    """The interpreter that has this rival; makes its virtual environment when it is not there yet."""
    home = HOMES / name
    python = home / "bin" / "python"
    with _one_at_a_time(home.with_suffix(".lock")):
        if not (home / READY).exists():
            _install(name, home, str(python))
            worker = [str(python), "-u", str(HERE / WORKERS[name])] if name in WORKERS else None
            (home / READY).write_text(json.dumps({"packages": PACKAGES[name][0], "worker": worker}) + "\n")
    return python


def running_pecos(nice: int = 0) -> Pecos:
    """libpecos in its own process, installed first where it is not there yet."""
    python_of("libpecos")
    return Pecos(HOMES, nice)


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    """Two benches that start at once must not build the same environment."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _install(name: str, home: Path, python: str) -> None:
    calls, module = PACKAGES[name]
    print(f"installing {name} into {home}", file=sys.stderr, flush=True)
    steps = [[sys.executable, "-m", "venv", "--clear", str(home)]]
    steps += [[python, "-m", "pip", "install", "--quiet", *call] for call in calls]
    steps += [[python, "-c", f"import {module}"]]
    for step in steps:
        if subprocess.run(step, stdout=sys.stderr, check=False).returncode:
            raise RivalError(f"This step of installing {name} failed: {' '.join(step)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rivals", nargs="+", choices=sorted(PACKAGES))
    for name in parser.parse_args().rivals:
        print(python_of(name))


if __name__ == "__main__":
    main()
