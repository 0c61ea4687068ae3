"""Layers and queries in, ranked labels out, in plain numpy: Algorithm 1 word for word. The spec of every engine.

It is slow on purpose: one query, one feature at a time. Every kernel must give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.activations import Activation
from beamwood.layers import Layer

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def rank(scores: Floats, ids: Ints, keep: int) -> Ints:
    """The law of one order: positions of the best `keep`: score falling, then id rising, NaN last."""
    return np.lexsort((ids, -scores, np.isnan(scores)))[:keep]


def products(query: Any, weights: Any) -> Floats:
    """The law of one sum: float32, from +0, x_j * w_j for rising feature j; no fused multiply-add."""
    z = np.zeros(weights.shape[1], np.float32)
    for feature, value in zip(query.indices, query.data, strict=True):
        row = slice(weights.indptr[feature], weights.indptr[feature + 1])
        z[weights.indices[row]] += value * weights.data[row]
    return z


def reached(layers: Sequence[Layer], query: Any, activation: Activation, beam: int) -> tuple[Ints, Floats]:
    """Every label that one tree reaches for one query with this beam, and its score."""
    labels: list[Ints] = []
    shown: list[Floats] = []
    nodes, scores = np.zeros(1, np.int64), np.full(1, activation.root_score, np.float32)
    offset = np.zeros(1, np.int64)  # where each node of the layer above stands inside the tree
    for depth, layer in enumerate(layers):
        parent = np.asarray(layer.parent, np.int64)
        inside = np.argsort(np.argsort(offset[parent], kind="stable"), kind="stable")  # siblings side by side
        beam_score = np.zeros(len(offset), np.float32)
        in_beam = np.zeros(len(offset), bool)
        beam_score[nodes], in_beam[nodes] = scores, True
        candidates = np.flatnonzero(in_beam[parent])
        z = products(query, sp.csr_array(layer.weights, dtype=np.float32))
        if layer.bias is not None:
            z = z + np.asarray(layer.bias, np.float32)
        own = activation.scores(z[candidates])
        above = activation.handed_down(beam_score[parent[candidates]])
        if activation.path == "product":
            own = above * own
        elif activation.path != "last":
            own = above + own
        label = labels_of(layer, last=depth == len(layers) - 1)[candidates]
        leaf = label >= 0
        labels.append(label[leaf])
        shown.append(activation.leaf_scores(own[leaf]))
        inner, inner_scores = candidates[~leaf], own[~leaf]
        kept = rank(inner_scores, inside[inner], beam)
        nodes, scores, offset = inner[kept], inner_scores[kept], inside
    return np.concatenate(labels), np.concatenate(shown)


def unit_length(query: Any) -> Any:
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
    X: Any,
    activation: Activation,
    k: int = 10,
    beam: int = 10,
    unit_rows: bool = False,
) -> tuple[Ints, Floats]:
    """The best k labels of each row and their scores, padded with -1 and -inf. unit_rows: rows are scaled first."""
    X = sp.csr_array(X, dtype=np.float32)
    all_labels = np.full((X.shape[0], k), -1, np.int64)
    all_scores = np.full((X.shape[0], k), -np.inf, np.float32)
    for i in range(X.shape[0]):
        query = unit_length(X[[i]]) if unit_rows else X[[i]]
        answers = [reached(layers, query, activation, beam) for layers in trees]
        labels, scores = answers[0] if len(answers) == 1 else mean_of(answers)
        best = rank(scores, labels, k)
        all_labels[i, : len(best)], all_scores[i, : len(best)] = labels[best], scores[best]
    return all_labels, all_scores


def mean_of(answers: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Several trees: scores summed in tree order from +0, a label not reached adds nothing, one division; no -0."""
    total: dict[int, np.float32] = {}
    for labels, scores in answers:
        for label, score in zip(labels.tolist(), scores, strict=True):
            total[label] = total.get(label, np.float32(0)) + score
    sums = np.array(list(total.values()), np.float32)
    return np.array(list(total), np.int64), sums / np.float32(len(answers)) + np.float32(0)
