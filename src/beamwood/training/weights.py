"""weights.py — a checked problem and a tree's shape in, the tree's layers with learned weights out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import SettingsError
from beamwood.storage.layers import Layer
from beamwood.training.problem import Problem
from beamwood.training.settings import Settings

Ints = npt.NDArray[np.int64]
# Layers from the top: the parent of each node, and the label of each leaf (None: as Layer.label says).
Skeleton = Sequence[tuple[Ints, "Ints | None"]]
Watch = Callable[[float], None]
# The nodes of the last layer so far that each row's beam search keeps: rows x beam, -1 where there is none.
Match = Callable[[Sequence[Layer]], Ints]
# Weights (features x nodes, CSC) and biases of a layer; and who works them out, with so many threads of this process.
Learned = tuple[Any, npt.NDArray[np.float32]]
Learner = Callable[["LayerProblem", int, "Watch | None"], Learned]
_NO_IDS: Ints = np.empty(0, np.int64)
_TOLD_AS_THEY_ARE = ("loss", "rare_weight", "eps", "max_iter", "bias", "prune", "top_weights")
_FEW_ROWS = 4  # a label: up to here "auto" makes every mistake count in full


def layer_weights(
    problem: Problem,
    shape: Skeleton,
    settings: Settings,
    *,
    seed: int,
    threads: int,
    match: Match | None = None,
    watch: Callable[[int], Watch] | None = None,
    done: Sequence[Layer] = (),
    learn: Learner | None = None,
) -> Iterator[Layer]:
    """Learns layer after layer from the top; `match` finds matcher-aware negatives, `watch` looks on.

    done:  the first layers, where an earlier run has learned them.
    learn: who works out the weights of a layer; None: this process.
    """
    learn = learn if learn is not None else learn_here
    reaching = Columns.whole(problem.rows)
    trained: list[Layer] = []
    for depth, ((parent, label), ancestor) in enumerate(zip(shape, ancestors(shape, problem.labels), strict=True)):
        positives = Columns.below(problem.Y, ancestor, len(parent))
        if depth < len(done):
            trained.append(done[depth])
            yield trained[-1]
            reaching = _reaching(problem, positives, ancestor, len(parent), settings)
            continue
        if depth and settings.negatives in ("man", "tfn+man"):
            if match is None:
                raise SettingsError(
                    f"match is missing; expected it with negatives={settings.negatives!r}. Call train, or pass `match`."
                )
            found = Columns.of_matches(match(trained), reaching.count)
            reaching = found if settings.negatives == "man" else reaching | found
        layer = layer_problem(problem, reaching, positives, parent, settings, seed * 64 + depth)
        weights, bias = learn(layer, threads, watch and watch(depth))
        trained.append(Layer(weights, parent, bias, label))
        yield trained[-1]
        reaching = _reaching(problem, positives, ancestor, len(parent), settings)


def _reaching(problem: Problem, positives: Columns, ancestor: Ints, nodes: int, settings: Settings) -> Columns:
    """The rows that the children of each node learn from."""
    if problem.negatives is not None and settings.negatives == "user":
        return positives | Columns.below(problem.negatives, ancestor, nodes)
    return positives


def cost_of_mistakes(problem: Problem, settings: Settings) -> float:
    """The number that `C` is or stands for."""
    if settings.C != "auto":
        return float(settings.C)
    return auto_cost(problem.rows_per_label)


def auto_cost(rows_per_label: float) -> float:
    """What C="auto" stands for where labels have so many rows on average."""
    return float(min(1.0, (_FEW_ROWS / max(rows_per_label, 1e-9)) ** 0.25))


def ancestors(shape: Skeleton, labels: int) -> list[Ints]:
    """For each layer, the node that each label lies under or is; -1 for labels whose leaf lies above it."""
    under: list[Ints] = []
    node = np.full(labels, -1, dtype=np.int64)
    below: Ints | None = None
    for depth in reversed(range(len(shape))):
        parent, label = shape[depth]
        node = np.where(node >= 0, below[node] if below is not None else -1, -1)
        if label is None and depth == len(shape) - 1:
            node[: len(parent)] = np.arange(len(parent))
        elif label is not None:
            leaf = np.flatnonzero(label >= 0)
            node[label[leaf]] = leaf
        under.append(node)
        below = np.asarray(parent, dtype=np.int64)
    return under[::-1]


@dataclass(frozen=True, eq=False)
class Columns:
    """A sparse matrix by columns: the rows of each node, rising, and what each row counts (empty: 1)."""

    start: Ints
    row: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    rows: int

    @property
    def count(self) -> int:
        return len(self.start) - 1

    @classmethod
    def whole(cls, rows: int) -> Columns:
        """One column that holds every row: all rows reach the root."""
        everything = np.arange(rows, dtype=np.int32)
        return cls(np.array([0, rows], dtype=np.int64), everything, np.empty(0, np.float32), rows)

    @classmethod
    def below(cls, Y: Any, ancestor: Ints, nodes: int) -> Columns:
        """The rows that have a label under each node; a row counts as much as the largest of those labels."""
        node = ancestor[Y.indices]
        if (node < 0).any():
            kept = np.concatenate([[0], np.cumsum(node >= 0)])
            indptr, value, node = kept[Y.indptr], Y.data[node >= 0], node[node >= 0]
        else:
            indptr, value = Y.indptr, Y.data
        lifted = sp.csr_matrix((value, node, indptr), shape=(Y.shape[0], nodes)).tocsc()
        return cls._merged(lifted)

    @classmethod
    def of_matches(cls, found: Ints, nodes: int) -> Columns:
        """The rows whose beam holds each node."""
        rows = len(found)
        at = found >= 0
        indptr = np.concatenate([[0], np.cumsum(at.sum(axis=1))])
        ones = np.ones(int(indptr[-1]), dtype=np.float32)
        return cls._merged(sp.csr_matrix((ones, found[at], indptr), shape=(rows, nodes)).tocsc())

    def with_rows(self, of: Ints) -> Columns:
        """The same with further rows, each in one column."""
        column = np.concatenate([np.repeat(np.arange(self.count), np.diff(self.start)), of])
        row = np.concatenate([self.row, self.rows + np.arange(len(of))])
        start = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=self.count))])
        by_column = np.argsort(column, kind="stable")
        return Columns(start.astype(np.int64), row[by_column].astype(np.int32), self.value, self.rows + len(of))

    def __or__(self, other: Columns) -> Columns:
        both = [
            sp.csc_matrix((np.ones(len(c.row), np.float32), c.row, c.start), shape=(c.rows, c.count))
            for c in (self, other)
        ]
        union = (both[0] + both[1]).tocsc()
        union.sort_indices()
        union.data[:] = 1
        return self._merged(union)

    @classmethod
    def _merged(cls, csc: Any) -> Columns:
        """Rows that occur twice in a column (two labels under one node) become one, with the larger value."""
        counts = np.diff(csc.indptr)
        fresh = np.ones(csc.nnz, dtype=bool)
        fresh[1:] = csc.indices[1:] != csc.indices[:-1]
        fresh[csc.indptr[:-1][counts > 0]] = True
        first = np.flatnonzero(fresh)
        start = np.concatenate([[0], np.cumsum(fresh)])[csc.indptr].astype(np.int64)
        if len(csc.data) == 0 or (csc.data == 1).all():
            value = np.empty(0, np.float32)
        else:
            value = np.maximum.reduceat(csc.data, first).astype(np.float32)
        return cls(start, csc.indices[first].astype(np.int32, copy=False), value, csc.shape[0])


@dataclass(frozen=True, eq=False)
class LayerProblem:
    """All that the weights of a layer depend on.

    A piece of a layer has some of its parents, with the rows that they need and the numbers that its parents and nodes
    have in the whole layer; each node then learns the same bits.
    """

    X: Any
    reaching: Columns  # by parent: the rows that its children learn from
    positives: Columns  # by node
    parent: Ints
    row_weights: npt.NDArray[np.float32] | None
    solver: Mapping[str, Any]
    parent_id: Ints | None = None  # None: their own numbers
    node_id: Ints | None = None


def layer_problem(
    problem: Problem, reaching: Columns, positives: Columns, parent: Ints, settings: Settings, seed: int
) -> LayerProblem:
    """What a layer is learned from."""
    told = {name: getattr(settings, name) for name in _TOLD_AS_THEY_ARE}
    solver = {**told, "C": cost_of_mistakes(problem, settings), "seed": seed % 2**64}
    solver["dense_from"] = problem.dense_from
    return LayerProblem(problem.X, reaching, positives, np.asarray(parent, np.int64), problem.row_weights, solver)


def learn_here(layer: LayerProblem, threads: int, watch: Watch | None) -> Learned:
    """The weights (features x nodes, CSC) and biases of a layer, learned by threads of this process."""
    nodes, X = len(layer.parent), layer.X
    counts = np.bincount(layer.parent, minlength=layer.reaching.count)
    none = np.empty(0, dtype=np.float32)
    rows = _core.SparseLines(
        X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False), X.data, X.shape[1]
    )
    reaching, positives = layer.reaching, layer.positives
    learned = _core.train_layer(
        x=rows,
        reaching=_core.SparseLines(reaching.start, reaching.row, none, reaching.rows),
        positives=_core.SparseLines(positives.start, positives.row, positives.value, positives.rows),
        child_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        child=np.lexsort((-np.diff(positives.start), layer.parent)).astype(np.int64),  # siblings of like size together
        row_weight=none if layer.row_weights is None else layer.row_weights,
        parent_id=_NO_IDS if layer.parent_id is None else layer.parent_id,
        node_id=_NO_IDS if layer.node_id is None else layer.node_id,
        settings=_solver_settings(layer.solver),
        threads=threads,
        watch=watch,
    )
    start, bias = np.empty(nodes + 1, np.int64), np.empty(nodes, np.float32)
    index, value = np.empty(len(learned), np.int32), np.empty(len(learned), np.float32)
    learned.take(start, index, value, bias)
    return sp.csc_matrix((value, index, start), shape=(X.shape[1], nodes)), bias


def _solver_settings(told: Mapping[str, Any]) -> Any:
    """The settings as the solver takes them."""
    solver = _core.SolverSettings()
    for name, value in told.items():
        setattr(solver, name, getattr(_core.Loss, value.replace("-", "_")) if name == "loss" else value)
    return solver
