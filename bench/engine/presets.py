"""presets.py — real sets in; what each preset costs per query as it comes, and without words of labels, out.

    python bench/engine/presets.py --data ../shared/data [--sets debian-search yso-en] [--keep FOLDER] [--rounds 7]

Each preset is trained on the training rows, with the words of labels where it keeps them, and asked test rows with its
own beam: 2,000 in a batch and 300 one by one from Python, one thread, all in turns. Columns: microseconds per query and
how many times that of `fast`.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import beamwood as bw
from beamwood.bench.timing import batch_time, each_time, in_turns, print_header, print_table

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
from support.quality_sets import SETS, matrices, prepared  # noqa: E402

BATCH, ONLINE = 2000, 300
MODELS: dict[str, dict[str, Any]] = {
    "fast": {"preset": "fast"},
    "balanced": {},
    "balanced, trees alone": {"lexical": False},
    "best": {"preset": "best"},
}


def model_of(name: str, given: str, folder: Path, keep: Path) -> bw.Model:
    """The model of one preset, from `keep` if it is there."""
    path = keep / name / f"{given}.bw"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        bw.train(*matrices(folder, "trn"), progress=False, threads=1, **MODELS[given]).save(path)
    return bw.load(path)


def measured(models: dict[str, bw.Model], X: Any, rounds: int) -> list[list[str]]:
    """A line of the table for each model."""
    queries, rows = X[:BATCH], [X[i] for i in range(ONLINE)]
    asks = {given: partial(model.topk, k=10, threads=1) for given, model in models.items()}
    batch = {given: partial(batch_time, partial(ask, queries), queries.shape[0]) for given, ask in asks.items()}
    online = {given: partial(each_time, ask, rows) for given, ask in asks.items()}
    lines = {given: [given, _words(model)] for given, model in models.items()}
    for runs in (batch, online):
        times = {given: taken.median for given, taken in in_turns(runs, rounds, warm=True).items()}
        for given, line in lines.items():
            line += [f"{times[given]:.1f}", f"{times[given] / times['fast']:.1f}"]
    return list(lines.values())


def _words(model: bw.Model) -> str:
    """Whether words of labels were kept."""
    return "yes" if (model.info()["lexical"] or {}).get("kept") else "no"


def main() -> None:
    """Reads the arguments, trains what is missing, prints a table for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--keep", type=Path, default=HERE.parent / "build" / "presets", help="a folder for the models")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only-train", action="store_true", help="time nothing")
    given = parser.parse_args()
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parent / "build" / "sets")
        models = {preset: model_of(name, preset, folder, given.keep) for preset in MODELS}
        if given.only_train:
            continue
        print_header(f"Presets on {name}", {"rounds": given.rounds})
        head = ["preset", "words of labels", "µs, batch", "x fast", "µs, one by one", "x fast"]
        print_table(head, measured(models, matrices(folder, "tst")[0], given.rounds))


if __name__ == "__main__":
    main()
