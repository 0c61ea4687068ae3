"""ranker.py — queries in, ranked labels out: the part of a model that answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
import scipy.sparse as sp

from beamwood import _core
from beamwood.engine import Engine, Forests, Found, Labels, Scores, Searcher, Stats, only, padded
from beamwood.errors import SettingsError
from beamwood.filters import Filter, make_filter
from beamwood.hits import Answers, Hits, JsonAnswer, hits_above, json_of_rows, many_hits
from beamwood.inputs.arguments import MOST, as_texts, checked_text, positive
from beamwood.inputs.matrices import RowsLike, as_csr
from beamwood.life.calibration import NONE as NO_CURVES
from beamwood.life.cut import Cut, Thresholds
from beamwood.show.answers import model_html
from beamwood.show.described import Described
from beamwood.storage.label_strings import given_labels
from beamwood.storage.parts import ModelParts
from beamwood.storage.store import reading


class Ranker(Described):
    """Trees, names and text features behind an engine: ranks labels for rows and texts. Never changes."""

    _finds_texts = True  # whether native code goes from a text to its labels in one call

    def __init__(self, parts: ModelParts, engine: Engine, forests: Forests | None) -> None:
        """forests: those of a model with the same trees, where there is one."""
        super().__init__(parts)
        self._engine = engine
        self._forests = Forests(parts) if forests is None else forests
        self._finds_texts = self._finds_texts and (self._text is None or self._text.meaning is None)
        self._searcher = self._forests.searcher(self._engine)
        self._thresholds = Thresholds.read(parts.shape.cut, parts.sections, parts.shape.labels)
        curves = self._thresholds.curves
        keys, names = self._strings.native
        ranks, knots, probabilities = NO_CURVES if curves is None else curves.native()
        self._captions = _core.Captions(keys, names, ranks, knots, probabilities, self._thresholds.least)

    def _repr_html_(self) -> str:
        shape = self._parts.shape
        return model_html(
            "beamwood model" if shape.trees else "beamwood exact index",
            {
                "labels": shape.labels,
                "features": shape.features,
                "trees": len(shape.trees),
                "layers": ", ".join(str(len(tree.nodes)) for tree in shape.trees),
                "activation": shape.activation.name,
                "takes": "texts and rows" if self._text is not None else "rows",
                "probabilities": "yes" if self.is_calibrated else "no; calibrate gives them",
            },
        )

    @overload
    def topk(
        self,
        X: RowsLike,
        k: int = ...,
        beam: int | None = ...,
        threads: int = ...,
        *,
        exact: bool = ...,
        stats: Literal[False] = ...,
        filter: Filter | None = ...,
        threshold: bool | float | None = ...,
    ) -> tuple[Labels, Scores]: ...
    @overload
    def topk(
        self,
        X: RowsLike,
        k: int = ...,
        beam: int | None = ...,
        threads: int = ...,
        *,
        exact: bool = ...,
        stats: Literal[True],
        filter: Filter | None = ...,
        threshold: bool | float | None = ...,
    ) -> tuple[Labels, Scores, Stats]: ...
    def topk(
        self,
        X: RowsLike,
        k: int = 10,
        beam: int | None = None,
        threads: int = 1,
        *,
        exact: bool = False,
        stats: bool = False,
        filter: Filter | None = None,
        threshold: bool | float | None = None,
    ) -> tuple[Labels, Scores] | tuple[Labels, Scores, Stats]:
        """The best k labels of each row of X and their scores: two n x k arrays in rank order, padded with -1 and -inf.

        beam: nodes kept per layer; None: as many as the model stores (its `beam`). exact=True looks for the true best
        k instead, however many nodes that takes.
        stats=True also returns what the call did. filter: find only allowed labels (see `filter`); the search then
        goes on until it has k of them or there are no more. A k above n_labels adds columns of padding, as asked for;
        predict, search and search_many pad nothing, and a k above n_labels costs them nothing.
        threshold: keep only labels that apply: of at least this probability, or, with True, those above the stored cut
        (see `cut`); rows then have as many labels as apply, up to k.
        """
        beam = self._parts.shape.beam if beam is None else beam
        counts = type(k) is int and type(beam) is int and type(threads) is int
        if not (counts and 1 <= k <= MOST and 1 <= beam <= MOST and 1 <= threads <= MOST):
            k, beam, threads = positive(k, "k"), positive(beam, "beam"), positive(threads, "threads")
        if exact:
            self._check_exact()
        native = None if filter is None else self._native_filter(filter)
        most = min(k, self._parts.shape.labels)
        labels, scores, raw = self._searcher.topk(X, most, beam, threads, exact, stats, filter=native)
        if threshold is not None:
            labels, scores = only(self._thresholds.kept(threshold, labels, scores), labels, scores)
        if k > most:
            labels, scores = padded(labels, scores, k)
        return (labels, scores, self._searcher.stats(raw)) if stats else (labels, scores)

    def found(
        self,
        X: Any,
        k: int = 10,
        beam: int | None = None,
        threads: int = 1,
        *,
        exact: bool = False,
        filter: Filter | None = None,
        threshold: bool | float | None = None,
    ) -> tuple[Labels, Scores, Found | None]:
        """As topk, and the members that listed each answer: 1 trees, 2 words, 3 both; None where there is one."""
        if self._parts.shape.head is None:
            return *self.topk(X, k, beam, threads, exact=exact, filter=filter, threshold=threshold), None
        k, beam, threads = positive(k, "k"), self._beam(beam), positive(threads, "threads")
        if exact:
            self._check_exact()
        native = None if filter is None else self._native_filter(filter)
        X = as_csr(X, self.columns, "X")
        most = min(k, self.n_labels)
        by = np.zeros((X.shape[0], most), np.uint8)
        labels, scores, _ = self._searcher.topk(X, most, beam, threads, exact, filter=native, found=by)
        if threshold is not None:
            kept = self._thresholds.kept(threshold, labels, scores)
            by = np.take_along_axis(by, np.argsort(~kept, axis=1, kind="stable"), 1)
            labels, scores = only(kept, labels, scores)
        if k > most:
            labels, scores = padded(labels, scores, k)
            by = np.pad(by, ((0, 0), (0, k - most)))
        return labels, scores, by

    def score(self, X: Any, labels: Any, *, threads: int = 1) -> Scores:
        """The exact scores of given labels, rows x labels: no beam decides them.

        labels: keys or numbers of labels, the same for all rows; or a matrix of label numbers, one row per row of X, as
        topk gives it (-1 stands for no label and scores -inf). A label's score is that of its path in every tree and,
        in a model that also has words, what the head makes of it and of its words: what topk gives where all trees
        reach the label.
        """
        X = as_csr(X, self.columns, "X")
        given = given_labels(labels, X.shape[0], self._strings, self.n_labels)
        found: Scores = self._scores(X, given, positive(threads, "threads"))[0]
        return found

    def _scores(self, X: Any, given: Labels, threads: int, apart: bool = False) -> tuple[Any, Any, Any]:
        """Scores of given labels, canonical rows in; with apart also those of trees and of words."""
        trees = [self._parts.leaves(tree) for tree in range(len(self._parts.shape.trees))]
        return self._scorer.score(X, given, trees, threads, apart)

    @cached_property
    def _scorer(self) -> Searcher:
        """The searcher of the model's own layout, which scores given labels."""
        return self._forests.searcher(replace(self._engine, layout="auto", matcher="auto"))

    def predict(
        self,
        X: RowsLike,
        k: int = 10,
        beam: int | None = None,
        threads: int = 1,
        *,
        exact: bool = False,
        filter: Filter | None = None,
        threshold: bool | float | None = None,
    ) -> sp.csr_array[np.float32]:
        """The same answers as topk as a scipy CSR array, queries x labels, each row in rank order."""
        k = min(positive(k, "k"), self._parts.shape.labels)
        labels, scores = self.topk(X, k, beam, threads, exact=exact, filter=filter, threshold=threshold)
        found = labels >= 0
        offsets = np.zeros(len(labels) + 1, np.int64)
        np.cumsum(found.sum(axis=1), out=offsets[1:])
        return sp.csr_array((scores[found], labels[found], offsets), shape=(len(labels), self.n_labels))

    def _check_exact(self) -> None:
        """Whether this model has an exact search."""
        shape = self._parts.shape
        if shape.trees and not shape.activation.only_shrinks:  # an index is exact anyway
            raise SettingsError(
                "exact=True needs an activation that only shrinks scores down the tree; identity and a discount "
                "do not. Use a wider beam instead."
            )

    def search(
        self,
        text: str,
        k: int = 10,
        beam: int | None = None,
        min_score: float | None = None,
        *,
        exact: bool = False,
        filter: Filter | None = None,
        threshold: bool | float | None = None,
    ) -> Hits:
        """The best k labels for a text, best first: Hit(label, key, name, score, probability). Needs words.

        min_score: leave out hits that score less. exact, filter and threshold: as in topk. The probability is None
        where the model is not calibrated. A text none of whose words the model knows gives an empty answer.
        """
        fitted = self._fitted_text()
        if exact or threshold is not None or not self._finds_texts:
            texts = [checked_text(text)]
            return self.search_many(texts, k, beam, 1, min_score, exact=exact, filter=filter, threshold=threshold)[0]
        k, beam = min(positive(k, "k"), self._parts.shape.labels), self._beam(beam)
        native = None if filter is None else self._native_filter(filter)
        found = self._searcher.search(
            fitted.given(checked_text(text)), fitted.vectorizer, self._captions, k, beam, native
        )
        return hits_above(found[3], min_score, found[1], found[2])

    def search_json(
        self,
        text: str,
        k: int = 10,
        beam: int | None = None,
        min_score: float | None = None,
        filter: Filter | None = None,
    ) -> JsonAnswer:
        """The hits of search as JSON, in bytes: what a server sends on, without a Python object for each hit."""
        fitted = self._fitted_text()
        k, beam = min(positive(k, "k"), self._parts.shape.labels), self._beam(beam)
        least = -np.inf if min_score is None else min_score
        if not self._finds_texts:
            begun, X = time.perf_counter_ns(), fitted.transform([checked_text(text)], threads=1)
            row = json_of_rows(self.found(X, k, beam, filter=filter), fitted.known(X), self._captions, least)
            return JsonAnswer(row[1:-1], time.perf_counter_ns() - begun)
        native = None if filter is None else self._native_filter(filter)
        _, fields, nanoseconds = self._searcher.search_json(
            fitted.given(checked_text(text)), fitted.vectorizer, self._captions, k, beam, native, least
        )
        return JsonAnswer(fields, nanoseconds)

    def native_parts(self) -> tuple[Any, ...]:
        """What native code needs to search texts by itself: the server's quick way, without Python in between."""
        if not self._finds_texts:  # no native code can search by itself what lies elsewhere or is encoded in Python
            return None, self._fitted_text().vectorizer, self._captions, None
        return self._searcher.native_parts(self._fitted_text().vectorizer, self._captions)

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        beam: int | None = None,
        threads: int = 1,
        min_score: float | None = None,
        *,
        exact: bool = False,
        filter: Filter | None = None,
        threshold: bool | float | None = None,
    ) -> Answers:
        """The same for many texts at once, with the same answers; `.to_frame()` makes a data frame of them."""
        fitted, texts = self._fitted_text(), as_texts(texts)
        X = fitted.transform(texts, threads=positive(threads, "threads"))
        k = min(positive(k, "k"), self._parts.shape.labels)
        labels, scores, found = self.found(X, k, beam, threads, exact=exact, filter=filter, threshold=threshold)
        known = fitted.known(X).tolist()
        return Answers(many_hits(labels, scores, found, known, self._captions, min_score), texts)

    def probability(self, scores: Any) -> Scores:
        """How probable it is that labels with these scores apply: for arrays that topk gave, one row per query.

        The model must be calibrated (see `calibrate`). A score means more at the first rank than at the fifth, so
        the order of columns matters. Probabilities fall along a row as scores do.
        """
        return self._thresholds.probability(scores)

    @property
    def is_calibrated(self) -> bool:
        """Whether the model knows probabilities."""
        return self._thresholds.curves is not None

    @property
    def threshold(self) -> Cut | None:
        """The cut that threshold=True uses, if one was stored."""
        return self._thresholds.cut

    def filter(self, allow: Any = None, deny: Any = None, *, missing: str = "error") -> Filter:
        """Which labels may be found: those allowed (default: all) and not denied. For topk, predict and search.

        allow and deny are label keys (strings), label numbers, or a truth value for each label. missing="ignore" leaves
        out keys that no label has and lists them in the filter's `missing`. Build a filter once and use it often.
        """
        find, labels = self._strings.find_many, self._parts.shape.labels
        with reading(self._parts.sections):
            return make_filter(self._forests.cascade, self._leaves, labels, find, allow, deny, missing)

    def _native_filter(self, filter: Filter) -> Any:
        """The native side of a filter of this model, under whichever engine."""
        if not isinstance(filter, Filter):
            raise SettingsError(
                f"filter is {filter!r:.80}; expected a Filter. Make one with model.filter(allow=…, deny=…)."
            )
        return filter.native_for(self._leaves, self._forests.cascade)

    @cached_property
    def _leaves(self) -> tuple[Any, ...]:
        """The arrays that a model and its filters know each other by."""
        return self._parts.identity()
