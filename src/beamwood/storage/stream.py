"""stream.py — columns in, one part of a tree after another, a model file out: for models that do not fit in memory.

A cascade is built from the bottom up, for a row holds the places of the rows below it; but a subtree needs nothing from
its neighbours. So subtrees are built from left to right and written as they come, and of each only the rows of its top
chunk are kept until the chunk above is built. Memory holds one part and the rows along one path.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import cores, plain_array
from beamwood.storage import store
from beamwood.storage.activations import Activation
from beamwood.storage.build import WEIGHTS, TreeSize, bundles, layer_name
from beamwood.storage.draft import checked_target, disk_errors, draft_beside
from beamwood.storage.shape import ModelShape

Array = npt.NDArray[Any]
# (layer, first, end) in; CSC arrays (offsets int64, features int32 rising, weights float32) of these nodes out
Columns = Callable[[int, int, int], tuple[Array, Array, Array]]

_COPY = 1 << 26


@dataclass(frozen=True)
class LayerCounts:
    """What one layer of a streamed model holds. Layers that share chunks have rows and bytes in the first of them."""

    nodes: int
    nonzeros: int
    rows: int
    empty_rows: int  # rows without weights: they only point to rows below
    bytes: int


def write_model(
    path: str | os.PathLike[str],
    child_starts: Sequence[Array],
    columns: Columns,
    *,
    features: int,
    activation: str = "sigmoid",
    score_path: str | None = None,
    weights: str = "f32",
    labels_at_once: int = 1 << 20,
    threads: int | None = None,
    settings: dict[str, Any] | None = None,
) -> list[LayerCounts]:
    """Writes the file of a one-tree model whose last layer's nodes are labels 0, 1, 2, …; counts of each layer.

    child_starts: for each layer from the top, where the children of each node of the layer above start (one more entry
    than there are parents). columns(layer, first, end) gives the weights of some nodes when their turn comes; it is
    asked for every node once. weights: "f32", "f16" or "u8". labels_at_once bounds the memory.
    """
    if weights not in WEIGHTS:
        raise SettingsError(f"weights={weights!r} is not known. Use {', '.join(map(repr, WEIGHTS))}.")
    starts = _checked_starts(child_starts)
    nodes = [int(start[-1]) for start in starts]
    target = checked_target(path)
    with (
        disk_errors(target, 16 * sum(nodes)),
        draft_beside(target) as draft,
        _Sections(target.parent, draft, [bundle.start for bundle in bundles(starts)]) as sections,
    ):
        builder = _Builder(starts, columns, features, weights, labels_at_once, threads or cores(), sections)
        top = builder.build(bundles(starts), 0, 1)
        root = np.empty(features, np.uint32)
        top.root(root)
        sizes = TreeSize(tuple(nodes), tuple(layer.nonzeros for layer in builder.layers))
        shape = ModelShape(
            features, nodes[-1], Activation.parse(activation, score_path), (sizes,), settings or {}, None, weights
        )
        sections.finish(builder.layers, starts, root, shape)
    return [
        LayerCounts(nodes[depth], layer.nonzeros, layer.rows, layer.empty_rows, 4 * layer.words)
        for depth, layer in enumerate(builder.layers)
    ]


def _checked_starts(child_starts: Sequence[Array]) -> list[Array]:
    """Offsets that make a tree."""
    if not isinstance(child_starts, (list, tuple)):
        raise DataError(f"child_starts is a {type(child_starts).__name__}; expected a list with an array per layer.")
    starts = [plain_array(start) for start in child_starts]
    parents = 1
    for depth, start in enumerate(starts):
        if start.ndim != 1 or start.dtype.kind not in "iu" or len(start) != parents + 1:
            raise DataError(
                f"child_starts[{depth}] has shape {start.shape} and dtype {start.dtype}; expected {parents + 1:,} "
                "integers: one for each node of the layer above, and the number of nodes."
            )
        width = np.diff(start.astype(np.int64))
        if start[0] != 0 or width.min() < 1 or width.max() > _core.MAX_WIDTH or start[-1] >= 2**32 - 1:
            raise DataError(
                f"child_starts[{depth}] does not make a tree; expected to start with 0 and to rise by 1 to "
                f"{_core.MAX_WIDTH:,}. Every node of the layer above has children, every label is in the last layer."
            )
        parents = int(start[-1])
    if not starts:
        raise DataError("The list of child_starts is empty; expected at least one layer.")
    return [start.astype(np.uint32) for start in starts]


@dataclass
class _Layer:
    """What has been written of a layer."""

    thread_start: Array
    scale: Array
    words: int = 0
    rows: int = 0
    empty_rows: int = 0
    nonzeros: int = 0


@dataclass
class _Builder:
    starts: list[Array]
    columns: Columns
    features: int
    weights: str
    labels_at_once: int
    threads: int
    sections: _Sections
    layers: list[_Layer] = field(init=False)

    def __post_init__(self) -> None:
        self.layers = [_Layer(np.zeros(len(s), np.uint64), np.empty(len(s) - 1, np.float32)) for s in self.starts]

    def build(self, below: Sequence[range], first: int, end: int) -> Any:
        """Writes the chunks of some parents and all that is below them; a builder that holds their rows.

        below: the bundles of layers from theirs on.
        """
        builder = _core.TreeBuilder(self.features, _core.WeightKind[self.weights])
        bundle = below[0]
        shapes, a, b = [], first, end  # each layer's child starts and nodes
        for depth in bundle:
            own = self.starts[depth][a : b + 1]
            a, b = int(own[0]), int(own[-1])
            shapes.append((own - np.uint32(a), a, b))
        if len(below) > 1:
            builder.join([self.build(below[1:], *part) for part in self._parts(bundle[-1], a, b)])
        layers = [(own, *self._columns(depth, a, b)) for depth, (own, a, b) in zip(bundle, shapes, strict=True)]
        layer = self.layers[bundle.start]
        thread_start = np.empty(end - first + 1, np.uint64)
        size = builder.measure_columns(layers, thread_start, self.threads)
        if not size:
            raise DataError(
                f"Layer {bundle.start} has a chunk of more than 16 GiB; expected less. Put a layer in between."
            )
        words = np.empty(size, np.uint32)
        builder.fill(words, self.threads)
        self.sections.write(bundle.start, words[: -_core.TAIL_WORDS])
        layer.thread_start[first : end + 1] = thread_start + np.uint64(2 * layer.words)
        builder.scales(layer.scale[first:end])
        layer.words += size - _core.TAIL_WORDS
        layer.rows += builder.rows()
        layer.empty_rows += builder.empty_rows()
        return builder

    def _columns(self, depth: int, a: int, b: int) -> tuple[Array, Array, Array, Array]:
        """The weights of nodes a to b of a layer, checked, and their order."""
        found = self.columns(depth, a, b)
        if not isinstance(found, tuple) or not all(isinstance(one, np.ndarray) and one.ndim == 1 for one in found):
            raise DataError(f"columns({depth}, {a}, {b}) is a {type(found).__name__}; expected a tuple of CSC arrays.")
        start, feature, weight = found
        what = f"The columns of nodes {a:,} to {b:,} of layer {depth}"
        fit = len(start) == b - a + 1 and len(feature) == len(weight) == start[-1] and start[0] == 0
        if not fit or (np.diff(start) < 0).any():
            raise DataError(
                f"{what} do not fit each other: {len(start):,} offsets, {len(feature):,} features, {len(weight):,} "
                f"weights; expected CSC arrays, whose {b - a + 1:,} offsets rise from 0 to the number of weights."
            )
        if len(feature) and not 0 <= feature.min() <= feature.max() < self.features:
            raise DataError(f"{what} name a feature outside; expected 0 to {self.features - 1:,}.")
        falls = np.flatnonzero(np.diff(feature) <= 0) + 1
        if not np.isin(falls, start).all():
            raise DataError(f"{what} name features that do not rise; expected each once per node, in order.")
        if not np.isfinite(weight).all():
            raise DataError(f"{what} have a weight that is NaN or infinite; expected finite numbers.")
        self.layers[depth].nonzeros += len(feature)
        return start, feature, weight, np.arange(b - a, dtype=np.uint32)

    def _parts(self, depth: int, a: int, b: int) -> Iterator[tuple[int, int]]:
        """Nodes a to b in runs that have no more labels than may be built at once, or are a single node."""
        label = np.arange(a, b + 1)
        for start in self.starts[depth + 1 :]:
            label = start[label].astype(np.int64)
        first = 0
        while first < b - a:
            end = int(np.searchsorted(label, label[first] + self.labels_at_once, side="right")) - 1
            end = max(first + 1, min(end, b - a))
            yield a + first, a + end
            first = end


def _spare(folder: Any) -> Any:
    """A file that has no name and vanishes when it is closed."""
    return tempfile.TemporaryFile(dir=folder)


class _Sections:
    """The arrays of a file that is being written: the lowest chunks go straight in, others wait aside."""

    def __init__(self, folder: Any, draft: BinaryIO, chunked: list[int]) -> None:
        self.draft, self.chunked = draft, chunked  # chunked: the layers that have chunks
        self.kept = contextlib.ExitStack()
        self.aside = {depth: self.kept.enter_context(_spare(folder)) for depth in chunked[:-1]}
        draft.seek(store.RESERVED)

    def __enter__(self) -> _Sections:
        return self

    def __exit__(self, *_: object) -> None:
        self.kept.close()

    def write(self, depth: int, words: Array) -> None:
        """Words of a layer, behind those that were written before."""
        self.aside.get(depth, self.draft).write(words.data)

    def finish(self, layers: list[_Layer], starts: list[Array], root: Array, shape: ModelShape) -> None:
        """Brings everything into the file and writes its header."""
        from beamwood._version import __version__

        places: dict[str, tuple[str, int]] = {}  # dtype and length, in the order of the file

        def note(name: str, dtype: str, count: int) -> None:
            places[name] = dtype, count
            self.draft.write(bytes(-self.draft.tell() % store.ALIGNMENT))

        def put(name: str, array: Array) -> None:
            self.draft.write(array.data)
            note(name, store.dtype_name(array.dtype), len(array))

        tail = bytes(4 * _core.TAIL_WORDS)
        for depth in reversed(self.chunked):
            if depth in self.aside:
                self.aside[depth].seek(0)
                while piece := self.aside[depth].read(_COPY):
                    self.draft.write(piece)
            self.draft.write(tail)
            note(layer_name(0, depth, "threads"), "U32", layers[depth].words + _core.TAIL_WORDS)
        for depth, layer in enumerate(layers):
            put(layer_name(0, depth, "child_start"), starts[depth])
            if depth not in self.chunked:
                continue
            put(layer_name(0, depth, "thread_start"), layer.thread_start)
            if shape.weights == "u8":
                put(layer_name(0, depth, "scale"), layer.scale)
        put(layer_name(0, 0, "root"), root)
        above = sum(shape.trees[0].nodes[:-1])
        put(layer_name(0, len(layers) - 1, "label"), np.arange(shape.labels, dtype=np.uint32))
        put("tree0/leaf_of_label", np.arange(above, above + shape.labels, dtype=np.uint32))
        description = {"version": __version__, "requires": shape.requires(), "model": shape.describe()}
        store.write_header(self.draft, places, description)
