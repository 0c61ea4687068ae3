"""stored.py — a tree of a model in, its nodes and, of layers that are asked for, weights out; leaves grafted on it.

Most of what a model weighs lies in its last layer, which new labels do not touch: it is neither read nor built. Only
trees whose layers share chunks are read whole and built anew. Either way the same bytes come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.engine import Forests
from beamwood.inputs.matrices import columns_as_csr
from beamwood.storage.build import (
    Sections,
    TreeSize,
    build_tree,
    bundles,
    damaged,
    index_of_leaves,
    layer_name,
    node_arrays,
    root_of,
)
from beamwood.storage.layers import Layer, Nodes
from beamwood.storage.parts import ModelParts

Ints = npt.NDArray[np.int64]
_NO_CHUNK = np.uint32(0xFFFFFFFF)


class StoredTree:
    """A tree as it lies in a model. Immutable; layers are read when they are asked for."""

    def __init__(self, parts: ModelParts, forests: Forests, tree: int) -> None:
        self._parts, self._forests, self._tree = parts, forests, tree
        self.size = parts.shape.trees[tree]
        self.nodes: list[Nodes] = forests.nodes(tree)
        self._read: list[Layer] = []

    def weights(self, depth: int) -> Any:
        """Features x nodes, CSC."""
        if depth >= len(self._read):
            self._read = self._forests.layers(self._tree, depth + 1)
        return self._read[depth].weights

    def grown(self, grown: Sequence[Nodes], columns: Sequence[Any], threads: int) -> tuple[Sections, TreeSize]:
        """The arrays of the tree with further leaves at the end of its layers. columns: of each layer their weights."""
        starts = [self._array(depth, "child_start") for depth in range(len(grown))]
        if any(len(bundle) > 1 for bundle in bundles(starts)):
            return self._built(grown, columns, threads)
        shapes = _placed(grown)
        if any(len(bundle) > 1 for bundle in bundles([start for start, _ in shapes])):
            return self._built(grown, columns, threads)
        return self._grafted(grown, columns, shapes, threads)

    def _built(self, grown: Sequence[Nodes], columns: Sequence[Any], threads: int) -> tuple[Sections, TreeSize]:
        """The whole tree anew."""
        layers = [
            Layer(sp.hstack([self.weights(depth), columns[depth]], format="csc"), new.parent, new.bias, new.label)
            for depth, new in reversed(list(enumerate(grown)))
        ]
        arrays, size, _ = build_tree(
            layers[::-1], self._tree, self._parts.shape.features, threads, self._parts.shape.weights
        )
        return arrays, size

    def _grafted(
        self, grown: Sequence[Nodes], columns: Sequence[Any], shapes: list[tuple[Any, Ints]], threads: int
    ) -> tuple[Sections, TreeSize]:
        """Chunks that get leaves, and those above them, with what is new; the others as they are."""
        tree, features = self._tree, self._parts.shape.features
        deepest = max(depth for depth, more in enumerate(columns) if more.shape[1])
        grafter = _core.TreeGrafter(self._forests.cascade, tree)
        if not grafter.read(deepest, threads):
            raise damaged(deepest)
        sections: Sections = {}
        labels: list[Ints] = []
        for depth in reversed(range(len(grown))):
            child_start, order = shapes[depth]
            what = f"layer {depth}" if tree == 0 else f"layer {depth} of tree {tree}"
            nodes = grown[depth]
            label = np.asarray(nodes.label, np.int64)
            arrays = {"child_start": child_start, **node_arrays(nodes, label, order, len(order), what)}
            if depth > deepest:
                arrays |= self._as_it_is(depth, shapes[depth - 1][1])
            else:
                old_chunk = self._old_chunks(depth, shapes)
                arrays |= _grown_chunks(grafter, columns[depth], child_start, order, old_chunk, depth, threads)
            sections |= {layer_name(tree, depth, field): array for field, array in arrays.items() if array.size}
            labels.insert(0, label[order])
        sections[layer_name(tree, 0, "root")] = root_of(grafter, features)
        sections[f"tree{tree}/leaf_of_label"] = index_of_leaves(labels, f"tree {tree}")[0]
        nonzeros = [old + more.nnz for old, more in zip(self.size.nonzeros, columns, strict=True)]
        return sections, TreeSize(tuple(len(order) for _, order in shapes), tuple(nonzeros))

    def _array(self, depth: int, field: str) -> Any:
        return self._parts.sections[layer_name(self._tree, depth, field)]

    def _old_chunks(self, depth: int, shapes: list[tuple[Any, Ints]]) -> npt.NDArray[np.uint32]:
        """For each place of the layer above, as it becomes, the place that its node had; none for new leaves."""
        if depth == 0:
            return np.zeros(1, np.uint32)
        order = shapes[depth - 1][1]
        before = self.size.nodes[depth - 1]
        field = layer_name(self._tree, depth - 1, "order")
        place = np.arange(before)
        if field in self._parts.sections:
            place = np.argsort(self._parts.sections[field])
        old = np.full(len(order), _NO_CHUNK, np.uint32)
        was = order < before
        old[was] = place[order[was]]
        return old

    def _as_it_is(self, depth: int, order_above: Ints) -> Sections:
        """The chunks of a layer that does not grow; new leaves above it have empty ones."""
        start, words = self._array(depth, "thread_start"), self._array(depth, "threads")
        was = order_above < self.size.nodes[depth - 1]
        # A place's chunk is the next old one: old places keep their order, so an empty chunk begins where that does.
        at = np.concatenate([[0], np.cumsum(was)])
        fresh = np.asarray(start)[at]
        fresh[:-1][~was] &= ~np.uint64(1)
        return {"thread_start": fresh, "threads": words}


def _grown_chunks(
    grafter: Any, more: Any, child_start: Any, order: Ints, old_chunk: Any, depth: int, threads: int
) -> Sections:
    """The words of the chunks of a layer that grows, or lies above one that does."""
    by_node: Any = columns_as_csr(more, f"The weights of layer {depth}")
    column = np.maximum(order - (len(order) - more.shape[1]), 0).astype(np.uint32)
    start = np.empty(len(child_start), np.uint64)
    given = by_node.indptr.astype(np.int64), by_node.indices.astype(np.int32, copy=False), by_node.data
    size = grafter.measure(child_start, old_chunk, *given, column, start, threads)
    if not size:
        raise damaged(depth)
    words = np.empty(size, np.uint32)
    if not grafter.fill(words, threads):
        raise damaged(depth)
    return {"thread_start": start, "threads": words}


def _placed(grown: Sequence[Nodes]) -> list[tuple[Any, Ints]]:
    """Of each layer where children begin, and which node goes to each place: as build_tree has them."""
    placed: list[tuple[Any, Ints]] = []
    above, position = 1, np.zeros(1, np.int64)
    for nodes in grown:
        parent = position[np.asarray(nodes.parent, np.int64)]
        order = np.argsort(parent, kind="stable")
        child_start = np.zeros(above + 1, np.uint32)
        np.cumsum(np.bincount(parent, minlength=above), out=child_start[1:])
        placed.append((child_start, order))
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        above = len(order)
    return placed
