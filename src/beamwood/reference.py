"""reference.py — layers and queries in, ranked labels out, in plain numpy: Algorithm 1, the spec of every engine.

It is slow on purpose: one query, one feature at a time. Every kernel must give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.inputs.matrices import SparseMatrix
from beamwood.lexical.head import LISTED, ROWLESS, UNLISTED, Head
from beamwood.storage.activations import Activation
from beamwood.storage.layers import Layer

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = Union["sp.csr_array[np.float32]", "sp.csr_matrix[np.float32]"]  # queries; one query is one row


def rank(scores: Floats, ids: Ints, keep: int) -> Ints:
    """The law of one order: positions of the best `keep`: score falling, then id rising, NaN last."""
    return np.lexsort((ids, -scores, np.isnan(scores)))[:keep]


def products(query: Rows, weights: Rows) -> Floats:
    """The law of one sum: float32, from +0, x_j * w_j for rising feature j; no fused multiply-add."""
    z = np.zeros(weights.shape[1], np.float32)
    for feature, value in zip(query.indices, query.data, strict=True):
        row = slice(weights.indptr[feature], weights.indptr[feature + 1])
        z[weights.indices[row]] += value * weights.data[row]
    return z


def path_scores(layers: Sequence[Layer], query: Rows, activation: Activation) -> list[Floats]:
    """The score of every node of one tree, layer by layer. Only the path decides it; no beam or filter does."""
    every: list[Floats] = []
    above = np.full(1, activation.root_score, np.float32)
    for layer in layers:
        z = products(query, sp.csr_array(layer.weights, dtype=np.float32))
        if layer.bias is not None:
            z = z + np.asarray(layer.bias, np.float32)
        own = activation.scores(z)
        parent = np.asarray(layer.parent, np.int64)
        only_child = np.bincount(parent)[parent] == 1
        stands_in = only_child & np.isposinf(np.zeros(len(parent)) if layer.bias is None else layer.bias)
        parents = activation.handed_down(above[parent], stands_in)
        if activation.path == "product":
            own = parents * own
        elif activation.path != "last":
            own = parents + own
        every.append(own)
        above = own
    return every


def reached(
    layers: Sequence[Layer],
    query: Rows,
    activation: Activation,
    beam: int,
    allowed: Bools | None = None,
    least: int = 0,
) -> tuple[Ints, Floats]:
    """Every label that one tree reaches for one query with this beam, and its score.

    With a filter, nodes without an allowed label at or below them are as if they were not in the tree. Nodes that were
    met but found no place in the beam wait in their layer: while fewer than `least` labels are reached, the best node
    that waits in the deepest layer where any does is opened too.
    """
    scores, places = path_scores(layers, query, activation), places_of(layers)
    labels = [labels_of(layer, last=depth == len(layers) - 1) for depth, layer in enumerate(layers)]
    entered = nodes_entered(layers, labels, allowed)
    waiting = [np.zeros(0, np.int64) for _ in layers]
    found: list[Ints] = []
    shown: list[Floats] = []

    def open_nodes(depth: int, parents: Ints) -> None:
        """Their children, in layer `depth`: labels are reached, inner nodes wait."""
        children = np.flatnonzero(np.isin(layers[depth].parent, parents) & entered[depth])
        leaf = labels[depth][children] >= 0
        found.append(labels[depth][children[leaf]])
        shown.append(activation.leaf_scores(scores[depth][children[leaf]]))
        waiting[depth] = np.concatenate([waiting[depth], children[~leaf]])

    def best_waiting(depth: int, keep: int) -> Ints:
        """The best nodes that wait in a layer; they wait no longer."""
        there = waiting[depth]
        best = rank(scores[depth][there], places[depth][there], keep)
        waiting[depth] = np.delete(there, best)
        return there[best]

    open_nodes(0, np.zeros(1, np.int64))
    for depth in range(1, len(layers)):
        open_nodes(depth, best_waiting(depth - 1, beam))
    while sum(map(len, found)) < least and any(map(len, waiting)):
        deepest = max(depth for depth, there in enumerate(waiting) if len(there))
        open_nodes(deepest + 1, best_waiting(deepest, 1))
    return np.concatenate(found), np.concatenate(shown)


def places_of(layers: Sequence[Layer]) -> list[Ints]:
    """Where each node stands in its layer once siblings lie side by side: the id that the order law compares."""
    places = [np.zeros(1, np.int64)]
    for layer in layers:
        above = places[-1][np.asarray(layer.parent, np.int64)]
        places.append(np.argsort(np.argsort(above, kind="stable"), kind="stable"))
    return places[1:]


def nodes_entered(layers: Sequence[Layer], labels: Sequence[Ints], allowed: Bools | None) -> list[Bools]:
    """For each node whether an allowed label lies at or below it."""
    every = [np.ones(len(label), bool) for label in labels]
    if allowed is None:
        return every
    for depth in reversed(range(len(layers))):
        leaf = labels[depth] >= 0
        if depth + 1 < len(layers):
            every[depth][:] = False
            every[depth][np.asarray(layers[depth + 1].parent, np.int64)[every[depth + 1]]] = True
        every[depth][leaf] = allowed[labels[depth][leaf]]
    return every


def unit_length(query: Rows) -> Rows:
    """A row divided by its l2 norm: squares added in double for rising feature, each value rounded once; zeros stay."""
    total = 0.0
    for value in query.data.tolist():
        total += value * value
    scaled = query.data.astype(np.float64) / (math.sqrt(total) if total > 0 else 1.0)
    return sp.csr_array((scaled.astype(np.float32), query.indices, query.indptr), shape=query.shape)


def labels_of(layer: Layer, last: bool) -> Ints:
    """The label of each node, -1 for inner ones; by default the last layer's nodes are the labels in order."""
    if layer.label is not None:
        return np.asarray(layer.label, np.int64)
    count = len(layer.parent)
    return np.arange(count) if last else np.full(count, -1, np.int64)


