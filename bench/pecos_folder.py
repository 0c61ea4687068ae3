"""A folder of libpecos' XLinearModel in, layers out; and layers in, such a folder out.

Each layer folder holds W (features + 1 x nodes; the last row is the bias weight when `bias` is above zero)
and C (nodes x parents). The leaves' ids are the labels'.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
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


def _without_last_row(W: sp.csc_matrix) -> tuple[sp.csc_matrix, npt.NDArray[np.float32]]:
    """W without its last row, and that row dense; cheaper than slicing a large matrix by rows."""
    is_last = W.indices == W.shape[0] - 1
    last = np.zeros(W.shape[1], np.float32)
    last[np.repeat(np.arange(W.shape[1]), np.diff(W.indptr))[is_last]] = W.data[is_last]
    kept_before = np.concatenate([[0], np.cumsum(~is_last)])
    parts = W.data[~is_last], W.indices[~is_last], kept_before[W.indptr]
    return sp.csc_matrix(parts, shape=(W.shape[0] - 1, W.shape[1])), last


def write_layers(layers: list[Layer], folder: Path) -> None:
    """Saves layers whose last one holds the labels in order, so that libpecos can load them for prediction."""
    sizes = [layer.weights.shape for layer in layers]
    head = {"nr_features": sizes[0][0], "nr_labels": sizes[-1][1]}
    ranker = folder / "ranker"
    for depth, layer in enumerate(layers):
        _write_layer(layer, ranker / f"{depth}.model")
    _write_json(ranker, {"model": "HierarchicalMLModel", "depth": len(layers), **head})
    _write_json(folder, {})


def _write_layer(layer: Layer, folder: Path) -> None:
    nodes, parents = layer.weights.shape[1], int(layer.parent.max()) + 1
    bias = np.zeros(nodes, np.float32) if layer.bias is None else layer.bias
    W = sp.vstack([layer.weights, sp.csr_matrix(bias[None, :])], format="csc")
    C = sp.csc_matrix((np.ones(nodes, np.float32), (np.arange(nodes), layer.parent)), shape=(nodes, parents))
    predict = {"only_topk": 10, "post_processor": "l3-hinge"}
    sizes = {"nr_features": W.shape[0] - 1, "nr_labels": nodes, "nr_codes": parents}
    folder.mkdir(parents=True)
    _write_json(folder, {"model": "MLModel", "bias": 1.0, "pred_kwargs": predict, **sizes})
    for name, matrix in (("W", W), ("C", C)):
        sp.save_npz(folder / f"{name}.npz", sp.csc_matrix(matrix), compressed=False)


def _write_json(folder: Path, values: dict[str, Any]) -> None:
    (folder / "param.json").write_text(json.dumps(values))
