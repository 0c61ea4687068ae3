"""calibration.py — real sets in, how far scores, probabilities and cuts are from the truth out.

    python bench/life/calibration.py --data ../shared/data [--sets winapi-seealso …] [--presets fast balanced]

Curves and cuts are fitted twice: on rows held out of training (a twentieth, at least 2,000 and at most 10,000), and on
one half of the test rows, measured on the other half. The model that is measured is trained on all rows; the one that
ranks the held-out rows was trained without them. Errors are in points, over 15 parts of equal width. Beside them stands
what chance makes of probabilities that are true: the error of as many rows whose truth is drawn from the probabilities
themselves, 95 of 100 times below the figure in brackets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw
from beamwood.inputs.arguments import cores
from beamwood.life import calibration, cut
from beamwood.life.truth import relevant

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.quality_sets import SETS, matrices, prepared  # noqa: E402

DEPTH = 100


def main() -> None:
    """Prints a line per set and preset."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    options.add_argument("--sets", nargs="+", default=list(SETS))
    options.add_argument("--presets", nargs="+", default=["fast", "balanced"])
    given = options.parse_args()
    columns = [f"ECE@{k}, {of}" for k in (1, 5) for of in ("score", "held out", "chance", "half of test")]
    print("| set | preset | " + " | ".join([*columns, "F1, held out", "F1, best"]) + " |")
    print("|---" * 12 + "|")
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parents[1] / "build" / "quality_sets")
        for preset in given.presets:
            print(f"| {name} | {preset} | " + " | ".join(measured(folder, preset)) + " |", flush=True)


def measured(folder: Path, preset: str) -> list[str]:
    """The columns of one set and preset."""
    X, Y = matrices(folder, "trn")
    shuffled = np.random.default_rng(0).permutation(X.shape[0])
    count = int(np.clip(X.shape[0] // 20, 2_000, 10_000))
    held, rest = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    test, truth = matrices(folder, "tst")
    told = answers(bw.train(X[rest], Y[rest], preset, progress=False), X[held], Y[held])
    asked = answers(bw.train(X, Y, preset, progress=False), test, truth)
    return columns_of(told, int(Y[held].nnz), asked, int(truth.nnz))


def columns_of(told: Any, true: int, asked: Any, true_on: int) -> list[str]:
    """Of the answers to held-out rows and to test rows, and how many labels each of them have."""
    halves = np.random.default_rng(1).permutation(len(asked[0]))
    half, other = halves[: len(halves) // 2], halves[len(halves) // 2 :]
    from_held = errors(told, asked)
    from_half = errors(tuple(part[half] for part in asked), tuple(part[other] for part in asked))
    luck = chance(told, asked)
    columns = [
        shown
        for k in (1, 5)
        for shown in (f"{from_held[0][k]:.1f}", f"{from_held[1][k]:.1f}", luck[k], f"{from_half[1][k]:.1f}")
    ]
    reached, best = f1(told, true, asked, true_on)
    return [*columns, f"{100 * reached:.2f}", f"{100 * best:.2f}"]


def answers(model: bw.Model, X: Any, Y: Any) -> tuple[Any, Any]:
    """Scores in rank order, and which labels are right."""
    labels, scores = model.topk(X, k=DEPTH, threads=cores())
    return scores, relevant(labels, Y)


def errors(fit: Any, on: Any) -> tuple[dict[int, float], dict[int, float]]:
    """Calibration errors of scores and of probabilities, at 1 and 5."""
    ranks = calibration.DEPTH
    curves = calibration.fit_curves(fit[0][:, :ranks], fit[1][:, :ranks])
    found = calibration.measured(on[0][:, :ranks], curves(on[0][:, :ranks]), on[1][:, :ranks])
    return found.ece_raw, found.ece


def chance(fit: Any, on: Any, draws: int = 200) -> dict[int, str]:
    """What the errors at 1 and 5 would be if the probabilities were true: the mean, and what 95 of 100 stay below."""
    ranks = calibration.DEPTH
    shown = calibration.fit_curves(fit[0][:, :ranks], fit[1][:, :ranks])(on[0][:, :ranks]).astype(np.float64)
    dice, told = np.random.default_rng(2), {}
    for k in (1, 5):
        there = np.isfinite(on[0][:, :k])
        p = shown[:, :k][there]
        drawn = [calibration.calibration_error(p, dice.random(len(p)) < p) for _ in range(draws)]
        told[k] = f"{np.mean(drawn):.1f} ({np.quantile(drawn, 0.95):.1f})"
    return told


def f1(fit: Any, true: int, on: Any, true_on: int) -> tuple[float, float]:
    """Micro F1 on test rows of the cut that held-out rows chose, and of the best cut there is on them."""
    curves = calibration.fit_curves(fit[0][:, : calibration.DEPTH], fit[1][:, : calibration.DEPTH])
    values, right = (curves(fit[0]).astype(np.float64).ravel(), fit[1].ravel())
    least = cut.choose(values, right, true, ("f1", 0.0))[0]
    shown, hit = curves(on[0]).astype(np.float64).ravel(), on[1].ravel()
    passed = shown >= least
    return 2 * hit[passed].sum() / (passed.sum() + true_on), cut.choose(shown, hit, true_on, ("f1", 0.0))[3]


if __name__ == "__main__":
    main()