def topk(
    trees: Sequence[Sequence[Layer]],
    X: SparseMatrix,
    activation: Activation,
    k: int = 10,
    beam: int = 10,
    allowed: Bools | None = None,
    unit_rows: bool = False,
) -> tuple[Ints, Floats]:
    """The best k labels of each row and their scores, padded with -1 and -inf.

    allowed: a filter, one truth value a label. Each tree then goes on until it has reached k allowed labels.
    unit_rows: rows are divided by their length first.
    """
    rows = _rising(X)
    least = 0 if allowed is None else k
    all_labels = np.full((rows.shape[0], k), -1, np.int64)
    all_scores = np.full((rows.shape[0], k), -np.inf, np.float32)
    for i in range(rows.shape[0]):
        query = unit_length(rows[[i]]) if unit_rows else rows[[i]]
        answers = [reached(layers, query, activation, beam, allowed, least) for layers in trees]
        labels, scores = answers[0] if len(answers) == 1 else mean_of(answers)
        best = rank(scores, labels, k)
        all_labels[i, : len(best)], all_scores[i, : len(best)] = labels[best], scores[best]
    return all_labels, all_scores


def _rising(X: Any) -> sp.csr_array[np.float32]:
    """A copy with rising features: sums are taken in that order, however a row was given."""
    rows: sp.csr_array[np.float32] = sp.csr_array(X, dtype=np.float32, copy=True)
    rows.sort_indices()
    return rows


def _turned(W: Any) -> sp.csr_array[np.float32]:
    """Features x labels from labels x features."""
    return sp.csr_array(W.T, dtype=np.float32)


