"""postings.py — sparse rows, one per label, in, the arrays of their inverted lists out; those in, native lists out.

The law: what the native lists answer is the exact best k of x · w + b, each score law 1's sum. Layout and search are in
native/include/beamwood/index/, the arrays in FORMAT.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import SettingsError
from beamwood.storage.build import WEIGHTS, Sections
from beamwood.storage.shape import IndexShape

Array = npt.NDArray[Any]

FIELDS = {
    "start": np.uint64,
    "words": np.uint16,
    "top": np.float32,
    "scale": np.float32,
    "bias": np.float32,
    "dense": np.uint32,
    "codes": np.uint8,
}
LARGEST_HALF = 65504.0
PREFIX = "index/"


def postings_sections(
    W: Any,
    bias: npt.NDArray[np.float32] | None = None,
    *,
    weights: str = "f32",
    matched_only: bool = False,
    threads: int = 1,
    kept: npt.NDArray[np.float32] | None = None,
) -> tuple[Sections, IndexShape]:
    """The arrays of a canonical float32 CSR matrix, labels x features, and what describes them.

    weights: "f32"; or "f16" and "u8", which are rounded: answers are exact for the rounded weights.
    matched_only: only labels that score above 0 are answers; otherwise every label is one.
    kept: of "u8", the scale of each list that was there before, 0 for one that was not: weights keep their bytes.
    """
    kind = kind_of(weights)
    if weights == "f16" and W.nnz and float(np.abs(W.data).max()) > LARGEST_HALF:
        raise SettingsError(
            f"W has a weight of size {float(np.abs(W.data).max()):.3g}; expected at most {LARGEST_HALF:,.0f} with "
            "weights='f16'. Use weights='u8', or scale the weights down."
        )
    offsets, features = W.indptr.astype(np.int64, copy=False), W.indices.astype(np.int32, copy=False)
    scales = np.zeros(0, np.float32) if kept is None else kept
    built = _core.build_postings(offsets, features, W.data, W.shape[1], kind, threads, scales)
    arrays = dict(zip(("start", "words", "top", "scale", "dense", "codes"), built, strict=True))
    if bias is not None:
        arrays["bias"] = bias
    shape = IndexShape(int(np.count_nonzero(W.data)), weights, matched_only)
    return {PREFIX + name: array for name, array in arrays.items() if array.size}, shape


def native_postings(sections: Mapping[str, Array], features: int, labels: int, shape: IndexShape) -> _core.Postings:
    """The native lists over a model's arrays, which may be damaged: then a ValueError or a TypeError says so."""
    arrays = [sections.get(PREFIX + name, np.zeros(0, dtype)) for name, dtype in FIELDS.items()]
    for (name, dtype), array in zip(FIELDS.items(), arrays, strict=True):
        if array.dtype != dtype or array.ndim != 1:
            raise ValueError(f"{PREFIX}{name} has dtype {array.dtype}")
    make: Any = _core.Postings  # one argument per field
    made: _core.Postings = make(features, labels, kind_of(shape.weights), *arrays, shape.matched_only)
    return made


def kind_of(weights: Any) -> int:
    """The number of a way to store weights."""
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise SettingsError(f"weights is {weights!r:.80}; expected one of {', '.join(map(repr, WEIGHTS))}.")
    return WEIGHTS.index(weights)
