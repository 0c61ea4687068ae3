"""calibration.py — real sets in, how far scores, probabilities and cuts are from the truth out.

    python bench/life/calibration.py --data ../shared/data [--sets winapi-seealso …] [--presets fast balanced]

Curves and cuts are fitted three times: on rows held out of training (as many as `calibrate=True` takes); on these,
drawn anew so that they have as many labels as test rows do, which only who knows the truth of the test rows can do; and
on the test rows, each half measured with curves of the other. The model that is measured is trained on all rows; the
one that ranks the held-out rows was trained without them. Errors are in points, over 15 parts of equal width. Beside
them stands what chance makes of probabilities that are true: the error of as many rows whose truth is drawn from the
probabilities themselves, 95 of 100 times below the figure in brackets. Models are kept in build/calibration.
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
from beamwood.training.calibrated import checked_share, rankable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.quality_sets import SETS, matrices, prepared  # noqa: E402

DEPTH = 100
MOST = 12  # labels per row that are told apart
OF = ("score", "held out", "chance", "held out, labels as in test", "test, crossed")


def main() -> None:
    """Prints a line per set and preset."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    options.add_argument("--sets", nargs="+", default=list(SETS))
    options.add_argument("--presets", nargs="+", default=["fast", "balanced"])
    options.add_argument("--like", nargs="+", type=int, help="only: probabilities learnt on so many of the test rows")
    given = options.parse_args()
    if given.like:
        return tell_few(given)
    columns = [f"ECE@{k}, {of}" for k in (1, 5) for of in OF]
    print("| set | preset | " + " | ".join([*columns, "F1, held out", "F1, best"]) + " |")
    print("|---" * (len(columns) + 4) + "|")
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parents[1] / "build" / "quality_sets")
        for preset in given.presets:
            print(f"| {name} | {preset} | " + " | ".join(measured(folder, preset)) + " |", flush=True)


def measured(folder: Path, preset: str) -> list[str]:
    """The columns of one set and preset."""
    X, Y = matrices(folder, "trn")
    shuffled = np.random.default_rng(0).permutation(X.shape[0])
    count = checked_share(True, X.shape[0])
    held, rest = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    kept, known = rankable(Y[held], Y[rest])
    fair = held[kept]
    test, truth = matrices(folder, "tst")
    told = answers(trained(folder.name, preset, "rest", X[rest], Y[rest]), X[fair], Y[fair])
    asked = answers(trained(folder.name, preset, "all", X, Y), test, truth)
    alike = drawn_like(np.diff(Y[fair].indptr), np.diff(truth.indptr))
    return columns_of(
        told, int(known[Y[fair].indices].sum()), tuple(part[alike] for part in told), asked, int(truth.nnz)
    )


def tell_few(given: argparse.Namespace) -> None:
    """Prints the errors on other test rows of probabilities learnt on a few: means of five draws, at 1 / at 5."""
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parents[1] / "build" / "quality_sets")
        for preset in given.presets:
            model = trained(folder.name, preset, "all", *matrices(folder, "trn"))
            found = answers(model, *matrices(folder, "tst"))
            told = [f"{rows:,} rows: {few(found, rows)}" for rows in given.like]
            print(f"{name}, {preset}: {'; '.join(told)}", flush=True)


def few(of: Any, rows: int) -> str:
    """The errors of one model."""
    drawn = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(of[0]))
        fit, on = (tuple(part[some] for part in of) for some in (order[:rows], order[rows:]))
        drawn.append(errors(fit, on)[1])
    return " / ".join(f"{np.mean([one[k] for one in drawn]):.1f}" for k in (1, 5))


def trained(name: str, preset: str, rows: str, X: Any, Y: Any) -> bw.Model:
    """A model of these rows, kept for the next call."""
    kept = HERE.parents[1] / "build" / "calibration" / f"{name}.{preset}.{rows}.bw"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        bw.train(X, Y, preset, progress=False).save(kept)
    return bw.load(kept)


def drawn_like(have: Any, want: Any) -> Any:
    """Rows drawn so that as many of them have so many labels as among others. have, want: labels of each row."""
    have, want = np.minimum(have, MOST), np.minimum(want, MOST)
    share = [np.bincount(of, minlength=MOST + 1) / len(of) for of in (have, want)]
    weight = (share[1] / np.maximum(share[0], 1e-9))[have]
    return np.random.default_rng(3).choice(len(have), len(have), p=weight / weight.sum())


def columns_of(told: Any, true: int, alike: Any, asked: Any, true_on: int) -> list[str]:
    """Of answers to held-out rows, to those drawn anew and to test rows; true: how many labels the rows have."""
    luck = chance(told, asked)
    raw, shown = errors(told, asked)
    found = (raw, shown, errors(alike, asked)[1], crossed(asked))
    columns = []
    for k in (1, 5):
        score, held_out, like_test, own = (f"{of[k]:.1f}" for of in found)
        columns += [score, held_out, luck[k], like_test, own]
    reached, best = f1(told, true, asked, true_on)
    return [*columns, f"{100 * reached:.2f}", f"{100 * best:.2f}"]


def crossed(of: Any) -> dict[int, float]:
    """Calibration errors of answers, each half of which has the probabilities that the other half gives."""
    scores, right = (part[:, : calibration.DEPTH] for part in of)
    half = np.random.default_rng(1).permutation(len(scores)) % 2 == 0
    shown = np.empty(scores.shape, np.float32)
    for fit, on in ((half, ~half), (~half, half)):
        shown[on] = calibration.fit_curves(scores[fit], right[fit])(scores[on])
    return calibration.measured(scores, shown, right).ece


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
