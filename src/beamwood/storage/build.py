"""build.py — layers in, the arrays of a cascade tree out; and back, bit for bit. Checks what people can get wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, FormatError
from beamwood.inputs.arguments import plain_array
from beamwood.inputs.matrices import as_float32, columns_as_csr, is_sparse, whole_columns
from beamwood.storage.layers import Layer, Nodes

Array = npt.NDArray[Any]
Sections = dict[str, Array]  # the arrays of a model by name; one that is not there is empty

NO_LABEL = np.uint32(0xFFFFFFFF)
WEIGHTS = tuple(kind.name for kind in _core.WeightKind)


@dataclass(frozen=True)
class TreeSize:
    """The numbers of a tree that its arrays are read with, from the top layer down."""

    nodes: tuple[int, ...]
    nonzeros: tuple[int, ...]


def layer_name(tree: int, layer: int, field: str) -> str:
    """What an array of a layer is called in a model and its file."""
    return f"tree{tree}/layer{layer}/{field}"


@dataclass(frozen=True)
class Placed:
    """A layer that was checked: its columns, and where they go in the tree."""

    columns: Any
    child_start: Array
    order: Array
    what: str  # its name in messages


def build_tree(
    layers: Sequence[Layer], tree: int, features: int, threads: int, weights: str = "f32"
) -> tuple[Sections, TreeSize, int]:
    """The arrays of one tree, its size, and its number of labels."""
    if not layers:
        raise DataError("The list of layers is empty; expected at least one layer.")
    sections: Sections = {}
    placed: list[Placed] = []
    nodes_above, position_above = 1, np.zeros(1, np.int64)
    all_labels: list[Array] = []
    for depth, layer in enumerate(layers):
        what = f"layer {depth}" if tree == 0 else f"layer {depth} of tree {tree}"
        columns = checked_columns(layer, features, what)
        parent = checked_parents(layer, columns.shape[1], nodes_above, what)
        label = checked_labels(layer, columns.shape[1], depth == len(layers) - 1, what)
        below = layers[depth + 1] if depth + 1 < len(layers) else None
        check_children(label, below, what)
        parent = position_above[parent]
        order = np.argsort(parent, kind="stable")
        child_start = np.zeros(nodes_above + 1, np.uint32)
        np.cumsum(np.bincount(parent, minlength=nodes_above), out=child_start[1:])
        placed.append(Placed(columns, child_start, order, what))
        arrays = {"child_start": child_start, **node_arrays(layer, label, order, columns.shape[1], what)}
        sections |= {layer_name(tree, depth, field): array for field, array in arrays.items() if array.size}
        position_above = np.empty(len(order), np.int64)
        position_above[order] = np.arange(len(order))
        nodes_above = len(order)
        all_labels.append(label[order])
    sections |= cascade_of(placed, tree, features, threads, weights)
    leaf_of_label, count = index_of_leaves(all_labels, "the tree" if tree == 0 else f"tree {tree}")
    sections[f"tree{tree}/leaf_of_label"] = leaf_of_label
    size = TreeSize(tuple(len(one.order) for one in placed), tuple(one.columns.nnz for one in placed))
    return sections, size, count


def checked_columns(layer: Layer, features: int, what: str) -> Any:
    """The weights as canonical float32 CSC; of a dense array every number is stored, also zeros."""
    dense = isinstance(layer.weights, np.ndarray)
    if not (dense or is_sparse(layer.weights)) or layer.weights.ndim != 2:
        raise DataError(
            f"The weights of {what} are a {type(layer.weights).__name__}; expected a scipy sparse matrix or a numpy "
            "array with two dimensions, features x nodes. Make one with scipy.sparse.csc_array."
        )
    if layer.weights.shape[0] != features:
        raise DataError(
            f"The weights of {what} have {layer.weights.shape[0]:,} rows; expected {features:,}, one per feature, as "
            "in layer 0."
        )
    if layer.weights.shape[1] == 0:
        raise DataError(f"{what} has no nodes; expected at least one. Leave the layer out.")
    given = whole_columns(layer.weights, f"The weights of {what}") if dense else layer.weights
    by_node = columns_as_csr(given, f"The weights of {what}")
    return sp.csc_array((by_node.data, by_node.indices, by_node.indptr), shape=by_node.shape[::-1])


def checked_parents(layer: Layer, nodes: int, nodes_above: int, what: str) -> Array:
    """The parent of each node, inside the layer above."""
    parent = plain_array(layer.parent)
    if parent.shape != (nodes,) or parent.dtype.kind not in "iu":
        raise DataError(
            f"The parents of {what} have shape {parent.shape} and dtype {parent.dtype}; expected {nodes:,} integers, "
            "one per node."
        )
    if parent.min() < 0 or parent.max() >= nodes_above:
        bad = parent[(parent < 0) | (parent >= nodes_above)][0]
        raise DataError(f"{what} names parent {bad}; expected a node of the layer above, 0 to {nodes_above - 1:,}.")
    widest = int(np.bincount(parent).max())
    if widest > _core.MAX_WIDTH:
        raise DataError(
            f"{what} has a parent with {widest:,} children; expected at most {_core.MAX_WIDTH:,}. Put a layer in "
            "between."
        )
    return parent.astype(np.int64)


def checked_labels(layer: Layer, nodes: int, last: bool, what: str) -> Array:
    """The label of each node, -1 for inner ones."""
    if layer.label is None:
        return np.arange(nodes) if last else np.full(nodes, -1, np.int64)
    label = plain_array(layer.label)
    if label.shape != (nodes,) or label.dtype.kind not in "iu":
        raise DataError(
            f"The labels of {what} have shape {label.shape} and dtype {label.dtype}; expected {nodes:,} integers, one "
            "per node, -1 for inner nodes."
        )
    if label.size and (label.min() < -1 or label.max() >= int(NO_LABEL)):
        raise DataError(
            f"{what} has label {label.min() if label.min() < -1 else label.max()}; expected 0 or above, or -1 for an "
            "inner node."
        )
    return label.astype(np.int64)


def check_children(label: Array, below: Layer | None, what: str) -> None:
    """Inner nodes have children, leaves have none."""
    has_child = np.zeros(len(label), bool)
    if below is not None:
        parent = np.asarray(below.parent)
        if parent.dtype.kind not in "iu" or not parent.size or parent.min() < 0 or parent.max() >= len(label):
            return  # the next layer's own check says what is wrong with it
        has_child[parent.astype(np.int64)] = True
    childless = np.flatnonzero((label < 0) & ~has_child)
    if len(childless):
        raise DataError(
            f"Node {childless[0]} of {what} is an inner node without children; expected some below it. Give it a label "
            "or children."
        )
    parents = np.flatnonzero((label >= 0) & has_child)
    if len(parents):
        raise DataError(
            f"Node {parents[0]} of {what} has label {label[parents[0]]} and children; expected a label on leaves only."
        )


def cascade_of(placed: Sequence[Placed], tree: int, features: int, threads: int, weights: str) -> Sections:
    """The cascade layout of a tree, from the bottom up, for rows point to rows below them."""
    sections: Sections = {}
    builder = _core.TreeBuilder(features, _core.WeightKind[weights])
    for bundle in reversed(bundles([one.child_start for one in placed])):
        start = np.empty(len(placed[bundle.start].child_start), np.uint64)
        size = builder.measure_columns([csc_of(placed[depth]) for depth in bundle], start, threads)
        if not size:
            raise DataError(
                f"{placed[bundle.start].what} has a chunk of more than 16 GiB; expected less. Put a layer in between."
            )
        words = np.empty(size, np.uint32)
        builder.fill(words, threads)
        sections[layer_name(tree, bundle.start, "thread_start")] = start
        sections[layer_name(tree, bundle.start, "threads")] = words
        if weights == "u8":
            scale = sections[layer_name(tree, bundle.start, "scale")] = np.empty(len(start) - 1, np.float32)
            builder.scales(scale)
    sections[layer_name(tree, 0, "root")] = root_of(builder, features)
    return sections


def bundles(child_starts: Sequence[Array]) -> list[range]:
    """The layers of a tree, those together that share their chunks, from the top down."""
    first = [depth for depth, step in enumerate(_core.bundled(list(child_starts))) if step == 0]
    return [range(a, b) for a, b in pairwise([*first, len(child_starts)])]


def csc_of(one: Placed) -> tuple[Array, Array, Array, Array, Array]:
    """What the core builds a layer from: its shape, its columns, and which column goes to each place."""
    columns = one.columns
    start, feature = columns.indptr.astype(np.int64), columns.indices.astype(np.int32, copy=False)
    return one.child_start, start, feature, columns.data, one.order.astype(np.uint32)


def root_of(builder: Any, features: int) -> Array:
    """The root index of a tree that was built up to its top."""
    root = np.empty(features, np.uint32)
    builder.root(root)
    return root


def cascade_of_chunks(sections: Sections, tree: int, size: TreeSize, features: int, threads: int) -> Sections:
    """The same from the chunks that files of format 1 hold."""
    fields = dict.fromkeys(("child_start", "row_start", "word_start", "feature", "offset", "words"), np.uint32)
    fields |= {"row_start": np.uint64, "word_start": np.uint64}
    made: Sections = {}
    builder = _core.TreeBuilder(features, _core.WeightKind.f32)
    for depth in reversed(range(len(size.nodes))):
        given: Any = [sections.get(layer_name(tree, depth, name), np.zeros(0, kind)) for name, kind in fields.items()]
        start = np.empty(len(given[0]), np.uint64)
        valid = [array.dtype for array in given] == [np.dtype(kind) for kind in fields.values()]
        try:
            words = np.empty(builder.measure_chunks(*[*given, start, threads]) if valid else 0, np.uint32)
            valid = words.size > 0 and builder.fill(words, threads)
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise FormatError(f"The model is damaged in layer {depth}. Get a fresh copy of its file.")
        made[layer_name(tree, depth, "thread_start")] = start
        made[layer_name(tree, depth, "threads")] = words
    made[layer_name(tree, 0, "root")] = root_of(builder, features)
    return made


def node_arrays(layer: Layer | Nodes, label: Array, order: Array, nodes: int, what: str) -> Sections:
    """Biases, labels and, when nodes had to move, where they came from: one entry per node, in tree order."""
    arrays: Sections = {}
    if layer.bias is not None:
        bias = as_float32(plain_array(layer.bias), f"The bias of {what}")
        if bias.shape != (nodes,):
            raise DataError(f"The bias of {what} has shape {bias.shape}; expected {nodes:,} numbers, one per node.")
        if np.isnan(bias).any():
            raise DataError(
                f"The bias of {what} is NaN for node {np.flatnonzero(np.isnan(bias))[0]}; expected numbers."
            )
        arrays["bias"] = bias[order]
    if (label >= 0).any():
        arrays["label"] = np.where(label < 0, NO_LABEL, label).astype(np.uint32)[order]
    if (np.diff(order) != 1).any():
        arrays["order"] = order.astype(np.uint32)
    return arrays


def index_of_leaves(labels: Sequence[Array], what: str) -> tuple[Array, int]:
    """For each label its node, numbered through the tree from the top; every label 0..L-1 must stand exactly once."""
    through = np.concatenate(labels)
    node = np.flatnonzero(through >= 0)
    label = through[node]
    count = len(label)
    times = np.bincount(label, minlength=count) if count and label.max() < 4 * count + 1024 else None
    if times is None or len(times) > count:
        raise DataError(
            f"In {what} the largest label is {label.max()} and there are {count:,} leaves; expected labels 0 to "
            f"{count - 1:,} without a gap."
        )
    if (times > 1).any():
        raise DataError(
            f"In {what} label {np.flatnonzero(times > 1)[0]} is given twice, and {(times == 0).sum():,} "
            "labels are missing; expected each on one leaf."
        )
    leaf_of_label = np.empty(count, np.uint32)
    leaf_of_label[label] = node
    return leaf_of_label, count


def damaged(layer: int) -> FormatError:
    """What is said of a layer that cannot be read."""
    return FormatError(
        f"The model is damaged in layer {layer}. Get a fresh copy of its file; load(…, verify=True) checks it."
    )


def columns_of(reader: Any, layer: int, nodes: int, threads: int) -> tuple[Array, Array, Array]:
    """The column layout of the layer that a TreeReader comes to next: offsets, features, weights in tree order."""
    start = np.empty(nodes + 1, np.uint64)
    if not reader.next(threads) or not reader.measure_columns(start, threads):
        raise damaged(layer)
    feature, weight = np.empty(int(start[-1]), np.uint32), np.empty(int(start[-1]), np.float32)
    if not reader.fill_columns(start, feature, weight, threads):
        raise damaged(layer)
    return start, feature, weight


def chunks_of(reader: Any, layer: int, parents: int, threads: int) -> tuple[Array, Array, Array, Array, Array]:
    """The same in the chunk layout: row_start, word_start, feature, offset, words."""
    row_start, word_start = np.empty(parents + 1, np.uint64), np.empty(parents + 1, np.uint64)
    if not reader.next(threads) or not reader.measure_chunks(row_start, word_start, threads):
        raise damaged(layer)
    feature, offset = np.empty(int(row_start[-1]), np.uint32), np.empty(int(row_start[-1]), np.uint32)
    words = np.empty(int(word_start[-1]) + _core.TAIL_WORDS, np.uint32)
    if not reader.fill_chunks(feature, offset, words, threads):
        raise damaged(layer)
    return row_start, word_start, feature, offset, words


def hash_index(start: Array, feature: Array, threads: int) -> Array:
    """The hash index over the supports that `start` cuts out of `feature`."""
    if start[0] != 0 or (start[1:] < start[:-1]).any() or start[-1] > len(feature):
        raise FormatError("The model is damaged: its row offsets do not rise. Get a fresh copy of its file.")
    index = np.zeros(_core.index_words(int(start[-1]), len(start) - 1), np.uint32)
    _core.fill_index(start, feature, index, threads)
    return index


def is_order(order: Array | None, nodes: int) -> bool:
    """Whether every node stands once in an order; none at all is the plain one."""
    return order is None or (order.dtype.kind == "u" and np.array_equal(np.sort(order), np.arange(nodes)))


def layers_of(
    forest: Any,
    sections: Mapping[str, Array],
    tree: int,
    size: TreeSize,
    features: int,
    threads: int,
    count: int | None = None,
) -> list[Layer]:
    """The inverse of build_tree, bit for bit; of the first layers, if a count is given."""
    layers = []
    reader = _core.TreeReader(forest, tree)
    for depth, nodes in enumerate(nodes_of(sections, tree, size)[:count]):
        start, feature, weight = columns_of(reader, depth, size.nodes[depth], threads)
        if len(feature) and feature.max() >= features:
            raise damaged(depth)
        shape = (features, size.nodes[depth])
        columns: Any = sp.csc_array((weight, feature.view(np.int32), start.view(np.int64)), shape=shape)
        order = sections.get(layer_name(tree, depth, "order"))
        weights = columns if order is None else columns[:, np.argsort(order)]
        layers.append(Layer(weights, nodes.parent, nodes.bias, nodes.label))
    return layers


def nodes_of(sections: Mapping[str, Array], tree: int, size: TreeSize) -> list[Nodes]:
    """The nodes of each layer, in the order in which they were given."""
    found = []
    order_above = np.zeros(1, np.int64)
    for depth, nodes in enumerate(size.nodes):

        def get(field: str, depth: int = depth) -> Array | None:
            return sections.get(layer_name(tree, depth, field))

        order = get("order")
        if not is_order(order, nodes):
            raise damaged(depth)
        place = np.arange(nodes) if order is None else np.argsort(order)  # original number → place in the tree
        child_start = get("child_start")
        assert child_start is not None
        ends = child_start.astype(np.int64)
        widths = ends[1:] - ends[:-1]
        if len(widths) != len(order_above) or (widths < 0).any() or widths.sum() != nodes:
            raise damaged(depth)
        parent = order_above[np.repeat(np.arange(len(widths)), widths)]
        bias, label = get("bias"), get("label")
        found.append(
            Nodes(
                parent=parent[place],
                bias=None if bias is None else bias[place],
                label=None if label is None else np.where(label == NO_LABEL, -1, label.astype(np.int64))[place],
            )
        )
        order_above = np.arange(nodes) if order is None else order.astype(np.int64)
    return found
