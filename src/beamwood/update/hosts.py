"""hosts.py — the layers of a tree in, the nodes that new labels join and the tree above them out; leaves in and out.

A cluster is a node all of whose children are leaves. New labels join the node above, beside the clusters, where a tree
has one: the way down to a single cluster was learned without their rows, and misses it too often. The law: no inner
node is added or changed, and leaves take no place in a beam, so searches go the same way with new leaves as without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.engine import Engine
from beamwood.ranker import Ranker
from beamwood.storage.activations import Activation
from beamwood.storage.assemble import from_layers
from beamwood.storage.layers import Layer, Nodes
from beamwood.update.stored import StoredTree

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def labels_of(layers: Sequence[Nodes] | Sequence[Layer], depth: int) -> Ints:
    """The label of each node of a layer, -1 for inner nodes."""
    layer = layers[depth]
    if layer.label is not None:
        return np.asarray(layer.label, np.int64)
    nodes = len(layer.parent)
    return np.arange(nodes) if depth == len(layers) - 1 else np.full(nodes, -1, np.int64)


@dataclass(frozen=True, eq=False)
class Hosts:
    """The nodes of a tree that new labels join: not the root, if it has inner nodes, and none below another.

    depth, node: where each is; depth -1 is the root.
    children:    how many nodes stand right below each.
    of_label:    the host that each label lies below, -1 for labels without one.
    high:        whether clusters stand below it, so that the way to its own leaves is shorter than to theirs.
    """

    depth: Ints
    node: Ints
    children: Ints
    of_label: Ints
    high: Bools

    @classmethod
    def of(cls, layers: Sequence[Nodes]) -> Hosts:
        """Those of a tree: topmost nodes that have a cluster for a child, and clusters that have no such ancestor."""
        labels = [labels_of(layers, depth) for depth in range(len(layers))]
        parents = [np.asarray(layer.parent, np.int64) for layer in layers]
        clusters = [
            _clusters(labels[d] < 0, parents[d], 1 if d == 0 else len(parents[d - 1])) for d in range(len(layers))
        ]
        of_label = np.full(sum(int((label >= 0).sum()) for label in labels), -1, np.int64)
        number = np.zeros(1, np.int64) if clusters[0][0] else np.full(1, -1, np.int64)  # of each node: its host, or -1
        places = [(-1, np.flatnonzero(number >= 0))]
        count = len(places[0][1])
        for depth, (label, parent) in enumerate(zip(labels, parents, strict=True)):
            number = number[parent]
            leaf = label >= 0
            of_label[label[leaf]] = number[leaf]
            if depth + 1 == len(layers):
                break
            near = clusters[depth + 1] & ~leaf
            if depth + 2 < len(layers):  # a cluster right below will do as well
                near[parents[depth + 1][clusters[depth + 2] & (labels[depth + 1] < 0)]] = True
            found = np.flatnonzero(near & (number < 0))
            number[found] = count + np.arange(len(found))
            count += len(found)
            places.append((depth, found))
        widths = [np.bincount(parents[depth + 1], minlength=1)[found] for depth, found in places]
        return cls(
            np.concatenate([np.full(len(found), depth, np.int64) for depth, found in places]),
            np.concatenate([found for _, found in places]),
            np.concatenate(widths).astype(np.int64),
            of_label,
            np.concatenate([~clusters[depth + 1][found] for depth, found in places]),
        )

    def __len__(self) -> int:
        return len(self.depth)

    def router(self, tree: StoredTree, activation: Activation) -> Ranker | None:
        """A model that ranks hosts: the tree above them. None where the root is the one host."""
        if (self.depth < 0).any():
            return None
        kept: list[Layer] = []
        layers = tree.nodes
        leads = self._leads(layers)
        place = np.zeros(1, np.int64)  # of the nodes of the layer above among those that are kept
        for depth in range(int(self.depth.max()) + 1):
            layer = layers[depth]
            above = place[np.asarray(layer.parent, np.int64)]
            inner = np.flatnonzero((labels_of(layers, depth) < 0) & (above >= 0) & leads[depth])
            number = np.full(len(layer.parent), -1, np.int64)
            here = self.depth == depth
            number[self.node[here]] = np.flatnonzero(here)
            bias = None if layer.bias is None else np.asarray(layer.bias)[inner]
            kept.append(Layer(sp.csc_array(tree.weights(depth))[:, inner], above[inner], bias, number[inner]))
            place = np.full(len(layer.parent), -1, np.int64)
            place[inner] = np.where(number[inner] < 0, np.arange(len(inner)), -1)  # nothing is kept below a host
        return Ranker(from_layers(kept, activation, False, None, None, {}), Engine(), None)

    def _leads(self, layers: Sequence[Nodes]) -> list[Bools]:
        """Of each layer down to the last host: which nodes are hosts or have one below them."""
        leads: list[Bools] = []
        for depth in reversed(range(int(self.depth.max()) + 1)):
            here = np.zeros(len(layers[depth].parent), bool)
            here[self.node[self.depth == depth]] = True
            if leads:
                here[np.asarray(layers[depth + 1].parent, np.int64)[leads[0]]] = True
            leads.insert(0, here)
        return leads

    def grafted(
        self, layers: Sequence[Nodes], home: Ints, weights: Any, bias: Any
    ) -> tuple[list[Nodes], list[sp.csc_array]]:
        """The layers with a leaf for each new label, below the host that is its home, and the weights of what is new.

        New labels are numbered on from the old ones, new nodes of a layer too.
        """
        first = len(self.of_label)
        columns = sp.csc_array(weights)
        grown: list[Nodes] = []
        more: list[sp.csc_array] = []
        for depth, layer in enumerate(layers):
            mine = np.flatnonzero(self.depth[home] == depth - 1)
            old = np.zeros(len(layer.parent), np.float32) if layer.bias is None else np.asarray(layer.bias)
            grown.append(
                Nodes(
                    np.concatenate([np.asarray(layer.parent, np.int64), self.node[home[mine]]]),
                    None if layer.bias is None and not bias[mine].any() else np.concatenate([old, bias[mine]]),
                    np.concatenate([labels_of(layers, depth), first + mine]),
                )
            )
            more.append(columns[:, mine])
        return grown, more


def _clusters(inner: Bools, parent: Ints, above: int) -> Bools:
    """Which nodes of a layer have only leaves for children; inner, parent: of the layer below it."""
    found = np.ones(above, bool)
    found[parent[inner]] = False
    return found


def without(layers: Sequence[Layer], stays: Bools) -> list[Layer]:
    """The layers without the labels that do not stay, and without nodes that have no label left below them.

    Labels are numbered anew, in their order.
    """
    number = np.where(stays, np.cumsum(stays) - 1, -1)
    kept: list[Layer] = []
    below: tuple[Layer, Ints] | None = None  # the next layer, and which of its nodes stay
    for depth in reversed(range(len(layers))):
        layer, label = layers[depth], labels_of(layers, depth)
        alive = (label >= 0) & np.where(label >= 0, stays[np.maximum(label, 0)], False)
        if below is not None:
            alive[np.asarray(below[0].parent, np.int64)[below[1]]] = True
            place = np.cumsum(alive) - 1
            if len(below[1]):
                kept.insert(0, _only(below[0], below[1], place[np.asarray(below[0].parent, np.int64)[below[1]]]))
        fresh = np.where(label >= 0, number[np.maximum(label, 0)], -1)
        below = replace(layer, label=fresh), np.flatnonzero(alive)
    assert below is not None
    return [_only(below[0], below[1], np.zeros(len(below[1]), np.int64)), *kept]


def _only(layer: Layer, nodes: Ints, parent: Ints) -> Layer:
    """Some nodes of a layer, below these parents."""
    bias = None if layer.bias is None else np.asarray(layer.bias)[nodes]
    label = None if layer.label is None else np.asarray(layer.label)[nodes]
    return Layer(sp.csc_array(layer.weights)[:, nodes], parent, bias, label)
