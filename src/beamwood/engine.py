"""engine.py — arrays of a model and a choice of engine in, ranked labels out. The one caller of the native search."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.inputs.arguments import cores
from beamwood.inputs.matrices import as_csr, one_row
from beamwood.lexical.postings import native_postings
from beamwood.storage.build import chunks_of, columns_of, hash_index, layer_name, layers_of, nodes_of
from beamwood.storage.draft import CUT
from beamwood.storage.layers import Layer, Nodes
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import ModelShape
from beamwood.storage.store import reading

Array = npt.NDArray[Any]
Found = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

MATCHERS, LAYOUTS, ISAS = (tuple(member.name for member in kind) for kind in (_core.Matcher, _core.Layout, _core.Isa))
_EMPTY: dict[str, Array] = {
    kind: np.zeros(0, dtype) for kind, dtype in (("u32", np.uint32), ("u64", np.uint64), ("f32", np.float32))
}
_CSR = (sp.csr_array, sp.csr_matrix)
_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)
_DAMAGED, _ODD_ARRAYS = int(_core.DAMAGED), -1


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Which variant answers. All give the same bits; "auto" lets the engine choose: cascade, which needs no matcher."""

    matcher: str = "auto"
    layout: str = "auto"
    isa: str = "auto"
    bound: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.layout, str) and self.layout == "threaded":
            warnings.warn("layout='threaded' is called 'cascade' now.", FutureWarning, stacklevel=4)
            object.__setattr__(self, "layout", "cascade")
        if type(self.bound) is not bool:
            raise SettingsError(f"bound={self.bound!r}. Use True, or False to open every node of the beam.")
        for name, value, known in (
            ("matcher", self.matcher, MATCHERS),
            ("layout", self.layout, LAYOUTS),
            ("isa", self.isa, ISAS),
        ):
            if not isinstance(value, str) or value not in ("auto", *known):
                raise SettingsError(f"{name}={value!r:.80} is not known. Use 'auto', {', '.join(map(repr, known))}.")
        if self.isa not in isas_here():
            raise SettingsError(
                f"This machine has no {self.isa}. Use isa='auto'; it would take {_core.best_isa().name}."
            )

    def chosen_layout(self) -> str:
        """The layout that answers: the model's own unless a matcher was named, for a cascade needs none."""
        if self.layout != "auto":
            return self.layout
        return "cascade" if self.matcher == "auto" else "chunk"


