"""tree.py — one vector per label in, a tree over the labels out: the parents and the leaves of each layer."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.training.label_vectors import CsrArrays, native_rows
from beamwood.training.settings import TREES

Ints = npt.NDArray[np.int64]
# One layer: the parent of each node in the layer above (never falling), and the label of each leaf, -1 for
# inner nodes; None instead of an array when the layer has no leaf.
TreeLayer = tuple[Ints, "Ints | None"]

KINDS = (*TREES, "given")


def grow(
    vectors: Any,
    *,
    kind: str = "balanced",
    branching: int = 32,
    max_leaf: int = 32,
    max_depth: int | None = None,
    seed: int = 0,
    threads: int = 1,
    frequency: Any = None,
    parents: Any = None,
) -> list[TreeLayer]:
    """Return the layers of a tree, top to bottom, as (parent, label) pairs; the last one is all leaves.

    vectors:   labels x features, sparse, rows of length one; or just the number of labels, for the kinds
               that look at no vectors ("random", "huffman", "given").
    kind:      "balanced": 2-means that halves, until at most `max_leaf` labels are left together; levels are
               then merged so that a node has `branching` children. Leaf clusters differ by at most one label.
               "unbalanced": k-means into `branching` groups as uneven as the labels are, again for each group
               of more than `max_leaf` labels, down to `max_depth` layers; leaves lie at different depths.
               "capped": k-means into `branching` groups as uneven as the labels are, in as few layers as will do; then
               clusters of at most `max_leaf` labels, as many side by side as it takes. All leaves lie at one depth.
               "random": the shape of "balanced", labels shuffled.
               "huffman": frequent labels near the root, by `frequency` (one number per label).
               "given": `parents` holds the parent of each node, -1 for the root; nodes 0..L-1 are the labels.
    The same vectors, settings and seed give the same tree for any number of threads.
    """
    depth = 1 if max_depth is None else max_depth
    _check_settings(
        kind,
        seed,
        branching=(branching, 2),
        max_leaf=(max_leaf, 1),
        max_depth=(depth, 1),
        threads=(threads, 1),
    )
    counted = isinstance(vectors, (int, np.integer))
    if counted and kind in {"balanced", "unbalanced", "capped"}:
        raise SettingsError(f'vectors is a number; expected vectors, by which kind="{kind}" groups labels.')
    if (parents is not None) != (kind == "given"):
        found = "missing" if parents is None else "given"
        raise SettingsError(
            f'kind is "{kind}" and parents is {found}; expected parents with kind="given" and only there.'
        )
    labels = int(vectors) if counted else int(vectors.shape[0])
    if labels < 1:
        raise DataError("there are no labels; expected at least one.")
    if kind == "given":
        return _layers(_checked_parents(parents, labels), labels)
    if kind == "huffman":
        return _layers(_huffman(_checked_frequency(frequency, labels), branching), labels)
    if kind == "unbalanced":
        split = _Splitter(native_rows(vectors, "vectors"), branching, seed, threads)
        return _grow_unbalanced(split, labels, max_leaf, max_depth)
    if kind == "capped":
        return _grow_capped(_Splitter(native_rows(vectors, "vectors"), branching, seed, threads), labels, max_leaf)
    clusters = _leaf_clusters(labels, max_leaf)
    if kind == "random":
        shuffled = np.argsort(np.random.Generator(np.random.PCG64(seed)).random(labels), kind="stable")
        order = _sorted_in_clusters(shuffled, clusters)
    else:
        order = np.empty(labels, dtype=np.int64)
        _core.balanced_order(*native_rows(vectors, "vectors"), clusters, seed, threads, order)
    return _merged(order, clusters, branching)


def _check_settings(kind: str, seed: int, **least: tuple[int, int]) -> None:
    """Each setting in `least` is given as (value, lowest value allowed)."""
    if kind not in KINDS:
        raise SettingsError(f"kind is {kind!r}; expected one of {', '.join(KINDS)}.")
    for name, (value, bound) in {**least, "seed": (seed, 0)}.items():
        if not isinstance(value, (int, np.integer)) or value < bound:
            raise SettingsError(f"{name} is {value!r}; expected a whole number of at least {bound}.")
    if seed >= 2**64:
        raise SettingsError(f"seed is {seed}; expected a number below 2**64.")


def _leaf_clusters(labels: int, max_leaf: int) -> int:
    """Return the least power of two that leaves at most max_leaf labels a cluster, or one cluster a label."""
    needed = -(-labels // max_leaf)
    return int(min(1 << (needed - 1).bit_length(), labels))


def _bounds(labels: int, clusters: int) -> Ints:
    """Return where each leaf cluster begins in the order of labels, and the end; sizes differ by 0 or 1."""
    return np.arange(clusters + 1, dtype=np.int64) * labels // clusters


def _sorted_in_clusters(order: Ints, clusters: int) -> Ints:
    cluster = np.repeat(np.arange(clusters), np.diff(_bounds(len(order), clusters)))
    return order[np.lexsort((order, cluster))]


def _merged(order: Ints, clusters: int, branching: int) -> list[TreeLayer]:
    """Stand layers on the leaf clusters: node i is a child of node i // branching of the layer above."""
    layers: list[TreeLayer] = []
    label: Ints | None = order
    if clusters < len(order):  # else each cluster is one label, and a leaf itself
        cluster = np.repeat(np.arange(clusters, dtype=np.int64), np.diff(_bounds(len(order), clusters)))
        layers.append((cluster, label))
        label = None
    nodes = clusters
    while nodes > 1 or not layers:
        layers.append((np.arange(nodes, dtype=np.int64) // branching, label))
        nodes = -(-nodes // branching)
        label = None
    return layers[::-1]


class _Splitter(NamedTuple):
    """Splits all clusters of one level by k-means; the level is a part of the seed."""

    rows: CsrArrays
    branching: int
    seed: int
    threads: int

    def groups(self, members: npt.NDArray[np.uint32], sizes: Ints, level: int) -> npt.NDArray[np.int32]:
        group = np.zeros(len(members), dtype=np.int32)
        if len(members):
            bounds = np.r_[0, np.cumsum(sizes)].astype(np.int64)
            rows, branching, seed, threads = self
            _core.wide_groups(*rows, members, bounds, branching, seed, level, threads, group)
        return group


def _grow_unbalanced(splitter: _Splitter, labels: int, max_leaf: int, max_depth: int | None) -> list[TreeLayer]:
    """Split all clusters of a level at once; who stands alone is a leaf, the rest make the next level."""
    layers: list[TreeLayer] = []
    members = np.arange(labels, dtype=np.uint32)
    sizes = np.array([labels], dtype=np.int64)
    parent_of_cluster = np.zeros(1, dtype=np.int64)
    while len(members):
        deepest = max_depth is not None and len(layers) + 1 >= max_depth
        split = (sizes > max_leaf) & (not deepest)
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        inner = split[cluster]
        group = np.arange(len(members), dtype=np.int64)  # a member of an unsplit cluster stands alone: a leaf
        group[inner] = splitter.groups(members[inner], sizes[split], len(layers))
        order = np.lexsort((members, group, cluster))
        members, cluster, group = members[order], cluster[order], group[order]
        first = np.flatnonzero(np.r_[True, (np.diff(cluster) != 0) | (np.diff(group) != 0)])
        sizes = np.diff(np.r_[first, len(members)])
        leaf = sizes == 1
        label = np.where(leaf, members[first].astype(np.int64), -1)
        layers.append((parent_of_cluster[cluster[first]], label if leaf.any() else None))
        parent_of_cluster = np.flatnonzero(~leaf).astype(np.int64)
        members, sizes = members[np.repeat(~leaf, sizes)], sizes[~leaf]
    return layers


def _grow_capped(splitter: _Splitter, labels: int, max_leaf: int) -> list[TreeLayer]:
    """Split into `branching` groups, layer below layer, then into leaf clusters that hang side by side.

    Clusters are half full on average, so `labels` of them need 2 * labels / max_leaf. If that is at most `branching`
    they all hang below the root; otherwise layers of `branching` groups come first, until it is, on average.
    """
    paths: list[Ints] = []  # of each layer: the node that each label lies under
    node = np.zeros(labels, dtype=np.int64)
    needed = _clusters_needed(labels, max_leaf)
    above = math.ceil(math.log(max(needed, 2), splitter.branching) - 1e-9) - 1  # layers of groups
    for level in range(above):
        count = np.bincount(node)
        wide = np.where(count > max_leaf, np.minimum(splitter.branching, count), 1)
        node = _split_each(splitter, node, wide, level)
        paths.append(node)
    while (count := np.bincount(node)).max() > max_leaf:
        pieces = np.where(count > 2 * max_leaf, _clusters_needed(count, max_leaf), 2)
        node = _split_each(splitter, node, np.where(count > max_leaf, np.minimum(pieces, count), 1), above)
        paths[above:] = [node]
    return _layers_of_paths(paths, labels)


def _clusters_needed(labels: Any, max_leaf: int) -> Any:
    return -(-2 * labels // max_leaf)


def _split_each(splitter: _Splitter, node: Ints, pieces: Ints, level: int) -> Ints:
    """Split every node into its number of pieces; nodes are numbered so that pieces of one lie side by side."""
    group = np.zeros(len(node), dtype=np.int64)
    for k in np.unique(pieces[pieces > 1]):
        members = np.flatnonzero(pieces[node] == k)
        members = members[np.argsort(node[members], kind="stable")]
        sizes = np.bincount(node[members])
        found = splitter._replace(branching=int(k)).groups(members.astype(np.uint32), sizes[sizes > 0], level)
        group[members] = found
    places: npt.NDArray[np.intp] = np.unique(node * (int(pieces.max()) + 1) + group, return_inverse=True)[1]
    return places.astype(np.int64)


def _layers_of_paths(paths: list[Ints], labels: int) -> list[TreeLayer]:
    """Turn the node of each label on each layer into layers; pieces of one node lie side by side already."""
    layers: list[TreeLayer] = []
    above = np.zeros(labels, dtype=np.int64)
    for node in paths:
        parent = np.zeros(int(node.max()) + 1, dtype=np.int64)
        parent[node] = above
        layers.append((parent, None))
        above = node
    order = np.lexsort((np.arange(labels), above))
    return [*layers, (above[order], order.astype(np.int64))]


def _huffman(frequency: npt.NDArray[np.float64], branching: int) -> Ints:
    """Return the parents of a B-ary Huffman tree: the rarest B nodes become siblings, again and again.

    Merged nodes come out with rising frequency, so two queues take the place of a heap.
    """
    labels = len(frequency)
    if labels == 1:
        return np.array([-1], dtype=np.int64)
    order = np.argsort(frequency, kind="stable")
    rare = deque(zip(frequency[order].tolist(), order.tolist(), strict=True))
    merged: deque[tuple[float, int]] = deque()
    nodes = labels + -(-(labels - 1) // (branching - 1))
    parents = np.full(nodes, -1, dtype=np.int64)
    take = 2 + (labels - 2) % (branching - 1)  # the first merge takes fewer, so that all others are full
    for node in range(labels, nodes):
        total = 0.0
        for _ in range(take):
            queue = rare if rare and (not merged or rare[0] <= merged[0]) else merged
            weight, child = queue.popleft()
            parents[child] = node
            total += weight
        merged.append((total, node))
        take = branching
    return parents


def _layers(parents: Ints, labels: int) -> list[TreeLayer]:
    """Turn parents (labels first, root -1) into layers, siblings side by side by rising node number."""
    if labels == len(parents) == 1:
        return [(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))]
    layers = []
    reached = 1
    for nodes, parent in _generations(parents):
        leaf = nodes < labels
        layers.append((parent, np.where(leaf, nodes, -1) if leaf.any() else None))
        reached += len(nodes)
    if reached < len(parents):
        raise DataError(
            f"parents has {len(parents) - reached} nodes that the root never reaches; expected none. Remove the cycle."
        )
    return layers


def _generations(parents: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the nodes of each layer below the root, with the place of each one's parent."""
    by_parent = np.argsort(parents, kind="stable")
    start = np.searchsorted(parents[by_parent], np.arange(len(parents) + 1))
    nodes = np.flatnonzero(parents < 0)
    while True:
        count = start[nodes + 1] - start[nodes]
        if not count.any():
            return
        parent = np.repeat(np.arange(len(nodes), dtype=np.int64), count)
        within = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
        nodes = by_parent[start[nodes][parent] + within]
        yield nodes, parent


def _checked_parents(parents: Any, labels: int) -> Ints:
    given = np.asarray(parents)
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) < labels:
        raise DataError(
            f"parents has shape {given.shape} and type {given.dtype}; expected one whole number per node,"
            f" the {labels} labels first."
        )
    given = given.astype(np.int64)
    roots = np.flatnonzero(given < 0)
    if len(roots) != 1 or given[roots[0]] != -1:
        raise DataError(f"parents has {len(roots)} negative entries; expected one: -1 for the root.")
    if given.max(initial=-1) >= len(given):
        raise DataError(f"parents has node {given.max()}; expected nodes below {len(given)}. Number nodes from 0.")
    has_children = np.zeros(len(given), dtype=bool)
    has_children[given[given >= 0]] = True
    wrong = np.flatnonzero(has_children != (np.arange(len(given)) >= labels))
    if len(wrong):
        what = "is a label and has children" if wrong[0] < labels else "is not a label and has no children"
        raise DataError(f"parents: node {wrong[0]} {what}; expected the first {labels} nodes to be the labels.")
    return given


def _checked_frequency(frequency: Any, labels: int) -> npt.NDArray[np.float64]:
    if frequency is None:
        raise SettingsError(
            'frequency is missing; expected it with kind="huffman": how often each label occurs, the column sums of Y.'
        )
    given = np.asarray(frequency, dtype=np.float64).ravel()
    if len(given) != labels:
        raise DataError(f"frequency has {len(given)} entries; expected {labels}, one per label.")
    if not np.isfinite(given).all() or (given < 0).any():
        raise DataError("frequency has negative, NaN or infinite values; expected counts.")
    return given
