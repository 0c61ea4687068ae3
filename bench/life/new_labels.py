"""new_labels.py — real sets in, how well labels that were added after training are found, and what that takes, out.

    python bench/life/new_labels.py --data ../shared/data [--sets winapi-seealso …] [--presets fast balanced]
                                    [--shares 0.1] [--count 1000] [--only-train] [--one-by-one 20]

A share of the labels, drawn by a seed, is held out of training: rows lose these labels, and rows that have no other one
are left out. Then they are added with the rows that have one of them. Recall@10 is over all pairs of a test row and a
label of it, in percent: of the new labels and of the others, of a model trained on everything (full), of the one
before and after labels were added. Models are kept in build/new_labels, so that `--only-train` can make them
beforehand and a later call times nothing but the update.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.inputs.arguments import cores
from beamwood.life.truth import relevant

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.quality_sets import SETS, matrices, prepared  # noqa: E402

K = 10
HEAD = (
    "| set | preset | new labels | new, full | new, added | of full | rest, full | rest, before | rest, added "
    "| P@1, full | P@1, added | seconds | of full training |"
)


def main() -> None:
    """Prints a line per set, preset and share."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    options.add_argument("--models", type=Path, default=HERE.parents[1] / "build" / "new_labels")
    options.add_argument("--sets", nargs="+", default=list(SETS))
    options.add_argument("--presets", nargs="+", default=["fast", "balanced"])
    options.add_argument("--shares", nargs="+", type=float, default=[0.1])
    options.add_argument("--count", type=int, default=0, help="hold back so many labels instead of a share")
    options.add_argument("--only-train", action="store_true")
    options.add_argument("--one-by-one", type=int, default=0, help="also add so many labels each by itself")
    given = options.parse_args()
    given.models.mkdir(parents=True, exist_ok=True)
    if not given.only_train:
        print(HEAD + "\n" + "|---" * HEAD.count(" | ") + "|---|", flush=True)
    for name in given.sets:
        folder = prepared(name, given.data, HERE.parents[1] / "build" / "quality_sets")
        for preset in given.presets:
            for share in given.shares:
                line(name, preset, share, folder, given)


def line(name: str, preset: str, share: float, folder: Path, given: Any) -> None:
    """Trains what is missing, adds labels, prints what was measured."""
    X, Y = matrices(folder, "trn")
    labels = Y.shape[1]
    count = given.count or int(labels * share)
    new = np.zeros(labels, bool)
    new[np.random.default_rng(0).permutation(labels)[:count]] = True
    full, seconds = model_of(given.models / f"{name}-{preset}-full.bw", X, Y, preset)
    kept = sp.csr_matrix(Y[:, ~new])
    rows = np.diff(kept.indptr) > 0
    old, _ = model_of(given.models / f"{name}-{preset}-without-{count}.bw", X[rows], kept[rows], preset)
    if given.only_train:
        return
    has = np.diff(sp.csr_matrix(Y[:, new]).indptr) > 0
    both = sp.csr_matrix(sp.hstack([Y[has][:, ~new], Y[has][:, new]], format="csr"))
    begun = time.perf_counter()
    added = old.add_labels(X[has], both)
    took = time.perf_counter() - begun
    tests = matrices(folder, "tst")
    order = np.concatenate([np.flatnonzero(~new), np.flatnonzero(new)])
    whole = recall(full, *tests, np.arange(labels), new)
    before, after = recall(old, *tests, order, new), recall(added, *tests, order, new)
    figures = [f"{whole[0]:.2f}", f"{after[0]:.2f}", f"{after[0] / whole[0]:.1%}"]
    figures += [f"{whole[1]:.2f}", f"{before[1]:.2f}", f"{after[1]:.2f}", f"{whole[2]:.2f}", f"{after[2]:.2f}"]
    figures += [f"{took:.1f}", f"{took / seconds:.1%}" if seconds else "-"]
    print(f"| {name} | {preset} | {count:,} ({count / labels:.0%}) | " + " | ".join(figures) + " |", flush=True)
    if given.one_by_one:
        one_by_one(old, X, Y, new, tests, order, given.one_by_one)


def model_of(path: Path, X: Any, Y: Any, preset: str) -> tuple[bw.Model, float]:
    """A model that is kept, with the seconds its training took; trained where it is not there yet."""
    told = path.with_suffix(".json")
    if not path.exists():
        model = bw.train(X, Y, preset, progress=False)
        assert isinstance(model.report, bw.Report)
        told.write_text(json.dumps(model.report.to_dict()))
        model.save(path)
    return bw.load(path), json.loads(told.read_text())["total_seconds"] if told.exists() else 0.0


def recall(model: bw.Model, X: Any, Y: Any, order: Any, new: Any) -> tuple[float, float, float]:
    """Recall@10 of new labels and of the others, and P@1, in percent. order: which column of Y each label is."""
    Y = sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], len(new)))
    labels, _ = model.topk(X, k=K, threads=cores())
    labels = np.where(labels >= 0, order[np.maximum(labels, 0)], -1)
    right = relevant(labels, Y)
    of_new = new[np.maximum(labels, 0)]
    there = new[Y.indices]
    hits = (right & of_new).sum() / max(1, there.sum()), (right & ~of_new).sum() / max(1, (~there).sum())
    return 100 * float(hits[0]), 100 * float(hits[1]), 100 * float(right[:, 0].mean())


def one_by_one(old: bw.Model, X: Any, Y: Any, new: Any, tests: Any, order: Any, count: int) -> None:
    """Labels that come alone, with no rows but their own: recall of each, and what the others lose."""
    before = recall(old, tests[0], tests[1], order, new)[1]
    found, lost, asked = 0.0, [], 0
    for label in np.random.default_rng(1).permutation(np.flatnonzero(new))[:count]:
        rows = np.flatnonzero(np.asarray(Y[:, [label]].todense()).ravel())
        expected = np.flatnonzero(np.asarray(tests[1][:, [label]].todense()).ravel())
        if not len(rows) or not len(expected):
            continue
        model = old.add_labels(X[rows], np.ones((len(rows), 1)))
        place = np.append(order[: old.n_labels], label)
        answers = model.topk(tests[0][expected], k=K)[0]
        found, asked = found + float((answers == old.n_labels).sum()), asked + len(expected)
        lost.append(before - recall(model, tests[0], tests[1], place, new)[1])
    print(
        f"  one by one, {len(lost)} labels: recall@10 {100 * found / max(1, asked):.2f} of {asked} pairs, the rest "
        f"loses {np.mean(lost):.4f} points on average, {np.max(lost):.4f} at most"
    )


if __name__ == "__main__":
    main()
