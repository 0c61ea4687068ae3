"""compress.py — a model's parts in, smaller ones and what that cost out: weights of 16 or 8 bits, fewer weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.engine import Forests
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores, positive
from beamwood.storage.build import WEIGHTS, Sections, TreeSize, build_tree
from beamwood.storage.layers import Layer
from beamwood.storage.parts import ModelParts

Array = npt.NDArray[Any]

LARGEST_HALF = 65504.0


@dataclass(frozen=True)
class Compression:
    """What a compression changed. precision is in percent and is there when data was given to measure on."""

    weights: str
    bytes_before: int
    bytes_after: int
    nonzeros_before: int
    nonzeros_after: int
    largest_error: float  # of a weight that was kept
    relative_error: float  # root of the mean square of errors over that of the weights
    precision_before: dict[int, float] = field(default_factory=dict)
    precision_after: dict[int, float] = field(default_factory=dict)

    def __str__(self) -> str:
        share = self.bytes_after / max(1, self.bytes_before)
        lines = [
            f"weights    {self.weights}, {self.nonzeros_after:,} of {self.nonzeros_before:,} kept",
            f"bytes      {self.bytes_before:,} → {self.bytes_after:,} ({share:.0%})",
            f"error      {self.largest_error:.3g} at most, {self.relative_error:.2%} of the weights' size on average",
        ]
        lines += [
            f"P@{rank:<8} {before:.2f} → {self.precision_after[rank]:.2f} ({self.precision_after[rank] - before:+.2f})"
            for rank, before in self.precision_before.items()
        ]
        return "\n".join(lines)


def compressed(
    parts: ModelParts, weights: str, top: int | None, threshold: float | None
) -> tuple[ModelParts, Compression]:
    """The parts of the smaller model, and what was lost; precision is for others to measure."""
    if weights not in WEIGHTS:
        raise SettingsError(f"weights={weights!r} is not known. Use {', '.join(map(repr, WEIGHTS))}.")
    top = None if top is None else positive(top, "top")
    real = isinstance(threshold, (int, float, np.integer, np.floating)) and not isinstance(threshold, bool)
    if threshold is not None and not (real and 0 <= threshold < np.inf):
        raise SettingsError(
            f"threshold is {threshold!r:.80}; expected a number from 0 on. Weights of a smaller size are dropped."
        )
    shape = parts.shape
    if not shape.trees:
        raise SettingsError(f"This model is an index; expected trees. Build it again with weights={weights!r}.")
    if shape.weights != "f32":
        raise SettingsError(f"This model has {shape.weights} weights already. Compress the one it was made from.")
    forests = Forests(parts)
    sections: Sections = {n: a for n, a in parts.sections.items() if not n.startswith("tree")}
    sizes: list[TreeSize] = []
    kept: list[list[Layer]] = []
    for tree in range(len(shape.trees)):
        layers = [pruned(layer, top, threshold) for layer in forests.layers(tree)]
        if weights == "f16":
            check_halves(layers)
        arrays, size, _ = build_tree(layers, tree, shape.features, cores(), weights)
        sections |= arrays
        sizes.append(size)
        kept.append(layers)
    small = ModelParts(replace(shape, trees=tuple(sizes), weights=weights), sections)
    return small, loss_between(parts, small, kept)


def pruned(layer: Layer, top: int | None, threshold: float | None) -> Layer:
    """The same layer with the largest `top` weights of each node, and none smaller than the threshold."""
    if top is None and threshold is None:
        return layer
    columns = sp.csc_array(layer.weights)
    size = np.abs(columns.data)
    column = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
    keep = np.ones(len(size), bool) if threshold is None else size >= threshold
    if top is not None:
        order = np.lexsort((columns.indices, -size, column))  # of equal weights the first features
        rank = np.empty(len(size), np.int64)
        rank[order] = np.arange(len(size)) - columns.indptr[:-1].astype(np.int64)[column[order]]
        keep &= rank < top
    start = np.concatenate([[0], np.cumsum(keep)])[columns.indptr]
    fewer = sp.csc_array((columns.data[keep], columns.indices[keep], start), shape=columns.shape)
    return replace(layer, weights=fewer)


def check_halves(layers: list[Layer]) -> None:
    """Whether 16 bits can hold these weights."""
    largest = max((float(np.abs(layer.weights.data).max()) for layer in layers if layer.weights.nnz), default=0.0)
    if largest > LARGEST_HALF:
        raise SettingsError(
            f"The model has a weight of size {largest:.3g}; f16 reaches {LARGEST_HALF:,.0f}. Use weights='u8', or "
            "scale the model's weights down."
        )


def loss_between(parts: ModelParts, small: ModelParts, kept: list[list[Layer]]) -> Compression:
    """What was lost between two models; kept: the weights that the small one was made from."""
    largest, squares, whole = 0.0, 0.0, 0.0
    forests = Forests(small)
    for tree, layers in enumerate(kept):
        for before, after in zip(layers, forests.layers(tree), strict=True):
            old = sp.csc_array(before.weights).data.astype(np.float64)
            error = after.weights.data - old
            largest = max(largest, float(np.abs(error).max(initial=0.0)))
            squares, whole = squares + float(error @ error), whole + float(old @ old)
    one, other = parts.info(), small.info()
    return Compression(
        small.shape.weights,
        one["bytes_of_weights"],
        other["bytes_of_weights"],
        one["nonzeros"],
        other["nonzeros"],
        largest,
        float(np.sqrt(squares / whole)) if whole else 0.0,
    )
