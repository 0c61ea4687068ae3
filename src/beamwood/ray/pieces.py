"""pieces.py — the problem of a layer in, pieces out, each with some parents and the rows that they need; and back.

The law: rows keep their order and nodes their numbers, so every node of a piece learns the bits that it learns in the
whole layer, wherever the layer is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.ray.learned import LearnedPiece
from beamwood.training.weights import Columns, Ints, LayerProblem, Learned

_LANES = 8  # siblings that are learned side by side
_BASE = 150 << 20  # bytes of a worker before it has anything to do
_ENTRY = 8  # bytes of one non-zero
_USUAL_PRUNE = 0.1  # from here on few weights per node are left


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a layer is cut: piece i has parents first[i] to first[i + 1]."""

    first: Ints
    work: npt.NDArray[np.float64]  # of each piece: what it costs, in entries visited
    order: Ints  # nodes by parent
    start: Ints  # of each parent: where its nodes start in `order`

    def __len__(self) -> int:
        return len(self.first) - 1

    def nodes(self, piece: int) -> Ints:
        """The nodes of a piece, in the order of the layer."""
        return np.sort(self.order[self.start[self.first[piece]] : self.start[self.first[piece + 1]]])


def cut(layer: LayerProblem, pieces: int, most_entries: int) -> Cut:
    """Cuts between parents: about `pieces` pieces of like work, and none with far more than `most_entries` entries.

    A parent is never cut: its children are told from each other by the same rows.
    """
    parents = layer.reaching.count
    entries = _entries(layer.reaching, np.diff(layer.X.indptr))
    counts = np.bincount(layer.parent, minlength=parents)
    work = np.where(counts > 0, entries * -(-counts // _LANES), 0.0)
    share = np.maximum(_cumulated(work) * pieces / max(work.sum(), 1.0), _cumulated(entries) / most_entries)
    at = np.floor(share[1:-1]).astype(np.int64)  # the piece that each parent but the first would start in
    first = np.concatenate([[0], 1 + np.flatnonzero(np.diff(np.concatenate([[0], at])) > 0), [parents]])
    first = np.unique(first).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Cut(first, np.add.reduceat(work, first[:-1]), np.argsort(layer.parent, kind="stable"), start)


def _entries(reaching: Columns, per_row: Ints) -> npt.NDArray[np.float64]:
    """Of each parent: the entries of the rows that reach it, and one per row."""
    summed = _cumulated(np.asarray(1.0 + per_row[reaching.row], np.float64))
    return np.asarray(summed[reaching.start[1:]] - summed[reaching.start[:-1]], np.float64)


def _cumulated(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(values)])


@dataclass(frozen=True, eq=False)
class Piece:
    """Some parents of a layer with their nodes; its rows may lie elsewhere."""

    problem: LayerProblem  # its X is None until `with_rows`
    rows: npt.NDArray[np.int32]  # of the whole X, rising: those that some parent needs
    per_row: Ints  # entries of each
    features: int

    def with_rows(self, X: Any) -> LayerProblem:
        """What can be learned, given these rows of X."""
        return replace(self.problem, X=X)

    @property
    def bytes_needed(self) -> int:
        """What learning it takes in a worker at most, its rows included; errs on the large side."""
        solver = self.problem.solver
        number = 8 if solver["eps"] < 1e-3 or solver["loss"] == "logistic" else 4
        entries = int(self.per_row.sum())
        state = len(self.rows) * (3 * _LANES * number + 48) + self.features * 4
        state += min(self.features, entries) * _LANES * number
        held = entries * _ENTRY * 3 + (len(self.problem.reaching.row) + len(self.problem.positives.row)) * 8
        return int(_BASE + held + state + self._weights() * 2 * _ENTRY)

    def _weights(self) -> float:
        """How many are learned at most; with the usual pruning, few more than a node's own rows have entries."""
        part = self.problem
        children = np.bincount(part.parent, minlength=part.reaching.count)
        most = float(children @ np.minimum(_entries(part.reaching, self.per_row), self.features))
        if part.solver["top_weights"]:
            most = min(most, len(part.parent) * float(part.solver["top_weights"]))
        return most if part.solver["prune"] < _USUAL_PRUNE else min(most, float(self.per_row[part.positives.row].sum()))


def piece(layer: LayerProblem, where: Cut, number: int) -> Piece:
    """One piece: its parents, their nodes, and which rows some of them need."""
    first, end = int(where.first[number]), int(where.first[number + 1])
    nodes = where.nodes(number)
    reaching, positives = _lines(layer.reaching, np.arange(first, end)), _lines(layer.positives, nodes)
    rows = np.unique(np.concatenate([reaching.row, positives.row]))
    problem = replace(
        layer,
        X=None,
        reaching=_renumbered(reaching, rows),
        positives=_renumbered(positives, rows),
        parent=layer.parent[nodes] - first,
        row_weights=None if layer.row_weights is None else layer.row_weights[rows],
        parent_id=np.arange(first, end, dtype=np.int64),
        node_id=nodes.astype(np.int64),
    )
    return Piece(problem, rows, np.diff(layer.X.indptr)[rows], layer.X.shape[1])


def rows_of(X: Any, rows: npt.NDArray[np.int32]) -> Any:
    """Some rows of a CSR matrix, in types that the solver takes as they are."""
    taken = X[rows]
    made = sp.csr_matrix((taken.data, taken.indices.astype(np.int32), taken.indptr.astype(np.int64)), shape=taken.shape)
    made.has_sorted_indices = made.has_canonical_format = True
    return made


def _lines(columns: Columns, which: Ints) -> Columns:
    """Some columns of many. Whether rows count differently is a fact of the layer, and stays as it is."""
    counts = np.diff(columns.start)[which]
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    at = np.repeat(columns.start[which] - start[:-1], counts) + np.arange(start[-1])
    value = columns.value[at] if len(columns.value) else columns.value
    return Columns(start, columns.row[at], value, columns.rows)


def _renumbered(columns: Columns, rows: npt.NDArray[np.int32]) -> Columns:
    place = np.searchsorted(rows, columns.row).astype(np.int32)
    return Columns(columns.start, place, columns.value, len(rows))


def joined(layer: LayerProblem, where: Cut, learned: Sequence[LearnedPiece]) -> Learned:
    """The weights and biases of the layer from those of all its pieces, which are let go of one after the other."""
    nodes = len(layer.parent)
    counts, bias = np.zeros(nodes, np.int64), np.empty(nodes, np.float32)
    for number, one in enumerate(learned):
        mine = where.nodes(number)
        counts[mine], bias[mine] = one.counts, one.bias
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    index, value = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    for number, one in enumerate(learned):
        first = np.cumsum(one.counts) - one.counts
        to = np.repeat(start[where.nodes(number)] - first, one.counts) + np.arange(one.counts.sum())
        index[to], value[to] = one.take()
    return sp.csc_matrix((value, index, start), shape=(layer.X.shape[1], nodes)), bias
