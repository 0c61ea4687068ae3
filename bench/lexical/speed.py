"""speed.py — a model with words, the same trees without them and queries in; how much longer the whole takes out.

    python bench/lexical/speed.py MODEL TREES X.tst.npz --rounds 7

One thread, k 10, beam 10: a batch and single rows, in turns; medians of rounds, microseconds per query. `words` is the
lexical member by itself: the exact best 20 of all labels.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.lexical.postings import native_postings

K = 10
Timed = Callable[[Any], float]


def words_of(model: Any) -> Any:
    """The lexical member of a model, by itself."""
    parts = model.parts
    return native_postings(parts.sections, model.n_features, model.n_labels, parts.shape.index)


def timers(model: Any, trees: Any) -> dict[str, Callable[[Any], object]]:
    """What is timed: each takes rows."""
    lists = words_of(model)
    width = model.parts.shape.head.candidates

    def words(X: Any) -> None:
        labels, scores = np.empty((X.shape[0], width), np.int64), np.empty((X.shape[0], width), np.float32)
        lists.topk(X.indptr, X.indices, X.data, labels, scores, 1, True, None)

    return {"trees": lambda X: trees.topk(X, K), "whole": lambda X: model.topk(X, K), "words": words}


def per_query(call: Callable[[Any], object], parts: list[Any]) -> float:
    """Microseconds of processor time per row."""
    begin = time.process_time_ns()
    for X in parts:
        call(X)
    return (time.process_time_ns() - begin) / 1e3 / sum(X.shape[0] for X in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("trees", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--singles", type=int, default=500)
    given = parser.parse_args()
    model, trees = bw.load(given.model), bw.load(given.trees)
    X = sp.csr_matrix(sp.load_npz(given.queries), dtype=np.float32)
    X = X[np.random.default_rng(0).permutation(X.shape[0])[: given.batch]]
    kinds = {"batch": [X], "single": [X[[i]] for i in range(min(given.singles, X.shape[0]))]}
    calls = timers(model, trees)
    took: dict[tuple[str, str], list[float]] = {}
    for number in range(given.rounds + 1):  # the first one warms up
        for kind, parts in kinds.items():
            for name, call in calls.items():
                one = per_query(call, parts)
                if number:
                    took.setdefault((kind, name), []).append(one)
    for kind in kinds:
        own = {name: float(np.median(took[kind, name])) for name in calls}
        ratio = np.median(np.array(took[kind, "whole"]) / np.array(took[kind, "trees"]))
        print(f"{kind:<8}" + "".join(f"{name} {us:7.1f}   " for name, us in own.items()) + f"whole / trees {ratio:.2f}")


if __name__ == "__main__":
    main()
