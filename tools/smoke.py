"""smoke.py — an environment with beamwood installed in, one line that says it works out.

python tools/smoke.py                  train on ten lines, save, load, search
python tools/smoke.py --bits           hashes of a model that it trains and of that model's answers
python tools/smoke.py --requirements   what beamwood asks for, and what is installed beside that, as JSON
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path

TEXTS = [
    "red wool socks",
    "blue wool socks",
    "warm wool hat",
    "straw hat for the sun",
    "red cotton shirt",
    "white cotton shirt",
    "leather walking boots",
    "rubber boots for rain",
    "rain coat with hood",
    "warm winter coat",
]
LABELS = [["socks"], ["socks"], ["hats"], ["hats"], ["shirts"], ["shirts"], ["boots"], ["boots"], ["coats"], ["coats"]]
DATA = Path(__file__).parents[1] / "data" / "library-subjects" / "train.jsonl.gz"
ROWS = 1500
CAME_WITH_PYTHON = {"pip", "setuptools", "wheel"}


def smoke() -> str:
    """Train on ten lines, save, load, search; an AssertionError when something is wrong."""
    import beamwood as bw

    model = bw.train_text(TEXTS, LABELS, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "shop.bw")
        loaded = bw.load(Path(folder) / "shop.bw", verify=True)
        for text, (expected, *_) in zip(TEXTS, LABELS, strict=True):
            hits = loaded.search(text, k=3)
            assert hits == model.search(text, k=3), f"{text}: the loaded model answers differently"
            assert hits[0].key == expected, f"{text}: {hits}, expected {expected}"
        del loaded
    heavy = {"matplotlib", "sklearn", "pandas", "torch"} & set(sys.modules)
    assert not heavy, f"beamwood imported {heavy}"
    hit = model.search("warm wool socks", k=1)[0]
    return f"beamwood {bw.__version__} works: warm wool socks -> {hit.name} ({hit.score:.2f})"


def bits() -> str:
    """Hashes of a file that training made and of what its model answers: the same on every machine."""
    import beamwood as bw

    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, ROWS + 200)]
    texts, labels = [row["text"] for row in rows], [row["labels"] for row in rows]
    model = bw.train_text(texts[:ROWS], labels[:ROWS], preset="fast", progress=False)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.bw")
        file = hashlib.sha256((Path(folder) / "model.bw").read_bytes()).hexdigest()[:16]
    said = [[(hit.label, hit.score.hex()) for hit in model.search(text, k=10)] for text in texts[ROWS:]]
    return f"file {file}, answers {hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]}"


def requirements() -> dict[str, list[str]]:
    """The direct requirements of beamwood, and installed packages that nobody asked for."""
    direct = sorted(needs("beamwood"))
    reached, open_ends = {"beamwood"}, list(direct)
    while open_ends:
        name = open_ends.pop()
        if name not in reached:
            reached.add(name)
            open_ends += needs(name)
    installed = {plain(found.metadata["Name"]) for found in metadata.distributions()}
    return {"direct": direct, "strangers": sorted(installed - reached - CAME_WITH_PYTHON)}


def needs(name: str) -> set[str]:
    """What a package asks for without its extras; nothing when it is not installed (a need of other systems)."""
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return set()
    return {plain(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines if "extra ==" not in line}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    if "--requirements" in sys.argv[1:]:
        print(json.dumps(requirements()))
    else:
        print(bits() if "--bits" in sys.argv[1:] else smoke())
