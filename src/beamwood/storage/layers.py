"""layers.py — one layer of a tree as people write it, into a model and out of it: weights and a parent each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one layer without their weights; see Layer."""

    parent: npt.NDArray[np.integer[Any]]
    bias: npt.NDArray[np.float32] | None = None
    label: npt.NDArray[np.integer[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Layer:
    """The nodes of one layer, in any order.

    weights: features x nodes, float32: column j is the weight vector of node j. Scipy sparse; or a numpy array, every
             number of which is stored.
    parent:  for each node the index of its parent in the layer above (all zeros in the top layer).
    bias:    one float per node, added last; +inf and -inf make a node that always scores best or worst.
    label:   the label id of each leaf, -1 for inner nodes. None: inner nodes everywhere but in the last layer,
             whose nodes are the labels 0..n-1 in order.
    """

    weights: Any
    parent: npt.NDArray[np.integer[Any]]
    bias: npt.NDArray[np.float32] | None = None
    label: npt.NDArray[np.integer[Any]] | None = None
