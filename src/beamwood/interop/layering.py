"""layering.py — nodes with parents in, layers out; and layers in, layers whose labels all lie in the last one.

Foreign trees are lists of nodes; ours are layers. What a foreign tree has and ours has not is said with what ours has:
a label on an inner node is one more child that is certain (its bias is +inf), and a group of labels that keeps one
place in the beam until the end is hung on a chain of certain nodes that reaches down to the last layer but one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.matrices import as_float32, as_numbers
from beamwood.interop.foreign import MOST_LAYERS
from beamwood.storage.layers import Layer

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_MOST_MISSING = 64  # labels without a leaf, as a multiple of those with one
_MOST_PADS = 16  # constant nodes that padding may add, as a multiple of the tree's nodes


def depths_of(parent: Ints) -> Ints:
    """The depth of each node below the top nodes, whose parent is -1 and whose depth is 0."""
    nodes = len(parent)
    outside = np.flatnonzero((parent < -1) | (parent >= nodes))
    if len(outside):
        raise DataError(
            f"Node {outside[0]} has parent {parent[outside[0]]}; expected 0 to {nodes - 1:,}, or -1 for a top node."
        )
    depth = np.full(nodes, -1, np.int64)
    current = np.flatnonzero(parent < 0)
    order = np.argsort(parent, kind="stable")
    start = np.searchsorted(parent[order], np.arange(nodes + 1))
    level = 0
    while len(current):
        if level >= MOST_LAYERS:
            raise DataError(f"The tree is more than {MOST_LAYERS} layers deep; expected fewer.")
        depth[current] = level
        counts = start[current + 1] - start[current]
        first = np.repeat(start[current] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        current = order[first + np.arange(int(counts.sum()))]
        level += 1
    lost = np.flatnonzero(depth < 0)
    if len(lost):
        raise DataError(f"Node {lost[0]} is its own ancestor; expected parents that lead to a top node.")
    return depth


def layers_of_nodes(
    parent: Any,
    weights: Any,
    label: Any,
    bias: Any = None,
    *,
    level_labels: bool = False,
    labels: int | None = None,
) -> list[Layer]:
    """The layers of a tree given node by node.

    parent:  the parent of each node, -1 for top nodes. A single top node is a classifier at the root.
    weights: scipy sparse, features x nodes: column j is the weight vector of node j.
    label:   the label of each node, -1 for none. A node may carry a label and have children.
    bias:    one number per node, or none.
    level_labels: bring all labels down to the last layer; a group of labels then keeps one place in the beam.
    labels:  how many there are; those that no node carries are hung up as leaves that score worst.
    """
    tree = _Nodes(parent, weights, label, bias)
    tree.move_inner_labels_down()
    if level_labels:
        tree.level_labels()
    if labels is not None:
        tree.hang_up_missing(labels)
    return tree.layers()


class _Nodes:
    """A tree node by node. Nodes that are added have no column: they are constant."""

    def __init__(self, parent: Any, weights: Any, label: Any, bias: Any) -> None:
        self.weights = sp.csc_array(weights)
        nodes = self.weights.shape[1]
        self.parent: Ints = as_numbers(parent, nodes, "parent", "node", whole=True).astype(np.int64)
        self.label: Ints = as_numbers(label, nodes, "label", "node", whole=True).astype(np.int64)
        self.bias: Floats = np.zeros(nodes, np.float32)
        if bias is not None:
            self.bias = as_float32(as_numbers(bias, nodes, "bias", "node"), "bias")
        self.column: Ints = np.arange(nodes)

    def add(self, parent: Ints, label: Ints, bias: float = np.inf) -> Ints:
        """New constant nodes, certain ones by default; their numbers."""
        first, count = len(self.parent), len(parent)
        self.parent = np.concatenate([self.parent, parent])
        self.label = np.concatenate([self.label, label])
        self.bias = np.concatenate([self.bias, np.full(count, bias, np.float32)])
        self.column = np.concatenate([self.column, np.full(count, -1)])
        return np.arange(first, first + count)

    def move_inner_labels_down(self) -> None:
        """A label on a node with children goes to one more child that is as good as the node itself."""
        inside = self.parent[(self.parent >= 0) & (self.parent < len(self.parent))]
        has_child = np.zeros(len(self.parent), bool)
        has_child[inside] = True
        both = np.flatnonzero(has_child & (self.label >= 0))
        if len(both):
            self.add(both, self.label[both])
            self.label[both] = -1

    def level_labels(self) -> None:
        """Hangs the labels of a node that end above the last layer on a chain of certain nodes."""
        depth = depths_of(self.parent)
        leaf = self.label >= 0
        deepest = int(depth[leaf].max(initial=0))
        early = np.flatnonzero(leaf & (depth < deepest))
        groups, group_of = np.unique(self.parent[early], return_inverse=True)
        above = np.full(len(groups), -1, np.int64)
        above[group_of] = depth[early]
        missing = deepest - above  # constant nodes that each group needs
        if int(missing.sum()) > _MOST_PADS * len(self.parent) + 4096:
            raise DataError(f"The tree is too uneven: {int(missing.sum()):,} constant nodes would make it even.")
        holder = groups.copy()
        while (open_ := np.flatnonzero(missing > 0)).size:
            holder[open_] = self.add(holder[open_], np.full(len(open_), -1, np.int64))
            missing[open_] -= 1
        self.parent[early] = holder[group_of]

    def hang_up_missing(self, labels: int) -> None:
        """Labels that no node carries become the worst of the leaves, shared out over the parents of leaves."""
        leaf = self.label >= 0
        if int(self.label.max(initial=-1)) >= labels or not leaf.any():
            raise DataError(f"The largest label is {self.label.max(initial=-1)}; expected 0 to {labels - 1:,}.")
        missing = labels - len(np.unique(self.label[leaf]))
        if missing > _MOST_MISSING * int(leaf.sum()) + 4096:
            raise DataError(
                f"Only {int(leaf.sum()):,} of {labels:,} labels have a leaf; expected most. Number labels from 0."
            )
        if missing:
            absent = np.ones(labels, bool)
            absent[self.label[leaf]] = False
            holders = np.unique(self.parent[leaf])
            orphans = np.flatnonzero(absent)
            self.add(holders[np.arange(len(orphans)) % len(holders)], orphans, -np.inf)

    def layers(self) -> list[Layer]:
        """Layer by layer from the top, nodes in the order of their numbers."""
        depth = depths_of(self.parent)
        constant = not len(self.bias) or not self.bias.any()
        number = np.zeros(len(self.parent), np.int64)
        layers = []
        for level in range(int(depth.max(initial=-1)) + 1):
            nodes = np.flatnonzero(depth == level)
            number[nodes] = np.arange(len(nodes))
            parent = np.zeros(len(nodes), np.int64) if level == 0 else number[self.parent[nodes]]
            bias = None if constant else self.bias[nodes]
            layers.append(Layer(self._columns(nodes), parent, bias, self.label[nodes]))
        return layers

    def _columns(self, nodes: Ints) -> Any:
        column = self.column[nodes]
        has = column >= 0
        if has.all():
            return self.weights[:, column]
        some = self.weights[:, column[has]]
        lengths = np.zeros(len(nodes), np.int64)
        lengths[has] = np.diff(some.indptr)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return sp.csc_array((some.data, some.indices, indptr), shape=(self.weights.shape[0], len(nodes)))


def at_one_depth(layers: Sequence[Layer]) -> tuple[list[Layer], bool]:
    """The same tree with every label in the last layer, below chains of certain nodes, and whether that took any."""
    layers = list(layers)
    made: list[Layer] = []
    changed = False
    waiting: list[tuple[int, int]] = []  # (node of the layer above in the new numbering, label)
    number_above = np.zeros(1, np.int64)
    for depth, layer in enumerate(layers):
        last = depth == len(layers) - 1
        nodes = layer.weights.shape[1]
        label = given_labels(layer, last)
        early = np.flatnonzero((label >= 0) & (not last))
        chain = [(node, name) for node, name in waiting]
        parent = np.concatenate([number_above[np.asarray(layer.parent, np.int64)], [node for node, _ in chain]])
        bias = np.zeros(nodes, np.float32) if layer.bias is None else np.asarray(layer.bias, np.float32)
        weights: Any = sp.csc_array(layer.weights)
        if chain:
            changed = True
            bias = np.concatenate([bias, np.full(len(chain), np.inf, np.float32)])
            pointers = np.concatenate([weights.indptr, np.full(len(chain), weights.indptr[-1], weights.indptr.dtype)])
            size = (weights.shape[0], nodes + len(chain))
            weights = sp.csc_array((weights.data, weights.indices, pointers), shape=size)
        new_label = np.concatenate([np.where(last, label, -1), [name if last else -1 for _, name in chain]])
        made.append(Layer(weights, parent.astype(np.int64), bias, new_label.astype(np.int64)))
        waiting = [(int(node), int(label[node])) for node in early]
        waiting += [(nodes + i, name) for i, (_, name) in enumerate(chain)]
        number_above = np.arange(nodes)
    return made, changed


def given_labels(layer: Layer, last: bool) -> Ints:
    """The label of each node, the default spelled out."""
    if layer.label is not None:
        return np.asarray(layer.label, np.int64)
    nodes = layer.weights.shape[1]
    return np.arange(nodes) if last else np.full(nodes, -1, np.int64)


def labels_in_order(layers: Sequence[Layer]) -> list[Layer]:
    """The same tree with siblings side by side in inner layers, and node j of the last layer carrying label j."""
    made: list[Layer] = []
    place_above = np.zeros(1, np.int64)
    for depth, layer in enumerate(layers):
        last = depth == len(layers) - 1
        parent = place_above[np.asarray(layer.parent, np.int64)]
        order = np.argsort(given_labels(layer, True) if last else parent, kind="stable")
        bias = None if layer.bias is None else np.asarray(layer.bias, np.float32)[order]
        moved = bool((np.diff(order) != 1).any())  # large matrices are copied only when they must
        weights: Any = sp.csc_array(layer.weights)
        made.append(Layer(weights[:, order] if moved else weights, parent[order], bias))
        place_above = np.empty(len(order), np.int64)
        place_above[order] = np.arange(len(order))
    return made
