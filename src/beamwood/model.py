"""The public object: a trained tree (or several) that answers queries. Never changes once made; share it freely."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Literal, overload
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.engine import (
    WEIGHT_FIELDS,
    Engine,
    Parts,
    Searcher,
    Stats,
    cascade_forest,
    other_forest,
)
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.explain import Explainer, Explanation, Telling, mean_score
from beamwood.filters import Filter, make_filter
from beamwood.hits import Hits, JsonAnswer, checked_text, hits_above
from beamwood.inputs.arguments import MOST, cores, positive
from beamwood.inputs.rows import as_csr, is_sparse
from beamwood.inputs.text import FittedText
from beamwood.reference import unit_length
from beamwood.storage import store
from beamwood.storage.activations import Activation
from beamwood.storage.build import Sections, TreeSize, build_tree, layer_name, layers_of
from beamwood.storage.layers import Layer
from beamwood.storage.shape import Shape
from beamwood.storage.strings import StringTable, native_strings, string_sections

Labels = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class Model:
    """One or several trees with their weights, and names for the labels. Made by train, load or from_layers."""

    def __init__(
        self,
        shape: Shape,
        sections: Sections,
        engine: Engine | None = None,
        report: Any = None,
        forests: MutableMapping[tuple[str, bool], Any] | None = None,
    ) -> None:
        """For the makers of models below; use train, load, from_layers or from_trees instead.

        forests: what models of the same sections share: their native forests by layout and hash index.
        """
        self._shape, self._sections = shape, sections
        self._engine = engine or Engine()
        self.report = report
        self._forests = WeakValueDictionary() if forests is None else forests
        self._parts = parts_of(shape, sections)
        self.version: str | None = (
            None  # of the file it was loaded from: its header's checksum, which covers all others
        )
        try:
            self._cascade = self._forest("cascade", False)
        except (ValueError, TypeError) as error:
            raise FormatError(f"The model is damaged: {error}. Get a fresh copy of its file.") from None
        self._keys = StringTable.from_arrays(sections, "keys", shape.labels)
        self._names = StringTable.from_arrays(sections, "names", shape.labels)
        self._native_keys, self._native_names = native_strings(self._keys), native_strings(self._names)
        self._text = None if shape.text is None else text_of(shape, sections)
        layout = self._engine.chosen_layout()
        forest = self._forest(layout, layout != "cascade" and self._engine.matcher == "hash")
        self._searcher = Searcher(self._engine, layout, forest, shape.features)

    def _forest(self, layout: str, hashed: bool) -> Any:
        """The native forest in a layout: over the model's own arrays, or laid out anew unless somebody has it."""
        forest = self._forests.get((layout, hashed))
        if forest is None:
            if layout == "cascade":
                forest = cascade_forest(self._parts)
            else:
                forest = other_forest(layout, self._parts, self._cascade, hashed, cores())
            self._forests[layout, hashed] = forest
        return forest

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[Layer],
        *,
        activation: str = "sigmoid",
        path: str | None = None,
        discount: float = 1.0,
        unit_rows: bool = False,
        names: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        settings: dict[str, Any] | None = None,
        report: Any = None,
    ) -> Model:
        """A model of one tree from its layers, top to bottom (see Layer).

        path: how scores are put together; "log-exp" adds log scores and shows exp at the leaf.
        discount: with "log-exp", what a node's score is multiplied by before its children add theirs.
        unit_rows: queries are divided by their length (the l2 norm) first.
        names are shown to people; keys are unique strings that name a label (default: the names).
        """
        parsed = Activation.parse(activation, path, discount)
        return cls._build([layers], parsed, unit_rows, names, keys, settings or {}, report)

    @classmethod
    def from_trees(
        cls, models: Sequence[Model], *, settings: dict[str, Any] | None = None, report: Any = None
    ) -> Model:
        """An ensemble: scores are the mean over the trees of all models given. Names and keys are the first one's."""
        if not models:
            raise DataError("An ensemble needs at least one model; the list is empty.")
        first = models[0]._shape
        sections: Sections = {}
        sizes: list[TreeSize] = []
        for number, model in enumerate(models):
            shape = model._shape
            if shape.weights != first.weights:
                raise DataError(
                    f"Model {number} has {shape.weights} weights, model 0 has {first.weights}. Compress the ensemble "
                    "after it is made, or all of its models alike."
                )
            if _must_agree(shape) != _must_agree(first):
                raise DataError(
                    f"Model {number} has {shape.features:,} features, {shape.labels:,} labels and activation "
                    f"{shape.activation.name}; "
                    f"model 0 has {first.features:,}, {first.labels:,} and {first.activation.name}. Trees of "
                    "an ensemble must agree."
                )
            for tree in range(len(shape.trees)):
                moved = f"tree{len(sizes)}/"
                sections |= {
                    moved + n.partition("/")[2]: a for n, a in model._sections.items() if n.startswith(f"tree{tree}/")
                }
                sizes.append(shape.trees[tree])
        sections |= {n: a for n, a in models[0]._sections.items() if not n.startswith("tree")}
        whole = replace(first, trees=tuple(sizes), settings=first.settings if settings is None else settings)
        return cls(whole, sections, report=report)

    @classmethod
    def _build(
        cls,
        trees: Sequence[Sequence[Layer]],
        activation: Activation,
        unit_rows: bool,
        names: Sequence[str] | None,
        keys: Sequence[str] | None,
        settings: dict[str, Any],
        report: Any,
    ) -> Model:
        sections: Sections = {}
        sizes: list[TreeSize] = []
        labels = 0
        for number, layers in enumerate(trees):
            if not layers:
                raise DataError("A tree needs at least one layer; the list of layers is empty.")
            features = int(layers[0].weights.shape[0]) if is_sparse(layers[0].weights) else 0
            arrays, size, labels = build_tree(layers, number, features, cores())
            sections |= arrays
            sizes.append(size)
        sections |= string_sections(names, keys, labels)
        shape = Shape(features, labels, activation, tuple(sizes), settings, unit_rows=bool(unit_rows))
        return cls(shape, sections, report=report)

    def layers(self, tree: int = 0) -> list[Layer]:
        """The layers that from_layers would make this tree from, bit for bit."""
        if not 0 <= tree < len(self._shape.trees):
            raise SettingsError(f"tree={tree}, but the model has {len(self._shape.trees)} trees, numbered from 0.")
        return layers_of(self._cascade, self._sections, tree, self._shape.trees[tree], self._shape.features, cores())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to one file. The file there before is replaced when the new one is complete, or stays.

        Every engine of a model writes the same file: threads, mapped and used in place when it is loaded.
        """
        from beamwood._version import __version__

        arrays = {name: array for name, array in sorted(self._sections.items()) if array.size}
        described = {"version": __version__, "requires": self._shape.requires(), "model": self._shape.describe()}
        store.save(path, arrays, described)

    def compress(
        self,
        weights: str = "u8",
        *,
        top: int | None = None,
        threshold: float | None = None,
        measure: tuple[Any, Any] | None = None,
    ) -> Model:
        """A smaller model whose `report` says what that cost: bytes, errors of weights and, measured, precision.

        weights: "f16" (half the bits), "u8" (a quarter, in steps of a scale for each chunk) or "f32" (as they are).
        top: keep so many of the largest weights of each node. threshold: drop weights smaller than this.
        measure: a pair (X, Y) of queries and their true labels to measure precision on, before and after.
        The new weights are definite numbers: every engine gives the same bits on them.
        """
        from beamwood.storage.compress import compressed

        return compressed(self, weights, top, threshold, measure)

    def using(
        self,
        *,
        matcher: str | None = None,
        layout: str | None = None,
        isa: str | None = None,
        bound: bool | None = None,
    ) -> Model:
        """The same weights behind another engine; what is not given stays as it is. Every engine gives the same bits.

        matcher: march, binary, hash, dense; layout: cascade, chunk, column; isa: scalar, avx2, avx512; each also auto.
        auto is the cascade layout, which needs no matcher and uses the model as it is. Chunks and columns are built
        beside it, and a matcher without a layout means chunks. bound=False opens every node of the beam, also those
        that can contribute nothing, for comparison.
        """
        asked = (("matcher", matcher), ("layout", layout), ("isa", isa), ("bound", bound))
        given: dict[str, Any] = {name: value for name, value in asked if value is not None}
        return Model(self._shape, self._sections, replace(self._engine, **given), self.report, self._forests)

    @overload
    def topk(
        self,
        X: Any,
        k: int = ...,
        beam: int = ...,
        threads: int = ...,
        *,
        exact: bool = ...,
        stats: Literal[False] = ...,
        filter: Filter | None = ...,
    ) -> tuple[Labels, Scores]: ...
    @overload
    def topk(
        self,
        X: Any,
        k: int = ...,
        beam: int = ...,
        threads: int = ...,
        *,
        exact: bool = ...,
        stats: Literal[True],
        filter: Filter | None = ...,
    ) -> tuple[Labels, Scores, Stats]: ...
    def topk(
        self,
        X: Any,
        k: int = 10,
        beam: int = 10,
        threads: int = 1,
        *,
        exact: bool = False,
        stats: bool = False,
        filter: Filter | None = None,
    ) -> tuple[Labels, Scores] | tuple[Labels, Scores, Stats]:
        """The best k labels of each row of X and their scores: two n x k arrays in rank order, padded with -1 and -inf.

        beam: nodes kept a layer. exact=True looks for the true best k instead, however many nodes that takes.
        stats=True also returns what the call did. filter: find allowed labels alone (see `filter`); the search then
        goes on until it has k of them or there are no more.
        """
        counts = type(k) is int and type(beam) is int and type(threads) is int
        if not (counts and 1 <= k <= MOST and 1 <= beam <= MOST and 1 <= threads <= MOST):
            k, beam, threads = positive(k, "k"), positive(beam, "beam"), positive(threads, "threads")
        searcher = self._exact_searcher() if exact else self._searcher
        native = None if filter is None else self._own(filter)
        labels, scores, raw = searcher.topk(X, k, beam, threads, exact, stats, filter=native)
        return (labels, scores, searcher.stats(raw)) if stats else (labels, scores)

    def predict(
        self,
        X: Any,
        k: int = 10,
        beam: int = 10,
        threads: int = 1,
        *,
        exact: bool = False,
        filter: Filter | None = None,
    ) -> Any:
        """The same answers as topk as a scipy CSR array, queries x labels, each row in rank order."""
        labels, scores = self.topk(X, k, beam, threads, exact=exact, filter=filter)
        found = labels >= 0
        offsets = np.zeros(len(labels) + 1, np.int64)
        np.cumsum(found.sum(axis=1), out=offsets[1:])
        return sp.csr_array((scores[found], labels[found], offsets), shape=(len(labels), self._shape.labels))

    def _exact_searcher(self) -> Searcher:
        if len(self._shape.trees) > 1:
            raise SettingsError(
                f"exact=True works with one tree, this model has {len(self._shape.trees)}. Use a wider beam "
                "instead, for example beam=100."
            )
        if not self._shape.activation.only_shrinks:
            raise SettingsError(
                "exact=True needs an activation that only shrinks scores down the tree; identity and a discount "
                "do not. Use a wider beam instead."
            )
        return self._searcher

    def search(
        self,
        text: str,
        k: int = 10,
        beam: int = 10,
        min_score: float | None = None,
        *,
        exact: bool = False,
        filter: Filter | None = None,
    ) -> Hits:
        """The best k labels for a text, best first: Hit(label, key, name, score). Needs a model trained from text.

        min_score: leave out hits that score less. exact and filter: as in topk. A text none of whose words the model
        knows gives an empty answer.
        """
        fitted = self._fitted_text()
        if exact:
            return self.search_many([checked_text(text)], k, beam, 1, min_score, exact=True, filter=filter)[0]
        k, beam = positive(k, "k"), positive(beam, "beam")
        native = None if filter is None else self._own(filter)
        found = self._searcher.search(
            checked_text(text), fitted.vectorizer, self._native_keys, self._native_names, k, beam, native
        )
        return hits_above(found[3], min_score, found[1], found[2])

    def search_json(
        self, text: str, k: int = 10, beam: int = 10, min_score: float | None = None, filter: Filter | None = None
    ) -> JsonAnswer:
        """The hits of search as JSON, in bytes: what a server sends on, without a Python object a hit."""
        fitted = self._fitted_text()
        native = None if filter is None else self._own(filter)
        least = -np.inf if min_score is None else min_score
        strings = (self._native_keys, self._native_names)
        _, fields, nanoseconds = self._searcher.search_json(
            checked_text(text), fitted.vectorizer, *strings, positive(k, "k"), positive(beam, "beam"), native, least
        )
        return JsonAnswer(fields, nanoseconds)

    def native_parts(self) -> tuple[Any, ...]:
        """What native code needs to search texts by itself: the server's quick way, without Python in between."""
        return self._searcher.native_parts(self._fitted_text().vectorizer, self._native_keys, self._native_names)

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        beam: int = 10,
        threads: int = 1,
        min_score: float | None = None,
        *,
        exact: bool = False,
        filter: Filter | None = None,
    ) -> list[Hits]:
        """The same for many texts at once, with the same answers."""
        fitted = self._fitted_text()
        X = fitted.transform(texts, threads=positive(threads, "threads"))
        labels, scores = self.topk(X, k, beam, threads, exact=exact, filter=filter)
        known = np.diff(X.indptr).tolist()
        empty: list[Any] = []
        return [
            hits_above(
                _core.hits(labels[i], scores[i], self._native_keys, self._native_names) if known[i] else empty,
                min_score,
                known[i],
            )
            for i in range(len(known))
        ]

    def with_names(self, names: Sequence[str] | None = None, keys: Sequence[str] | None = None) -> Model:
        """The same model with other names for people and other unique keys, one for each label (default: the names)."""
        sections = {n: a for n, a in self._sections.items() if not n.startswith(("names/", "keys/"))}
        sections |= string_sections(names, keys, self._shape.labels)
        return Model(self._shape, sections, self._engine, self.report)

    def filter(self, allow: Any = None, deny: Any = None, *, missing: str = "error") -> Filter:
        """Which labels may be found: those allowed (default: all) and not denied. For topk, predict and search.

        allow and deny are label keys (strings), label numbers, or a truth value for each label. missing="ignore" leaves
        out keys that no label has and lists them in the filter's `missing`. Build a filter once and use it often.
        """
        return make_filter(self._cascade, self._leaves, self._shape.labels, self._find_keys, allow, deny, missing)

    def _own(self, filter: Filter) -> Any:
        """The native side of a filter of this model, under whichever engine."""
        if not isinstance(filter, Filter):
            raise SettingsError(f"filter={filter!r:.80}. A filter made by model.filter(allow=…, deny=…) is wanted.")
        if not filter.made_for(self._leaves):
            raise SettingsError("The filter was made by another model. Make one with this model's filter(…).")
        return filter._native

    @cached_property
    def _leaves(self) -> tuple[Any, ...]:
        """The arrays that a model and its filters know each other by."""
        return tuple(self._sections[f"tree{tree}/leaf_of_label"] for tree in range(len(self._shape.trees)))

    def _find_keys(self, keys: list[str]) -> Labels:
        if self._keys is not None:
            return self._keys.find_many(keys)
        return np.array([-1 if found is None else found for found in map(self.label_of, keys)], np.int64)

    def explain(self, query: Any, label: str | int, *, beam: int | None = None, words: int = 10) -> Explanation:
        """Why a label (its key or number) scores as it does for a text or a row: every product on its path.

        Added in order, the numbers give the score bit for bit: the one of a beam that drops nothing, or, for several
        trees, the one that topk gives with this `beam`. words: so many of each node's largest weights are named.
        """
        row, number = self._row(query), self._label(label)
        if words:
            positive(words, "words")
        trees = list(range(len(self._shape.trees)))
        if beam is not None:
            trees = [tree for tree in trees if self._reaches(tree, row, number, positive(beam, "beam"))]
            if not trees:
                raise DataError(
                    f"The search with beam={beam} does not reach label {label!r}. Use a wider beam, or beam=None for "
                    "the score of one that drops nothing."
                )
        if self._shape.unit_rows:
            row = unit_length(row)
        paths = [self._explainer().tree_path(tree, number, row.indices, row.data, words) for tree in trees]
        score = mean_score([path.score for path in paths], len(self._shape.trees))
        form, named = self._shape.activation, (number, self.key(number), self.name(number))
        how = (form.name, form.path, form.discount)
        return Explanation(*named, score, *how, tuple(paths), len(self._shape.trees))

    def words(self, tree: int, layer: int, node: int, n: int = 10) -> tuple[Telling, ...]:
        """The n largest weights of a node, numbered as in layers(tree)[layer]: the words that lead to it."""
        size = self._shape.trees
        if not (0 <= tree < len(size) and 0 <= layer < len(size[tree].nodes) and 0 <= node < size[tree].nodes[layer]):
            raise SettingsError(f"The model has no node {node} in layer {layer} of tree {tree}. See info()['nodes'].")
        explainer = self._explainer()
        place = explainer.place(tree, layer, node)
        return explainer.telling(*explainer.weights(tree, layer, place), positive(n, "n"))

    def _explainer(self) -> Explainer:
        text = self._text
        word = (lambda j: f"feature {j}") if text is None else text.term
        nodes = [tree.nodes for tree in self._shape.trees]
        return Explainer(self._cascade, self._sections, nodes, self._shape.activation, word)

    def _row(self, query: Any) -> Any:
        """One text or one row as canonical CSR of one row."""
        if isinstance(query, str):
            return as_csr(self._fitted_text().transform([checked_text(query)]), self._shape.features, "The text")
        row = as_csr(query, self._shape.features, "The query")
        if row.shape[0] != 1:
            raise DataError(f"The query has {row.shape[0]:,} rows. An explanation is of one: pass a text or X[[i]].")
        return row

    def _label(self, label: str | int) -> int:
        """The number of a label given by its key or number."""
        if not isinstance(label, str):
            return self._checked(label)
        found = self.label_of(label)
        if found is None:
            raise DataError(f"No label has the key {label!r}. Keys are what search shows as hit.key.")
        return found

    def _reaches(self, tree: int, row: Any, label: int, beam: int) -> bool:
        """Whether one tree alone reaches a label with this beam."""
        size, own, first = self._shape.trees[tree], f"tree{tree}/", "tree0/"
        sections = {first + n.removeprefix(own): a for n, a in self._sections.items() if n.startswith(own)}
        alone = Model(replace(self._shape, trees=(size,), text=None), sections, self._engine)
        starts = [sections[layer_name(0, layer, "child_start")] for layer in range(len(size.nodes))]
        most = beam * sum(int(np.diff(start).max()) for start in starts)
        return label in alone.topk(row, min(most, self._shape.labels), beam)[0]

    def with_unit_rows(self) -> Model:
        """The same model, for which queries are divided by their length first."""
        return Model(replace(self._shape, unit_rows=True), self._sections, self._engine, self.report)

    def with_text(self, text: FittedText) -> Model:
        """The same model, with the text features that its columns were made with: it can then search."""
        if text.columns != self._shape.features:
            raise DataError(
                f"The text features have {text.columns:,} columns, but the model has {self._shape.features:,} "
                "features. "
                f"Give the ones that X was made with."
            )
        sections = {name: array for name, array in self._sections.items() if not name.startswith("text/")}
        sections |= {f"text/{name}": array for name, array in text.arrays().items()}
        shape = replace(self._shape, text=text.settings())
        return Model(shape, sections, self._engine, self.report, self._forests)

    def with_rows_of_label(self, counts: Any) -> Model:
        """The same model, with the number of training rows that have each label."""
        counts = np.asarray(counts)
        if counts.shape != (self._shape.labels,) or counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
            raise DataError(
                f"The rows of each label are an array of shape {counts.shape} and dtype {counts.dtype}. One count for "
                f"each of {self._shape.labels:,} labels is wanted."
            )
        sections = self._sections | {"rows_of_label": counts.astype(np.uint32)}
        return Model(self._shape, sections, self._engine, self.report)

    @property
    def rows_of_label(self) -> npt.NDArray[np.uint32] | None:
        """How many training rows had each label, where the model knows."""
        counts = self._sections.get("rows_of_label")
        if counts is not None and (counts.shape != (self._shape.labels,) or counts.dtype != np.uint32):
            raise FormatError("The model is damaged: its counts of rows do not fit its labels. Get a fresh copy.")
        return counts

    @property
    def text(self) -> FittedText | None:
        """The text features the model was trained with, if it was trained from text."""
        return self._text

    def _fitted_text(self) -> FittedText:
        if self._text is None:
            raise SettingsError(
                "This model was trained from numbers and knows no words. Use topk with a matrix, train with "
                "train_text, "
                "or give it the text features that made its columns: model.with_text(features)."
            )
        return self._text

    @property
    def n_features(self) -> int:
        """The number of features d: columns of X."""
        return self._shape.features

    @property
    def n_labels(self) -> int:
        """The number of labels L."""
        return self._shape.labels

    @property
    def settings(self) -> dict[str, Any]:
        """The settings the model was trained with."""
        return dict(self._shape.settings)

    def key(self, label: int) -> str:
        """The unique key of a label; its number when the model has no keys."""
        label = self._checked(label)
        return str(label) if self._keys is None else self._keys[label]

    def name(self, label: int) -> str:
        """What people read for a label; its key when the model has no names."""
        return self.key(label) if self._names is None else self._names[self._checked(label)]

    def label_of(self, key: str) -> int | None:
        """The label with this key, or None."""
        if self._keys is not None:
            return self._keys.find(key)
        return int(key) if key.isascii() and key.isdecimal() and int(key) < self._shape.labels else None

    def _checked(self, label: int) -> int:
        if not 0 <= label < self._shape.labels:
            raise DataError(
                f"Label {label} does not exist: the model has {self._shape.labels:,} labels, numbered from 0."
            )
        return int(label)

    def info(self) -> dict[str, Any]:
        """Labels, features, depth, non-zeros, bytes by section, engine and settings."""
        nonzeros = sum(sum(tree.nonzeros) for tree in self._shape.trees)
        sizes = {name: int(array.nbytes) for name, array in sorted(self._sections.items())}
        weights = sum(size for name, size in sizes.items() if name.rpartition("/")[2] in WEIGHT_FIELDS)
        return {
            "labels": self._shape.labels,
            "features": self._shape.features,
            "activation": self._shape.activation.name,
            "path": self._shape.activation.path,
            "discount": self._shape.activation.discount,
            "unit_rows": self._shape.unit_rows,
            "trees": len(self._shape.trees),
            "depth": max(len(tree.nodes) for tree in self._shape.trees),
            "nodes": [list(tree.nodes) for tree in self._shape.trees],
            "nonzeros": nonzeros,
            "bytes": sum(sizes.values()),
            "kind_of_weights": self._shape.weights,
            "bytes_of_weights": weights,
            "bytes_a_nonzero": weights / max(1, nonzeros),
            "bytes_by_section": sizes,
            "engine": asdict(self._engine),
            "settings": self.settings,
        }

    def plot_tree(self) -> Any:
        """A matplotlib figure of nodes, widths and non-zeros a layer. Needs the extra: pip install 'beamwood[plot]'."""
        from beamwood.plot import plot_tree

        return plot_tree(self)

    def __repr__(self) -> str:
        shape = self._shape
        trees = f"{len(shape.trees)} tree" + "s" * (len(shape.trees) > 1)
        size = f"{shape.labels:,} labels, {shape.features:,} features"
        return f"<beamwood.Model: {size}, {trees}, {shape.activation.name}>"


def parts_of(shape: Shape, sections: Sections) -> Parts:
    """What a native forest is made from."""
    return Parts(sections, shape.trees, shape.features, shape.labels, shape.activation, shape.weights, shape.unit_rows)


def _must_agree(shape: Shape) -> tuple[Any, ...]:
    """What the trees of an ensemble have in common."""
    return shape.features, shape.labels, shape.activation, shape.unit_rows


def text_of(shape: Shape, sections: Sections) -> FittedText:
    """The text features in a model's arrays, which may be damaged."""
    arrays = {name.removeprefix("text/"): array for name, array in sections.items() if name.startswith("text/")}
    fitted = FittedText.from_arrays(shape.text or {}, arrays)
    if fitted.columns != shape.features:
        raise FormatError(
            f"The model is damaged: {fitted.columns:,} terms for {shape.features:,} features. Get a fresh "
            "copy of the file."
        )
    return fitted