def isas_here() -> tuple[str, ...]:
    """The instruction sets that can be asked for on this machine."""
    return ("auto", *(isa.name for isa in _core.Isa if _core.isa_supported(isa)))


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

    def __init__(self, engine: Engine, layout: str, forest: _core.Forest, shape: ModelShape) -> None:
        self.engine, self.layout, self.features, self.columns = engine, layout, shape.features, shape.columns
        self.forest, self._search = forest, forest.topk
        self._isa = _core.best_isa() if engine.isa == "auto" else _core.Isa[engine.isa]
        self._options = self._native_options(sort_blocks=True)

    @property
    def options(self) -> _core.SearchOptions:
        """The engine as native code takes it."""
        return self._options

    def _native_options(self, sort_blocks: bool) -> _core.SearchOptions:
        matcher = None if self.engine.matcher == "auto" else _core.Matcher[self.engine.matcher]
        return _core.SearchOptions(matcher, self._isa, self.engine.bound, sort_blocks)

    def topk(
        self,
        X: Any,
        k: int,
        beam: int,
        threads: int,
        exact: bool,
        with_stats: bool = False,
        sort_blocks: bool = True,
        filter: Any = None,
        checked: bool = False,
        found: Found | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], Any]:
        """Labels, scores (n x k) and, if asked for, the raw statistics of the call. checked: X comes from as_csr.

        found: n x k, filled with the members that listed each label (bits of head.FOUND_BY); of models with a head.
        """
        # The quick way in: CSR arrays of the right types go to the core as they are; it looks at every number once.
        try:
            shape, rows = X.shape, len(X.indptr) - 1
            fits = shape[-1] == self.features and (shape[0] == rows or (rows == 1 and len(shape) == 1))
            quick = fits and X.data.dtype == _FLOAT32 and type(X) in _CSR
        except (AttributeError, TypeError, IndexError):
            quick = False
        given = X
        if not quick:
            X = one_row(X, self.features) or as_csr(X, self.columns, "X")
            rows = len(X.indptr) - 1
        labels, scores = allocate(rows, k)
        try:
            result = self._search(
                X.indptr,
                X.indices,
                X.data,
                labels,
                scores,
                beam,
                threads,
                self._options if sort_blocks else self._native_options(sort_blocks),
                exact,
                with_stats,
                filter,
                found,
            )
        except TypeError:  # ids of an odd type, arrays with gaps: those of a checked matrix are usual
            if checked:
                raise
            result = _ODD_ARRAYS
        if result == 0 or type(result) is tuple:
            return labels, scores, result
        if result == _DAMAGED:
            raise self._damaged("an offset in its weights leads outside")
        # Raises with the place and the reason, unless rows were only unsorted or arrays only odd.
        canonical = as_csr(given, self.columns, "X")
        return self.topk(canonical, k, beam, threads, exact, with_stats, sort_blocks, filter, True, found)

    def score(self, X: Any, labels: Any, leaves: Any, threads: int, apart: bool = False) -> tuple[Any, Any, Any]:
        """The scores (n x m) of given labels, canonical rows in; with apart also those of trees and of words."""
        scores = np.empty(labels.shape, np.float32)
        trees, words = (np.empty(labels.shape if apart else (0, 0), np.float32) for _ in range(2))
        given = (X.indptr, X.indices, X.data, leaves, labels, scores, trees, words)
        if _core.score(self.forest, *given, threads, self._isa):
            raise self._damaged("an offset in its weights leads outside")
        return scores, trees, words

    def search(self, text: str, vectorizer: Any, captions: Any, k: int, beam: int, filter: Any = None) -> Any:
        """(fault, known terms, native nanoseconds, hits) of one text: tokens, features, beam and names in one call."""
        return self._sound(_core.search, vectorizer, text, captions, k, beam, self._options, filter)

    def search_json(
        self, text: str, vectorizer: Any, captions: Any, k: int, beam: int, filter: Any, least: float
    ) -> Any:
        """(fault, fields of JSON, native nanoseconds): the same with the hits that score at least `least`."""
        return self._sound(_core.search_json, vectorizer, text, captions, k, beam, self._options, filter, least)

    def native_parts(self, vectorizer: Any, captions: Any) -> tuple[Any, ...]:
        """What native code needs to search texts by itself."""
        return self.forest, vectorizer, captions, self._options

    def _sound(self, call: Any, *arguments: Any) -> Any:
        try:
            found = call(self.forest, *arguments)
        except IndexError:
            found = (_DAMAGED,)
        if found[0]:
            raise self._damaged("its vocabulary, weights or names lead outside")
        return found

    def _damaged(self, how: str) -> FormatError:
        """What is to be said of a search that could not be finished."""
        if not self.forest.intact():
            return FormatError(CUT)
        return FormatError(
            f"The model is damaged: {how}. Get a fresh copy of its file; load(…, verify=True) checks it."
        )

    def stats(self, raw: Any) -> Stats:
        """The statistics of a call, in words."""
        nanoseconds, blocks, rows, touched, choices = raw
        named = tuple(
            LayerChoice(
                tree,
                layer,
                matcher.name,
                f"{met:,.0f} blocks over {chunks:,.0f} supports of {size:,.0f} rows, "
                f"{nonzeros:,.0f} non-zeros per query",
            )
            for tree, layer, matcher, met, chunks, size, nonzeros in choices
        )
        return Stats(nanoseconds, self.layout, self.engine.matcher, self._isa.name, blocks, rows, touched, named)


def allocate(n: int, k: int) -> tuple[Labels, Scores]:
    """Room for the answers."""
    try:
        return np.empty((n, k), _INT64), np.empty((n, k), _FLOAT32)
    except (MemoryError, ValueError):
        if n < 0:
            raise DataError("X is not a valid CSR matrix: its indptr is empty. Build it anew.") from None
        raise SettingsError(
            f"The answers to {n:,} queries with k={k:,} do not fit in memory. Use a smaller k, or ask in parts."
        ) from None


def padded(labels: Labels, scores: Scores, k: int) -> tuple[Labels, Scores]:
    """The same answers in k columns."""
    wide = allocate(len(labels), k)
    given = labels.shape[1]
    wide[0][:, :given], wide[0][:, given:] = labels, -1
    wide[1][:, :given], wide[1][:, given:] = scores, -np.inf
    return wide


def only(kept: npt.NDArray[np.bool_], labels: Labels, scores: Scores) -> tuple[Labels, Scores]:
    """The labels that are kept, moved to the front of each row; the rest is padding."""
    order = np.argsort(~kept, axis=1, kind="stable")
    there = np.take_along_axis(kept, order, 1)
    labels, scores = np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)
    return np.where(there, labels, -1), np.where(there, scores, np.float32(-np.inf))


_SHAPE = (("child_start", "u32"), ("label", "u32"), ("bias", "f32"))
_CASCADE = (("thread_start", "u64"), ("threads", "u32"), ("root", "u32"))
_SCALE = (("scale", "f32"),)


