"""libmultilabel.py — a linear tree model of LibMultiLabel, in memory, in; a model out. Its files are pickles: not read.

Its trees add log scores along the path and show exp: log sigmoid(A z) in releases whose predict_values has a parameter
`prob_A`, -max(0, 1 - z)² in older ones. Leaves that are reached early keep one place in the beam until the end, an
ensemble is the mean of its trees, and the weights of all nodes lie side by side in one matrix, the children of a node
from `node_ptr[index]` on.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.interop.layering import layers_of_nodes
from beamwood.model import Model

KIND = "LibMultiLabel linear tree"


def from_libmultilabel(tree: Any, prob_A: float | None = None) -> Model:
    """What `libmultilabel.linear.train_tree` or `train_ensemble_tree` returned, as a model that predicts the same.

    prob_A: as in its predict_values; None takes the default there. A bias that it was trained with is taken from the
    last row of its weights: X is given without that column.
    """
    if hasattr(tree, "tree_models"):
        return Model.from_trees([from_libmultilabel(one, prob_A) for one in tree.tree_models])
    for name in ("root", "flat_model", "node_ptr", "predict_values"):
        if not hasattr(tree, name):
            raise DataError(
                f"tree is a {type(tree).__name__} without {name}; "
                "expected what libmultilabel.linear.train_tree returns."
            )
    scale = inspect.signature(tree.predict_values).parameters.get("prob_A")
    factor = 1.0 if scale is None else float(scale.default if prob_A is None else prob_A)
    if scale is None and prob_A is not None:
        raise DataError(
            f"prob_A is {prob_A!r}; expected None, as this release of LibMultiLabel has none. Leave it out."
        )
    weights, bias = _weights(tree.flat_model, np.float32(factor))
    parent, label = _nodes(tree, weights.shape[1])
    layers = layers_of_nodes(parent, weights, label, bias, level_labels=True)
    activation = "log-hinge-2" if scale is None else "log-sigmoid"
    return Model.from_layers(layers, activation=activation, path="log-exp", settings={"made_by": KIND})


def _nodes(tree: Any, count: int) -> tuple[Any, Any]:
    """The parent and the label of each column of the weights."""
    starts = np.asarray(tree.node_ptr).astype(np.int64)
    parent, label = np.full(count, -2, np.int64), np.full(count, -1, np.int64)
    waiting = [(tree.root, -1)]
    while waiting:
        node, own = waiting.pop()
        index = int(node.index)
        if not 0 <= index < len(starts) - 1:
            raise DataError(f"node {index} has no weights; expected nodes below {len(starts) - 1:,}, as node_ptr says.")
        children, names = list(node.children), np.asarray(node.label_map).astype(np.int64)
        columns = np.arange(starts[index], starts[index + 1])
        below = len(children) or len(names)
        if len(columns) != below or (below and not 0 <= columns[0] <= columns[-1] < count):
            raise DataError(f"node {index} has {len(columns):,} columns; expected {below:,}, one per child.")
        parent[columns] = own
        if children:
            waiting += [(child, int(column)) for child, column in zip(children, columns, strict=True)]
        else:
            label[columns] = names
    if (parent == -2).any():
        raise DataError(
            f"column {np.flatnonzero(parent == -2)[0]} of the weights belongs to no node; expected one for each."
        )
    return parent, label


def _weights(flat: Any, factor: np.float32) -> tuple[Any, Any]:
    """Features x columns, and the bias row, which stands last when there is one."""
    weights: Any = sp.csc_array(sp.csc_matrix(flat.weights), dtype=np.float32) * factor
    scale = float(getattr(flat, "bias", -1.0))
    if scale <= 0:
        return weights, None
    rows = sp.csr_array(weights)
    return sp.csc_array(rows[:-1]), (rows[[-1]].toarray()[0] * np.float32(scale)).astype(np.float32)
