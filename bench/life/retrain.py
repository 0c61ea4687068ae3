"""retrain.py — real sets in, what `model.retrain` takes and finds beside a fresh training on the same rows, out.

    python bench/life/retrain.py --data ../shared/data [--sets winapi-seealso …] [--presets fast balanced]

A model learns from four fifths of the training rows; then all rows are there, and it is retrained, or a fresh one is
trained. Time is that of the processor, in turns, the middle of --rounds; quality is P@1, P@5 and recall@10 of the test
rows in percent, of the old model, the retrained one and the fresh one. Labels that only new rows have are new ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.quality_sets import SETS, matrices, prepared  # noqa: E402

SHARE = 0.8  # of the rows that the old model knows


def main() -> None:
    """Prints a line per set and preset."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    options.add_argument("--sets", nargs="+", default=list(SETS))
    options.add_argument("--presets", nargs="+", default=["fast", "balanced"])
    options.add_argument("--rounds", type=int, default=1)
    given = options.parse_args()
    warnings.simplefilter("ignore", bw.BeamwoodWarning)
    print("| set | preset | retrain, CPU s | fresh, CPU s | ratio | before | retrained | fresh |\n" + "|---" * 8 + "|")
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parents[1] / "build" / "quality_sets")
        for preset in given.presets:
            print(f"| {name} | {preset} | " + " | ".join(measured(folder, preset, given.rounds)) + " |", flush=True)


def measured(folder: Path, preset: str, rounds: int) -> list[str]:
    """The columns of one set and preset."""
    X, Y = matrices(folder, "trn")
    test = matrices(folder, "tst")
    known = np.sort(np.random.default_rng(0).permutation(X.shape[0])[: int(SHARE * X.shape[0])])
    old = bw.train(X[known], Y[known], preset, progress=False)
    took: dict[str, list[float]] = {"retrain": [], "fresh": []}
    models: dict[str, bw.Model] = {"old": old}
    for _ in range(rounds):
        for how, seconds in took.items():
            begun = time.process_time()
            again = how == "retrain"
            models[how] = old.retrain(X, Y, progress=False) if again else bw.train(X, Y, preset, progress=False)
            seconds.append(time.process_time() - begun)
    retrain, fresh = (statistics.median(took[how]) for how in ("retrain", "fresh"))
    shown = [f"{retrain:.1f}", f"{fresh:.1f}", f"{retrain / fresh:.2f}"]
    return [*shown, *(quality(models[how], test) for how in ("old", "retrain", "fresh"))]


def quality(model: bw.Model, rows: tuple[Any, Any]) -> str:
    """P@1, P@5 and recall@10 in percent."""
    found = model.evaluate(*rows, at=(1, 5, 10))
    return f"{100 * found.precision[1]:.1f} / {100 * found.precision[5]:.1f} / {100 * found.recall[10]:.1f}"


if __name__ == "__main__":
    main()