class Forests:
    """The native forests of a model's arrays: the cascade, and other layouts that live while a searcher has them."""

    def __init__(self, parts: ModelParts) -> None:
        self._parts = parts
        self._others: WeakValueDictionary[tuple[str, bool], _core.Forest] = WeakValueDictionary()
        shape = parts.shape
        self.postings: _core.Postings | None = None  # inverted lists, where the model has some
        try:
            self.cascade = cascade_forest(parts)
            if shape.index is not None:
                self.postings = native_postings(parts.sections, shape.features, shape.labels, shape.index)
            self._add_words(self.cascade)
        except (ValueError, TypeError) as error:
            raise FormatError(f"The model is damaged: {error}. Get a fresh copy of its file.") from None

    def _add_words(self, forest: _core.Forest) -> None:
        """Gives a forest the inverted lists, and the head that ranks what both find, where the model has them."""
        head = self._parts.shape.head
        if self.postings is not None:
            forest.set_postings(self.postings)
        if head is not None:
            rows = self._parts.rows_of_label
            forest.set_head(*head.numbers, head.candidates, _EMPTY["u32"] if rows is None else rows)

    def searcher(self, engine: Engine) -> Searcher:
        """What answers with this engine."""
        layout = engine.chosen_layout()
        if not self._parts.shape.trees:
            if layout != "cascade":
                raise SettingsError(
                    f"layout is {layout!r}, and this model is an index without trees; expected 'auto'. Leave layout "
                    "and matcher out."
                )
            layout = "index"
        if layout in ("cascade", "index"):
            return Searcher(engine, layout, self.cascade, self._parts.shape)
        hashed = engine.matcher == "hash"
        forest = self._others.get((layout, hashed))
        if forest is None:
            with reading(self._parts.sections):
                forest = other_forest(layout, self._parts, self.cascade, hashed, cores())
                self._add_words(forest)
            self._others[layout, hashed] = forest
        return Searcher(engine, layout, forest, self._parts.shape)

    def layers(self, tree: int, count: int | None = None) -> list[Layer]:
        """The layers that a tree was built from, bit for bit; the first ones only, if a count is given."""
        shape, sections = self._parts.shape, self._parts.sections
        with reading(sections):
            return layers_of(self.cascade, sections, tree, shape.trees[tree], shape.features, cores(), count)

    def nodes(self, tree: int) -> list[Nodes]:
        """The same without the weights."""
        with reading(self._parts.sections):
            return nodes_of(self._parts.sections, tree, self._parts.shape.trees[tree])


def layer_arrays(parts: ModelParts, tree: int, layer: int, fields: tuple[tuple[str, str], ...]) -> list[Array]:
    """Those arrays of a layer; one that is not there is empty."""
    found = [parts.sections.get(layer_name(tree, layer, field), _EMPTY[kind]) for field, kind in fields]
    for array, (field, kind) in zip(found, fields, strict=True):
        if array.dtype != _EMPTY[kind].dtype:
            raise ValueError(f"{layer_name(tree, layer, field)} has dtype {array.dtype}")
    return found


def each_layer(parts: ModelParts) -> Iterator[tuple[int, int, int]]:
    """(tree, layer, number of nodes) from the top down."""
    for tree, size in enumerate(parts.shape.trees):
        for layer, nodes in enumerate(size.nodes):
            yield tree, layer, nodes


def empty_forest(shape: ModelShape, layout: str) -> _core.Forest:
    """A native forest without layers."""
    return _core.Forest(shape.features, shape.labels, shape.activation.native, _core.Layout[layout], shape.unit_rows)


def cascade_forest(parts: ModelParts) -> _core.Forest:
    """The native forest over the model's own arrays."""
    forest = empty_forest(parts.shape, "cascade")
    kind = _core.WeightKind[parts.shape.weights]
    for tree, layer, nodes in each_layer(parts):
        forest.add_layer(tree, nodes, *layer_arrays(parts, tree, layer, _SHAPE))
        cascade, scale = layer_arrays(parts, tree, layer, _CASCADE), layer_arrays(parts, tree, layer, _SCALE)
        forest.set_cascade(*cascade, kind, *scale)  # type: ignore[call-arg, arg-type]  # arrays first, then a number
    for tree, size in enumerate(parts.shape.trees):
        if layer_name(tree, len(size.nodes) - 1, "label") not in parts.sections:
            raise ValueError(f"the last layer of tree {tree} has no labels")
    set_leaves(forest, parts)
    return forest


def set_leaves(forest: _core.Forest, parts: ModelParts) -> None:
    """Tells a native forest where each label is in each tree."""
    for tree in range(len(parts.shape.trees)):
        forest.set_leaves(tree, parts.leaves(tree))


def other_forest(layout: str, parts: ModelParts, cascade: _core.Forest, hashed: bool, threads: int) -> _core.Forest:
    """The native forest with its weights in another layout: chunks (MSCM) or columns (the vanilla baseline)."""
    forest = empty_forest(parts.shape, layout)
    no_index = _EMPTY["u32"]
    for tree, layer, nodes in each_layer(parts):
        if layer == 0:
            reader = _core.TreeReader(cascade, tree)
        child_start, *rest = layer_arrays(parts, tree, layer, _SHAPE)
        forest.add_layer(tree, nodes, child_start, *rest)
        if layout == "column":
            start, feature, weight = columns_of(reader, layer, nodes, threads)
            forest.set_columns(start, feature, weight, hash_index(start, feature, threads) if hashed else no_index)
        else:
            chunks = chunks_of(reader, layer, len(child_start) - 1, threads)
            forest.set_chunks(*chunks, hash_index(chunks[0], chunks[2], threads) if hashed else no_index)
    set_leaves(forest, parts)
    return forest