def mean_of(answers: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Several trees: scores summed in tree order from +0, a label not reached adds nothing, one division; no -0."""
    total: dict[int, np.float32] = {}
    for labels, scores in answers:
        for label, score in zip(labels.tolist(), scores, strict=True):
            total[label] = total.get(label, np.float32(0)) + score
    sums = np.array(list(total.values()), np.float32)
    return np.array(list(total), np.int64), sums / np.float32(len(answers)) + np.float32(0)


def index_scores(W: SparseMatrix, bias: npt.ArrayLike | None, query: Rows) -> Floats:
    """The score of every row of W (labels x features) for one query: law 1's sum, the bias last."""
    z = products(query, _turned(W))
    return z if bias is None else z + np.asarray(bias, np.float32)


def index_topk(
    W: SparseMatrix,
    bias: npt.ArrayLike | None,
    queries: Rows,
    k: int,
    allowed: Bools | None = None,
    matched_only: bool = False,
) -> tuple[Ints, Floats]:
    """What an exact index answers: every allowed label is a candidate, or only those that score above 0."""
    labels = np.full((queries.shape[0], k), -1, np.int64)
    scores = np.full((queries.shape[0], k), -np.inf, np.float32)
    for i in range(queries.shape[0]):
        found = index_scores(W, bias, queries[[i]])
        ids = np.flatnonzero(np.ones(len(found), bool) if allowed is None else allowed)
        ids = ids[found[ids] > 0] if matched_only else ids
        best = ids[rank(found[ids], ids, k)]
        labels[i, : len(best)], scores[i, : len(best)] = best, found[best]
    return labels, scores


def label_scores(
    trees: Sequence[Sequence[Layer]], query: Rows, activation: Activation, labels: Sequence[int]
) -> Floats:
    """The score of each given label by its paths, one row: no beam decides it."""
    answers = []
    for layers in trees:
        by_label: dict[int, np.float32] = {}
        for depth, (layer, scores) in enumerate(zip(layers, path_scores(layers, query, activation), strict=True)):
            label = labels_of(layer, last=depth == len(layers) - 1)
            shown = activation.leaf_scores(scores)
            by_label |= {int(label[node]): shown[node] for node in np.flatnonzero(label >= 0)}
        answers.append((np.asarray(labels, np.int64), np.array([by_label[label] for label in labels], np.float32)))
    if len(answers) == 1:
        return answers[0][1]
    unique = [(np.arange(len(labels)), scores) for _, scores in answers]
    return mean_of(unique)[1]


def members_topk(
    trees: Sequence[Sequence[Layer]],
    words: SparseMatrix,
    head: Head,
    X: SparseMatrix,
    activation: Activation,
    k: int = 10,
    beam: int = 10,
    allowed: Bools | None = None,
    unit_rows: bool = False,
    rows_of_label: npt.ArrayLike | None = None,
) -> tuple[Ints, Floats, Ints]:
    """The best k labels of trees and words together, their scores, and which members listed them (bits 1 and 2).

    words: labels x features. Each member lists its best labels, those of the words only with a sum above 0; the head
    ranks the union.
    """
    queries, by_feature = _rising(X), _turned(words)
    labels = by_feature.shape[1]
    width = min(max(k, head.candidates), labels)
    listed, scored = topk(trees, queries, activation, width, beam, allowed, unit_rows)
    answers = np.full((queries.shape[0], k), -1, np.int64), np.full((queries.shape[0], k), -np.inf, np.float32)
    found = np.zeros((queries.shape[0], k), np.int64)
    for i in range(queries.shape[0]):
        query = unit_length(queries[[i]]) if unit_rows else queries[[i]]
        sums = products(query, by_feature)
        matched = np.flatnonzero((sums > 0) & (np.ones(labels, bool) if allowed is None else allowed))
        by_words = matched[rank(sums[matched], matched, width)]
        tree = dict(zip(listed[i].tolist(), scored[i], strict=True))
        tree.pop(-1, None)
        union = np.union1d(np.array(list(tree), np.int64), by_words)
        kind = np.array([LISTED if label in tree else UNLISTED for label in union.tolist()], np.uint8)
        known = np.ones(labels, bool) if rows_of_label is None else np.asarray(rows_of_label) > 0
        kind[~known[union]] = ROWLESS
        by_trees = np.array([tree.get(label, np.float32(0)) for label in union.tolist()], np.float32)
        most = np.full(len(union), sums[known].max(initial=0))
        final = head.scores(activation.native, by_trees, sums[union], most, kind)
        best = rank(final, union, k)
        answers[0][i, : len(best)], answers[1][i, : len(best)] = union[best], final[best]
        found[i, : len(best)] = np.isin(union[best], list(tree)) + 2 * np.isin(union[best], by_words)
    return *answers, found
