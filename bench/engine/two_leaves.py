"""two_leaves.py — real sets in; what trees would gain if every label hung on two leaves, on held-out rows, out.

    python bench/engine/two_leaves.py --data ../shared/data [--sets winapi-seealso debian-search] [--queries 1500]

A model has no such trees: here they are trees over twice the labels. A label's second leaf is in the cluster that its
rows meet most often besides its own, by the beam of a first tree; both leaves learn all rows of the label, and an
answer scores it by the sum of its leaves. The settings are those of preset "balanced" without words of labels. Columns:
P@1, P@3, P@5, recall@10 on 5 % of the training rows, which are held out, and microseconds per query of one tree alone,
in a batch, with as many answers as ten labels on two leaves each may take.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import beamwood as bw
from beamwood.bench.timing import batch_time, in_turns, print_header, print_table

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
from support.quality_sets import SETS, matrices, prepared  # noqa: E402

Ints = npt.NDArray[np.int64]
REACHED = 60  # leaves per tree that an answer is made of


def unit(X: Any) -> sp.csr_matrix:
    """Rows divided by their lengths, as the preset does it."""
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.maximum(length, 1e-30)) @ X, dtype=np.float32)


def split(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Training rows and held-out rows: X and Y of each."""
    X, Y = matrices(folder, "trn")
    order = np.random.default_rng(7).permutation(X.shape[0])
    held = order[: min(5000, len(order) // 20)]
    rest = np.sort(order[len(held) :])
    X = unit(X)
    return X[rest], Y[rest], X[held], Y[held]


def trained(X: Any, Y: Any, **settings: Any) -> bw.Model:
    """A model of the default preset, trees only."""
    return bw.train(X, Y, lexical=False, progress=False, **settings)


def second_cluster(layers: list[bw.Layer], X: Any, Y: Any) -> tuple[Ints, Ints]:
    """The cluster of each label in a tree, and the other one that its rows meet most; -1 where they meet none."""
    own = np.empty(Y.shape[1], dtype=np.int64)
    own[np.asarray(layers[-1].label)] = np.asarray(layers[-1].parent)
    top = bw.Model.from_layers([bw.Layer(x.weights, x.parent, bias=x.bias) for x in layers[:-1]], activation="hinge-3")
    met: Any = sp.csr_matrix(Y.T.astype(bool).astype(np.float32) @ top.predict(X, k=10, beam=10))
    met[np.arange(len(own)), own] = 0
    met.eliminate_zeros()
    best = np.asarray(met.argmax(axis=1)).ravel()
    return own, np.where(np.diff(met.indptr) > 0, best, -1)


def parents_of(layers: list[bw.Layer], cluster: Ints) -> tuple[int, ...]:
    """A tree whose leaves, numbered from 0, hang on these clusters of another one: the parent of each node."""
    starts, parents = [], [cluster]
    for layer in layers[-2::-1]:
        starts.append(sum(map(len, parents)))
        parents.append(np.asarray(layer.parent, dtype=np.int64))
    starts.append(sum(map(len, parents)))
    shifted = [ids + start for ids, start in zip(parents, starts, strict=True)]
    return (*map(int, np.concatenate(shifted)), -1)


def on_two_leaves(X: Any, Y: Any, seed: int) -> tuple[bw.Model, Ints]:
    """A tree whose leaves are labels of their own, and the label that each of them stands for."""
    layers = trained(X, Y, trees=1, seed=seed).layers()
    own, second = second_cluster(layers, X, Y)
    twice = np.flatnonzero(second >= 0)
    label_of_leaf = np.concatenate([np.arange(len(own)), twice])
    parents = parents_of(layers, np.concatenate([own, second[twice]]))
    return trained(X, Y[:, label_of_leaf], trees=1, seed=seed, tree=parents), label_of_leaf


def answers(trees: list[tuple[bw.Model, Ints]], X: Any, labels: int) -> Any:
    """The sums of all leaves of each label that the trees reach, rows x labels."""

    def of_one(model: bw.Model, label_of_leaf: Ints) -> Any:
        found: Any = model.predict(X, k=min(REACHED, model.n_labels))
        return sp.csr_matrix((found.data, label_of_leaf[found.indices], found.indptr), shape=(X.shape[0], labels))

    return sum(of_one(*tree) for tree in trees)


def quality(P: Any, Y: Any) -> list[str]:
    """The columns of quality."""
    measures = bw.evaluate(P, Y, at=(1, 3, 5, 10))
    return [f"{100 * value:.1f}" for value in (*(measures.precision[k] for k in (1, 3, 5)), measures.recall[10])]


def report(name: str, folder: Path, queries: int) -> None:
    """Trains the forests of a set and prints their table."""
    X, Y, held, truth = split(folder)
    forests = {f"{n} trees" if n > 1 else "1 tree": trained(X, Y, trees=n) for n in (1, 2, 3)}
    trees = [on_two_leaves(X, Y, seed) for seed in (0, 1)]
    asked = held[:queries]
    runs = {"one leaf": partial(forests["1 tree"].topk, asked, k=10, threads=1)}
    runs["two leaves"] = partial(trees[0][0].topk, asked, k=20, threads=1)
    timed = {each: partial(batch_time, run, asked.shape[0]) for each, run in runs.items()}
    times = {each: f"{taken.median:.1f}" for each, taken in in_turns(timed, 7, warm=True).items()}
    rows = [[each, *quality(model.predict(held, k=10), truth), ""] for each, model in forests.items()]
    rows[0][-1] = times["one leaf"]
    for n in (1, 2):
        found = answers(trees[:n], held, Y.shape[1])
        rows.append([f"{n} on two leaves", *quality(found, truth), times["two leaves"] if n == 1 else ""])
    print_header(f"Labels on two leaves, {name}", {"held-out rows": held.shape[0]})
    print_table(["forest", "P@1", "P@3", "P@5", "recall@10", "µs"], rows)


def main() -> None:
    """Reads the arguments and goes through the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["winapi-seealso", "debian-search"])
    parser.add_argument("--queries", type=int, default=1500)
    args = parser.parse_args()
    for name in args.sets:
        report(name, prepared(name, args.data, HERE.parent / "build" / "sets"), args.queries)


if __name__ == "__main__":
    main()
