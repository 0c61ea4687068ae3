"""A folder that libpecos' XLinearModel saved in, a list of layers out.

Each layer folder holds W (features + 1 x nodes; the last row is the bias weight when `bias` is above zero)
and C (nodes x parents). The leaves' ids are the labels'.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from beamwood.layers import Layer


def read_layers(folder: Path) -> list[Layer]:
    """The layers from the top down."""
    depth = json.loads((folder / "ranker" / "param.json").read_text())["depth"]
    return [_read_layer(folder / "ranker" / f"{d}.model") for d in range(depth)]


def _read_layer(folder: Path) -> Layer:
    scale = np.float32(json.loads((folder / "param.json").read_text())["bias"])
    W = sp.csc_matrix(sp.load_npz(folder / "W.npz"), dtype=np.float32)
    W.sort_indices()
    C = sp.csr_matrix(sp.load_npz(folder / "C.npz"))
    if np.any(np.diff(C.indptr) != 1):
        raise ValueError(f"{folder}: every node must have one parent")
    bias = None
    if scale > 0:
        W, last = _without_last_row(W)
        bias = last * scale
    return Layer(weights=W, parent=C.indices.astype(np.int64), bias=bias)


def _without_last_row(W: sp.csc_matrix) -> tuple[sp.csc_matrix, np.ndarray]:
    """W without its last row, and that row dense; cheaper than slicing a large matrix by rows."""
    is_last = W.indices == W.shape[0] - 1
    last = np.zeros(W.shape[1], np.float32)
    last[np.repeat(np.arange(W.shape[1]), np.diff(W.indptr))[is_last]] = W.data[is_last]
    kept_before = np.concatenate([[0], np.cumsum(~is_last)])
    parts = W.data[~is_last], W.indices[~is_last], kept_before[W.indptr]
    return sp.csc_matrix(parts, shape=(W.shape[0] - 1, W.shape[1])), last
