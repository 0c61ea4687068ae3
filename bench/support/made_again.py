"""made_again.py — a vast model and queries in, whether its answers are those of weights made again from scratch out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import beamwood as bw
from beamwood import _core
from beamwood.storage.activations import Activation
from support.vast import Vast

Array = npt.NDArray[Any]
ACTIVATION = "hinge-3"


def check(vast: Vast, model: bw.Model, X: Any, weights: str) -> None:
    """Answers must be those of the search below, bit for bit."""
    again = Again(vast, weights)
    for beam in (10, 20) if vast.labels <= 10**7 else (10,):
        labels, scores = model.topk(X, 10, beam)
        for i in range(X.shape[0]):
            expected = again.search(X[i], 10, beam)
            if labels[i].tolist() != [label for label, _ in expected] or not np.array_equal(
                scores[i], np.array([score for _, score in expected], np.float32)
            ):
                sys.exit(f"query {i}, beam {beam}: {labels[i]}, {scores[i]}, expected {expected}")
    print(f"{X.shape[0]} queries checked against weights made again from scratch: the same labels and bits\n")


class Again:
    """Plain beam search over columns that are generated when they are asked for."""

    def __init__(self, vast: Vast, weights: str) -> None:
        self.vast, self.weights = vast, weights
        self.activation = Activation.parse(ACTIVATION, None)
        self.kept: dict[tuple[int, int], Any] = {}

    def search(self, row: Any, k: int, beam: int) -> list[tuple[int, float]]:
        """The best k labels and their scores."""
        found = [(0, np.float32(1))]
        last = len(self.vast.nodes) - 1
        for layer in range(last + 1):
            children: list[tuple[int, float]] = []
            for parent, score in found:
                first, sums = self.sums(layer, parent, row)
                activated = np.empty(len(sums), np.float32)
                _core.activate(self.activation.native, sums, activated)
                children += [(first + i, float(score * value)) for i, value in enumerate(activated)]
            children.sort(key=lambda pair: (-pair[1], pair[0]))
            found = [(node, np.float32(score)) for node, score in children[: beam if layer < last else k]]
        return [(node, float(score)) for node, score in found]

    def sums(self, layer: int, parent: int, row: Any) -> tuple[int, Array]:
        """The first child of a node, and the sums of all its children: float32, by rising feature."""
        first, end = (int(self.vast.child_starts[layer][p]) for p in (parent, parent + 1))
        if (layer, parent) not in self.kept:
            start, feature, weight = self.vast.columns(layer, first, end)
            columns = sp.csc_array((self.decoded(weight), feature, start), shape=(self.vast.features, end - first))
            if layer > 1:
                return first, self.added(columns.tocsr()[row.indices], row)
            self.kept[layer, parent] = columns.tocsr()
        return first, self.added(self.kept[layer, parent][row.indices], row)

    @staticmethod
    def added(rows: Any, row: Any) -> Array:
        sums = np.zeros(rows.shape[1], np.float32)
        for j, value in enumerate(row.data):
            at = slice(rows.indptr[j], rows.indptr[j + 1])
            sums[rows.indices[at]] += value * rows.data[at]
        return sums

    def decoded(self, weight: Array) -> Array:
        """What the weights of a chunk are once they are stored."""
        if self.weights == "f32":
            return weight
        if self.weights == "f16":
            return weight.astype(np.float16).astype(np.float32)
        scale = np.abs(weight).max() / np.float32(127)
        return np.clip(np.rint(weight / scale), -127, 127).astype(np.float32) * scale
