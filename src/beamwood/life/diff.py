"""diff.py — two models and, where there are some, queries in; what changed from the one to the other out.

Labels are the same when their keys are. Answers are compared by keys, so models of different label numbers, trees or
text features can be compared. The law: the same models and queries give the same difference, in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import as_texts, positive, workers
from beamwood.inputs.label_table import as_label_keys
from beamwood.inputs.matrices import as_csr, is_blocks, is_sparse
from beamwood.life.diff_page import page
from beamwood.life.diff_text import in_words
from beamwood.metrics import evaluate
from beamwood.model import Model, load

RANKS = (1, 5, 10)
_PER_CALL = 4096  # queries asked at a time
Ints = npt.NDArray[np.int64]
Answer = tuple[tuple[str, str, float], ...]  # key, name and score of each hit


@dataclass(frozen=True)
class ChangedQuery:
    """A query that the two models answer differently. change: from 0, the same labels in the same order, to 1."""

    query: str
    change: float
    old: Answer
    new: Answer


@dataclass(frozen=True)
class AnswerChanges:
    """How answers to queries changed.

    changed:  at each rank k the share of queries whose first k labels are not the same set.
    overlap:  at each rank k the mean share of the first k labels that both have.
    drift:    of labels that both have among the first ten: mean new score minus old, and mean and largest size of it.
    empty:    the share of queries without an answer, old and new.
    most:     the queries that changed most, those first.
    quality:  precision, recall and nDCG of both at the ranks, where the truth was given; else empty.
    better, worse: queries with more, and with fewer, right labels among the first ten; where the truth was given.
    """

    queries: int
    changed: dict[int, float]
    overlap: dict[int, float]
    drift: dict[str, float]
    empty: tuple[float, float]
    most: tuple[ChangedQuery, ...]
    quality: dict[str, tuple[float, float]] = field(default_factory=dict)
    better: int = 0
    worse: int = 0


@dataclass(frozen=True)
class Difference:
    """What changed from an old model to a new one. `str()` says it in words, `to_dict()` and `html()` for others.

    facts:    (name, old, new): versions, labels, features, trees, weights, bytes.
    settings: (name, old, new) of those that differ.
    added, removed: label keys. renamed: (key, old name, new name).
    answers:  None without queries.
    """

    facts: tuple[tuple[str, Any, Any], ...]
    settings: tuple[tuple[str, Any, Any], ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str, str], ...]
    answers: AnswerChanges | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        return asdict(self)

    def html(self) -> str:
        """A page of its own that shows the same, without scripts; names are shown as text whatever they hold."""
        return page(self)

    def __str__(self) -> str:
        return in_words(self)


def diff(
    old: Model | str | os.PathLike[str],
    new: Model | str | os.PathLike[str],
    queries: Any = None,
    labels: Any = None,
    *,
    beam: int | None = None,
    threads: int | None = None,
    most: int = 10,
) -> Difference:
    """What changed from an old model to a new one: labels, settings, sizes and, on queries, answers.

    old, new: models, or their files.
    queries:  texts, or a matrix of rows for models of the same features.
    labels:   for each query a list of its true label keys: the quality of both models is measured.
    beam:     nodes kept per layer; None: as many as each model stores.
    most:     so many of the queries that changed most are shown, with both answers.

    >>> import beamwood as bw
    >>> old, new = (bw.index_text(texts, keys=texts) for texts in (["socks", "boots"], ["socks", "caps"]))
    >>> changed = diff(old, new)
    >>> changed.added, changed.removed
    (('caps',), ('boots',))
    """
    before, after = _model(old, "old"), _model(new, "new")
    most, beam = positive(most, "most"), None if beam is None else positive(beam, "beam")
    match = _Matched(before, after)
    if queries is None:
        if labels is not None:
            raise SettingsError("labels are given without queries; expected both, or neither. Give the queries too.")
        return _difference(match, None)
    asked = _Queries.of(queries, before, after)
    truth = None if labels is None else as_label_keys(labels)
    if truth is not None and len(truth) != asked.count:
        raise DataError(
            f"there are {asked.count:,} queries and {len(truth):,} lists of labels; expected one per query."
        )
    return _difference(match, _answers(match, asked, truth, beam, workers(threads), most))


def _model(given: Any, name: str) -> Model:
    if isinstance(given, Model):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise SettingsError(f"{name} is a {type(given).__name__}; expected a Model, or the path of its file.")
    return load(Path(given))


class _Matched:
    """Two models whose labels know each other by their keys."""

    def __init__(self, old: Model, new: Model) -> None:
        self.old, self.new = old, new
        self.keys = [old.key(label) for label in range(old.n_labels)]
        keys_of_new = [new.key(label) for label in range(new.n_labels)]
        number = {key: label for label, key in enumerate(self.keys)}
        # Labels that only the new model has are numbered behind those of the old one.
        self.number_of_new: Ints = np.array(
            [number.get(key, old.n_labels + label) for label, key in enumerate(keys_of_new)], np.int64
        )
        self.added = tuple(keys_of_new[label] for label in np.flatnonzero(self.number_of_new >= old.n_labels))
        kept = np.zeros(old.n_labels, bool)
        kept[self.number_of_new[self.number_of_new < old.n_labels]] = True
        self.removed = tuple(self.keys[label] for label in np.flatnonzero(~kept))

    def renamed(self) -> tuple[tuple[str, str, str], ...]:
        """Labels that both have, with another name."""
        found = []
        for label, number in enumerate(self.number_of_new.tolist()):
            if number < self.old.n_labels:
                was, now = self.old.name(number), self.new.name(label)
                if was != now:
                    found.append((self.keys[number], was, now))
        return tuple(found)


def _difference(match: _Matched, answers: AnswerChanges | None) -> Difference:
    old, new = match.old, match.new
    was, now = old.info(), new.info()
    names = ("labels", "features", "trees", "depth", "nonzeros", "bytes", "kind_of_weights", "activation", "unit_rows")
    facts = [("version", old.version, new.version), *((name, was[name], now[name]) for name in names)]
    told = [each.settings for each in (old, new)]
    texts = [{} if each.text is None else {"text": each.text.settings()} for each in (old, new)]
    settings = _changed_settings({**told[0], **texts[0]}, {**told[1], **texts[1]})
    return Difference(tuple(facts), settings, match.added, match.removed, match.renamed(), answers)


def _changed_settings(old: dict[str, Any], new: dict[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    names = [*old, *(name for name in new if name not in old)]
    return tuple((name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))


@dataclass(frozen=True)
class _Queries:
    """Texts, or rows."""

    texts: list[str] | None
    X: Any
    count: int

    @classmethod
    def of(cls, queries: Any, old: Model, new: Model) -> _Queries:
        """Checked against what both models can be asked."""
        if is_blocks(queries) or is_sparse(queries) or (isinstance(queries, np.ndarray) and queries.ndim == 2):
            if old.n_features != new.n_features or old.blocks != new.blocks:
                raise DataError(
                    f"the models have {old.n_features:,} and {new.n_features:,} features; expected the same, to ask "
                    "both the same rows. Give texts, which each of them reads its own way."
                )
            X = as_csr(queries, old.columns, "queries")
            return cls(None, X, int(X.shape[0]))
        texts = as_texts(queries)
        for name, model in (("old", old), ("new", new)):
            if model.text is None:
                raise DataError(
                    f"the {name} model was trained on matrices and reads no texts. Give rows: diff(old, new, X) (--x)."
                )
        return cls(list(texts), None, len(texts))

    def called(self, row: int) -> str:
        return f"row {row}" if self.texts is None else self.texts[row]

    def asked(self, model: Model, rows: slice, beam: int | None, threads: int) -> tuple[Ints, npt.NDArray[np.float32]]:
        """The first ten labels, -1 where there are fewer."""
        k = max(RANKS)
        if self.texts is None:
            return model.topk(self.X[rows], k, beam, threads)
        assert model.text is not None
        X = model.text.transform(self.texts[rows], threads=threads)
        labels, scores = model.topk(X, k, beam, threads)
        labels[np.diff(X.indptr) == 0] = -1
        return labels, scores


def _answers(
    match: _Matched, asked: _Queries, truth: Sequence[Sequence[str]] | None, beam: int | None, threads: int, most: int
) -> AnswerChanges:
    k, parts = max(RANKS), range(0, asked.count, _PER_CALL)
    both: list[tuple[Any, Any]] = []
    for model in (match.old, match.new):
        blocks = [asked.asked(model, slice(first, first + _PER_CALL), beam, threads) for first in parts]
        labels = np.concatenate([b[0] for b in blocks]) if blocks else np.zeros((0, k), np.int64)
        scores = np.concatenate([b[1] for b in blocks]) if blocks else np.zeros((0, k), np.float32)
        both.append((labels, scores))
    (old, old_scores), (raw, new_scores) = both
    new = np.where(raw < 0, -1, match.number_of_new[np.maximum(raw, 0)])
    change = _change(old, new)
    worst = np.lexsort((np.arange(len(change)), -change))[:most]
    worst = worst[change[worst] > 0]
    shown = tuple(
        ChangedQuery(
            asked.called(row), float(change[row]), _told(match.old, old[row], old_scores[row]),
            _told(match.new, raw[row], new_scores[row]),
        )
        for row in worst.tolist()
    )  # fmt: skip
    changed = {k: float(np.mean(~_same_set(old[:, :k], new[:, :k]))) if len(old) else 0.0 for k in RANKS}
    overlap = {k: float(np.mean(_overlap(old[:, :k], new[:, :k]))) if len(old) else 1.0 for k in RANKS}
    empty = [float(np.mean(labels[:, 0] < 0)) if len(labels) else 0.0 for labels in (old, new)]
    quality = {} if truth is None else _quality(match, old, old_scores, new, new_scores, truth)
    drift = _drift(old, old_scores, new, new_scores)
    return AnswerChanges(asked.count, changed, overlap, drift, (empty[0], empty[1]), shown, **quality)


def _told(model: Model, labels: Any, scores: Any) -> Answer:
    pairs = zip(labels.tolist(), scores.tolist(), strict=True)
    return tuple((model.key(label), model.name(label), score) for label, score in pairs if label >= 0)


def _common(old: Ints, new: Ints) -> npt.NDArray[np.bool_]:
    """For each row and place of the old answer, whether the new one has the label too."""
    found: npt.NDArray[np.bool_] = ((old[:, :, None] == new[:, None, :]) & (old[:, :, None] >= 0)).any(axis=2)
    return found


def _overlap(old: Ints, new: Ints) -> Any:
    longest = np.maximum((old >= 0).sum(axis=1), (new >= 0).sum(axis=1))
    return np.where(longest > 0, _common(old, new).sum(axis=1) / np.maximum(longest, 1), 1.0)


def _same_set(old: Ints, new: Ints) -> Any:
    return _overlap(old, new) == 1.0


def _change(old: Ints, new: Ints) -> npt.NDArray[np.float64]:
    """How much each answer changed: the mean over ranks k of 1 - overlap at k, so that the first ranks count most."""
    ranks = range(1, old.shape[1] + 1)
    changes: npt.NDArray[np.float64] = np.mean([1.0 - _overlap(old[:, :k], new[:, :k]) for k in ranks], axis=0)
    return changes


def _drift(old: Ints, old_scores: Any, new: Ints, new_scores: Any) -> dict[str, float]:
    row, place, other = np.nonzero((old[:, :, None] == new[:, None, :]) & (old[:, :, None] >= 0))
    moved = new_scores[row, other].astype(np.float64) - old_scores[row, place]
    moved = moved[np.isfinite(moved)]
    if not len(moved):
        return {"mean": 0.0, "mean_size": 0.0, "largest": 0.0}
    size = np.abs(moved)
    return {"mean": float(moved.mean()), "mean_size": float(size.mean()), "largest": float(size.max())}


def _quality(
    match: _Matched, old: Ints, old_scores: Any, new: Ints, new_scores: Any, truth: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Measures of both, and how many queries have more or fewer right labels; unknown labels count as missed."""
    number = {key: label for label, key in enumerate(match.keys)}
    for label, key in zip(match.number_of_new.tolist(), map(match.new.key, range(match.new.n_labels)), strict=True):
        number.setdefault(key, label)
    columns = match.old.n_labels + match.new.n_labels
    ids = [sorted({number.setdefault(key, columns + len(number)) for key in keys}) for keys in truth]
    width = max(columns, 1 + max((max(row) for row in ids if row), default=0))
    starts = np.cumsum([0, *map(len, ids)])
    flat = np.array([label for row in ids for label in row], np.int64)
    Y = sp.csr_matrix((np.ones(len(flat), np.float32), flat, starts), shape=(len(ids), width))
    measured = [
        evaluate((labels, scores), Y, at=RANKS).as_dict() for labels, scores in ((old, old_scores), (new, new_scores))
    ]
    names = [name for name in measured[0] if not name.startswith(("coverage", "psp"))]
    right = [
        np.array([len(set(row.tolist()) & set(t)) for row, t in zip(labels, ids, strict=True)]) for labels in (old, new)
    ]
    return {
        "quality": {name: (measured[0][name], measured[1][name]) for name in names},
        "better": int((right[1] > right[0]).sum()),
        "worse": int((right[1] < right[0]).sum()),
    }
