"""Arrays of a model and a choice of engine in, ranked labels out. The one place that calls the native search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.activations import Activation
from beamwood.build import TreeSize, columns_of, hash_index, layer_name
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.rows import as_csr

Array = npt.NDArray[Any]

MATCHERS = ("march", "binary", "hash", "dense")
LAYOUTS = ("chunk", "column")
ISAS = ("scalar", "avx2", "avx512")
_EMPTY: dict[str, Array] = {
    kind: np.zeros(0, dtype) for kind, dtype in (("u32", np.uint32), ("u64", np.uint64), ("f32", np.float32))
}
_CSR = (sp.csr_array, sp.csr_matrix)
_FLOAT32 = np.dtype(np.float32)
_DAMAGED = 5


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Which variant answers. All give the same bits; "auto" lets the engine choose."""

    matcher: str = "auto"
    layout: str = "auto"
    isa: str = "auto"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("matcher", self.matcher, MATCHERS),
            ("layout", self.layout, LAYOUTS),
            ("isa", self.isa, ISAS),
        ):
            if value not in ("auto", *known):
                raise SettingsError(f"{name}={value!r} is not known. Use 'auto', {', '.join(map(repr, known))}.")
        if self.isa != "auto" and not _core.isa_supported(ISAS.index(self.isa)):
            raise SettingsError(
                f"This machine has no {self.isa}. Use isa='auto'; it would take {ISAS[_core.best_isa()]}."
            )


@dataclass(frozen=True)
class LayerChoice:
    """What `auto` took for one layer, and the numbers that decided."""

    tree: int
    layer: int
    matcher: str
    why: str


@dataclass(frozen=True)
class Stats:
    """What one call did: native nanoseconds, the engine and why, and the work."""

    nanoseconds: int
    layout: str
    matcher: str
    isa: str
    blocks: int
    rows: int
    bytes: int
    choices: tuple[LayerChoice, ...]


class Searcher:
    """A native forest in one layout, ready to search. Immutable; any number of threads may share it."""

    def __init__(self, engine: Engine, forest: Any, features: int, activation: Activation, trees: int) -> None:
        self.engine, self.features, self.activation, self.trees = engine, features, activation, trees
        self.forest, self._search = forest, forest.topk
        self.layout = "chunk" if engine.layout == "auto" else engine.layout
        self._matcher = -1 if engine.matcher == "auto" else MATCHERS.index(engine.matcher)
        self._isa = _core.best_isa() if engine.isa == "auto" else ISAS.index(engine.isa)

    def topk(
        self, X: Any, k: int, beam: int, threads: int, exact: bool, with_stats: bool = False, sort_blocks: bool = True
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], Any]:
        """Labels, scores (n x k) and, when wanted, the raw statistics of the call."""
        # The quick way in: CSR arrays of the right types go to the core as they are; it looks at every number once.
        if type(X) not in _CSR or X.data.dtype != _FLOAT32 or X.shape[-1] != self.features:
            X = as_csr(X, self.features, "X")
        offsets = X.indptr
        labels, scores = allocate(len(offsets) - 1, k)
        try:
            result = self._search(
                offsets,
                X.indices,
                X.data,
                labels,
                scores,
                beam,
                threads,
                self._matcher,
                self._isa,
                exact,
                sort_blocks,
                with_stats,
            )
        except TypeError:  # ids of an odd integer type: a copy has usual ones
            usual = as_csr(X, self.features, "X")
            if (usual.indices.dtype, usual.indptr.dtype) == (X.indices.dtype, X.indptr.dtype):
                raise
            return self.topk(usual, k, beam, threads, exact, with_stats, sort_blocks)
        if result == 0 or type(result) is tuple:
            return labels, scores, result
        if result == _DAMAGED:
            raise FormatError(
                "The model is damaged: an offset in its weights leads outside. Get a fresh copy of its file; "
                "load(…, verify=True) checks it."
            )
        canonical = as_csr(
            X, self.features, "X"
        )  # raises with the place and the reason, unless rows were only unsorted
        return self.topk(canonical, k, beam, threads, exact, with_stats, sort_blocks)

    def stats(self, raw: Any) -> Stats:
        """The statistics of a call, in words."""
        nanoseconds, blocks, rows, touched, choices = raw
        named = tuple(
            LayerChoice(
                tree,
                layer,
                MATCHERS[matcher],
                f"{met:,.0f} blocks over {chunks:,.0f} supports of {size:,.0f} rows, {nonzeros:,.0f} non-zeros a query",
            )
            for tree, layer, matcher, met, chunks, size, nonzeros in choices
        )
        return Stats(nanoseconds, self.layout, self.engine.matcher, ISAS[self._isa], blocks, rows, touched, named)


def allocate(n: int, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Room for the answers."""
    try:
        return np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    except (MemoryError, ValueError):
        if n < 0:
            raise DataError("X is not a valid CSR matrix: its indptr is empty. Build it anew.") from None
        raise SettingsError(
            f"The answers to {n:,} queries with k={k:,} do not fit in memory. Use a smaller k, or ask in parts."
        ) from None


def forest_of(
    sections: Mapping[str, Array], sizes: tuple[TreeSize, ...], features: int, labels: int, activation: Activation
) -> Any:
    """The native forest over a model's arrays in the chunk layout."""
    forest = _core.Forest(features, labels, activation.kind_number, activation.power, activation.path_number, 0)
    for tree, size in enumerate(sizes):
        for layer, nodes in enumerate(size.nodes):
            add_shape(forest, sections, tree, layer, nodes)
            fields = (
                ("row_start", "u64"),
                ("word_start", "u64"),
                ("feature", "u32"),
                ("offset", "u32"),
                ("words", "u32"),
                ("index", "u32"),
            )
            forest.set_chunks(*(sections.get(layer_name(tree, layer, field), _EMPTY[kind]) for field, kind in fields))
    return forest


def add_shape(forest: Any, sections: Mapping[str, Array], tree: int, layer: int, nodes: int) -> None:
    """Tells the forest who is whose child in a layer."""
    fields = (("child_start", "u32"), ("label", "u32"), ("bias", "f32"))
    forest.add_layer(
        tree, nodes, *(sections.get(layer_name(tree, layer, field), _EMPTY[kind]) for field, kind in fields)
    )


def column_forest(
    chunked: Any,
    sections: Mapping[str, Array],
    sizes: tuple[TreeSize, ...],
    features: int,
    labels: int,
    activation: Activation,
    hashed: bool,
    threads: int,
) -> Any:
    """The native forest with the weights of a chunked one laid out column by column: the vanilla baseline."""
    forest = _core.Forest(features, labels, activation.kind_number, activation.power, activation.path_number, 1)
    for tree, size in enumerate(sizes):
        for layer, nodes in enumerate(size.nodes):
            add_shape(forest, sections, tree, layer, nodes)
            start, feature, weight = columns_of(chunked, tree, layer, nodes, threads)
            forest.set_columns(start, feature, weight, hash_index(start, feature, threads) if hashed else _EMPTY["u32"])
    return forest


def with_index(sections: Mapping[str, Array], sizes: tuple[TreeSize, ...], threads: int) -> dict[str, Array]:
    """The arrays of a model and, where they lack, the hash index of each layer."""
    out = dict(sections)
    for tree, size in enumerate(sizes):
        for layer in range(len(size.nodes)):
            name = layer_name(tree, layer, "index")
            if name not in out:
                feature = out.get(layer_name(tree, layer, "feature"), _EMPTY["u32"])
                out[name] = hash_index(out[layer_name(tree, layer, "row_start")], feature, threads)
    return out
