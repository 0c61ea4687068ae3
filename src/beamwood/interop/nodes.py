"""nodes.py — a parent list and one sparse column per node, as people keep trees of their own, in; a model out."""

from __future__ import annotations

from typing import Any

import numpy as np

from beamwood.errors import DataError
from beamwood.inputs.arguments import plain_array
from beamwood.inputs.matrices import columns_as_csr, is_sparse
from beamwood.interop.layering import layers_of_nodes
from beamwood.model import Model


def from_nodes(
    parent: Any, weights: Any, label: Any = None, bias: Any = None, *, clusters: bool = False, **form: Any
) -> Model:
    """A model from a tree given node by node.

    parent:   the parent of each node, -1 for top nodes; a single top node is a classifier at the root.
    weights:  scipy sparse (CSC is best), features x nodes: column j is the weight vector of node j.
    label:    the label of each node, -1 for none; a node may carry a label and have children. None: the nodes without
              children are the labels 0, 1, 2 …, in their order.
    bias:     one number per node.
    clusters: labels that end above the last layer keep one place in the beam, those of one parent together, as in
              Parabel, omikuji and LibMultiLabel; otherwise they join the answers at once.
    form:     activation, path, discount, unit_rows, names, keys, as in Model.from_layers.
    """
    if not is_sparse(weights) or weights.ndim != 2:
        raise DataError(f"weights is a {type(weights).__name__}; expected a scipy sparse matrix, features x nodes.")
    columns = columns_as_csr(weights, "weights").T
    parents = plain_array(parent)
    if parents.shape != (weights.shape[1],) or parents.dtype.kind not in "iu":
        raise DataError(f"parent has shape {parents.shape} and dtype {parents.dtype}; expected one integer per node.")
    if label is None:
        inner = parents[(parents >= 0) & (parents < len(parents))]
        leaf = np.ones(len(parents), bool)
        leaf[inner] = False
        label = np.where(leaf, np.cumsum(leaf) - 1, -1)
    return Model.from_layers(layers_of_nodes(parents, columns, label, bias, level_labels=clusters), **form)
