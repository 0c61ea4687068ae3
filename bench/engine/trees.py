"""trees.py — a training and a test set in, a table out: what several, wide and unbalanced trees cost per query.

    python bench/engine/trees.py X.trn.npz Y.trn.npz X.tst.npz [--queries 2000] [--rounds 7] [--keep FOLDER]

Trains some trees of four shapes, without words of labels (narrow: 32 children; wide: 128; unbalanced: 128; capped: 128
groups, then at most 32 labels, as preset "balanced" has them) and asks each model in the default engine and in layout
"chunk" with every matcher, batch and online, in turns, after the answers of all have been found to agree bit for bit.
Columns: microseconds per query, the quickest matcher of layout "chunk", how often the default is as fast as that, and
the cost of n trees over n times the cost of one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import beamwood as bw
from beamwood.bench.timing import Figures, batch_time, each_time, in_turns, print_header, print_table
from beamwood.inputs.data import read_matrix

SHAPES: dict[str, dict[str, Any]] = {
    "narrow": {"tree": "balanced", "branching": 32, "max_leaf": 32},
    "wide": {"tree": "balanced", "branching": 128, "max_leaf": 128},
    "unbalanced": {"tree": "unbalanced", "branching": 128, "max_leaf": 128},
    "capped": {"tree": "capped", "branching": 128, "max_leaf": 32},
}
TREES = {"narrow": (1, 2, 3), "wide": (1,), "unbalanced": (1, 3), "capped": (1, 3)}
ENGINES: dict[str, dict[str, Any]] = {
    "default": {},
    **{f"chunk/{matcher}": {"layout": "chunk", "matcher": matcher} for matcher in ("hash", "dense", "binary")},
}
ONLINE = 300  # queries that are asked one by one
BEAM = K = 10


def trained(X: Any, Y: Any, shape: str, trees: int, keep: Path | None) -> bw.Model:
    """The model of one shape, from `keep` if it is there."""
    path = keep / f"{shape}-{trees}.bw" if keep else None
    if path and path.exists():
        return bw.load(path)
    model = bw.train(X, Y, preset="balanced", trees=trees, lexical=False, progress=False, **SHAPES[shape])
    if path:
        model.save(path)
    return model


def assert_agreement(engines: dict[str, bw.Model], X: Any) -> None:
    """The same bits from all engines, before anything is timed."""
    labels, scores = engines["default"].topk(X, k=K, beam=BEAM)
    for name, model in engines.items():
        other_labels, other_scores = model.topk(X, k=K, beam=BEAM)
        assert np.array_equal(labels, other_labels), name
        assert np.array_equal(scores.view(np.int32), other_scores.view(np.int32)), name


def measured(model: bw.Model, X: Any, rounds: int) -> dict[str, tuple[float, str, float]]:
    """For batch and online: the default's time, the quickest other engine and its time."""
    engines = {name: model.using(**options) for name, options in ENGINES.items()}
    assert_agreement(engines, X)
    rows = [X[i] for i in range(min(ONLINE, X.shape[0]))]
    found = {}
    asks = {name: partial(engine.topk, k=K, beam=BEAM, threads=1) for name, engine in engines.items()}
    ways: dict[str, dict[str, Callable[[], Figures]]] = {
        "batch": {name: partial(batch_time, partial(ask, X), X.shape[0]) for name, ask in asks.items()},
        "online": {name: partial(each_time, ask, rows) for name, ask in asks.items()},
    }
    for way, runs in ways.items():
        times = {name: taken.median for name, taken in in_turns(runs, rounds, warm=True).items()}
        best = min((name for name in times if name != "default"), key=times.__getitem__)
        found[way] = (times["default"], best, times[best])
    return found


def main() -> None:
    """Reads the arguments, trains what is missing, prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("x_train", "y_train", "x_test"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="a folder for the models, so that a second run need not train")
    given = parser.parse_args()
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
    X, Y = read_matrix(given.x_train), read_matrix(given.y_train)
    test = read_matrix(given.x_test).astype(np.float32)[: given.queries]
    test.sort_indices()
    print_header("Several, wide and unbalanced trees", {"queries": test.shape[0], "rounds": given.rounds})
    table = []
    for shape in SHAPES:
        one: dict[str, float] = {}
        for trees in TREES[shape]:
            model = trained(X, Y, shape, trees, given.keep)
            stats = model.topk(test, k=K, beam=BEAM, stats=True)[2]
            for way, (default, rival, other) in measured(model, test, given.rounds).items():
                one.setdefault(way, default)
                blocks, ratio = stats.blocks / test.shape[0], default / (trees * one[way])
                numbers = f"{other:.1f}", f"{other / default:.2f}", f"{ratio:.2f}"
                table.append([shape, trees, way, f"{blocks:.1f}", f"{default:.1f}", rival, *numbers])
    head = ["tree", "trees", "way", "blocks", "default", "best chunk", "its time", "chunk / default", "over n x one"]
    print_table(head, table)


if __name__ == "__main__":
    main()
