"""problem.py — X and Y as people have them in, a checked `Problem` out: canonical CSR of finite numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError, warn
from beamwood.inputs.label_matrix import LabelsLike, label_matrix
from beamwood.inputs.matrices import MatrixLike, as_csr, as_float32, as_numbers, check_dimensions, row_lengths

_UNIT = 1e-3  # a row whose length is this near to one has length one
_DENSE_RUN = 16  # features side by side: from so many on an engine adds them up without a look at single rows


@dataclass(frozen=True, eq=False)
class Problem:
    """What a training learns from.

    X: rows x features, CSR float32, feature ids rising, no duplicates, finite.
    Y: rows x labels, CSR float32: a value says how much a label matters for a row (1 is usual), above 0.
    row_weights: what each row counts, or None: all count 1.
    negatives: rows x labels, CSR: label ids that a row must learn to tell from its own, or None.
    label_features: labels x features of the labels' own, or None.
    words: how many features are words, the first ones; None: all.
    """

    X: Any
    Y: Any
    row_weights: npt.NDArray[np.float32] | None = None
    negatives: Any = None
    label_features: Any = None
    words: int | None = None

    @cached_property
    def word_rows(self) -> Any:
        """X with words only, in as many columns."""
        return words_only(self.X, self.words)

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    @property
    def labels(self) -> int:
        return int(self.Y.shape[1])

    @cached_property
    def rows_of_label(self) -> npt.NDArray[np.int64]:
        """How many rows have each label."""
        return np.bincount(self.Y.indices, minlength=self.labels)

    @cached_property
    def dense_from(self) -> int:
        """The first of the features that most rows have and that stand side by side at the end.

        As many as there are features: there are no such features.
        """
        if 2 * np.count_nonzero(self.X.indices == self.features - 1) <= self.rows:
            return self.features
        most = min(self.features, 2 * self.X.nnz // self.rows + 1)  # more could not be held by half of the rows
        last = self.X.indices[self.X.indices >= self.features - most] - (self.features - most)
        scarce = np.flatnonzero(2 * np.bincount(last, minlength=most) <= self.rows)
        first = self.features - most + (int(scarce[-1]) + 1 if scarce.size else 0)
        return first if self.features - first >= _DENSE_RUN else self.features

    @property
    def rows_per_label(self) -> float:
        """The mean over the labels that have rows."""
        return float(self.Y.nnz / max(1, self.labels - self.labels_without_rows))

    def with_unit_rows(self) -> Problem:
        """The problem with every row of X divided by its length; itself if all have length one (or zero) already."""
        length, of_value = row_lengths(self.X)
        if (np.abs(length - 1) <= _UNIT).all():
            return self
        value = (self.X.data / of_value).astype(np.float32)
        X = sp.csr_matrix((value, self.X.indices, self.X.indptr), shape=self.X.shape)
        return replace(self, X=X)

    @property
    def labels_without_rows(self) -> int:
        return int((self.rows_of_label == 0).sum())


def checked_problem(
    X: MatrixLike,
    Y: LabelsLike,
    *,
    row_weights: Any = None,
    negatives_matrix: LabelsLike | None = None,
    label_features: MatrixLike | None = None,
    words: int | None = None,
) -> Problem:
    """Checks all that a training needs of its data; leaves out rows that teach nothing and says how many."""
    features, relevance = _features(X, "X"), label_matrix(Y, "Y")
    found, (rows, labels) = features.shape[0], relevance.shape
    _need(found == rows, f"X has {found:,} rows and Y has {rows:,}; expected one row of Y per row of X")
    _need(rows > 0, "X has no rows; expected at least one row with a label")
    _need(features.shape[1] > 0, "X has no columns; expected at least one feature")
    _need(labels > 0, "Y has no columns; expected at least one label")
    _need(relevance.nnz > 0, "Y is empty, no row has a label; expected something to learn. Check how Y was made")
    negatives = None
    if negatives_matrix is not None:
        negatives = label_matrix(negatives_matrix, "negatives_matrix", labels=labels)
        _need(
            negatives.shape == (rows, labels),
            f"negatives_matrix has the shape {negatives.shape} and Y {(rows, labels)}; expected the same shape",
        )
        negatives = sp.csr_matrix(negatives)
    described = None
    if label_features is not None:
        described = _features(label_features, "label_features")
        found = described.shape[0]
        _need(found == labels, f"label_features has {found:,} rows for {labels:,} labels; expected one row per label")
    weights = _checked_row_weights(row_weights, rows)
    return _only_teaching_rows(Problem(features, sp.csr_matrix(relevance), weights, negatives, described, words))


def _features(matrix: Any, what: str) -> Any:
    check_dimensions(matrix, what, "Give one row per example.")
    return sp.csr_matrix(as_csr(matrix, None, what, zeros=False))


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DataError(otherwise + ".")


def _checked_row_weights(row_weights: Any, rows: int) -> npt.NDArray[np.float32] | None:
    if row_weights is None:
        return None
    weights = as_float32(as_numbers(row_weights, rows, "row_weights", "row of X"), "row_weights")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise DataError(
            f"row_weights has {weights[bad[0]]} for row {bad[0]}; expected finite numbers of 0 or more. "
            "Give 0 to leave a row out."
        )
    return weights


def _only_teaching_rows(problem: Problem) -> Problem:
    labelled = np.diff(problem.Y.indptr) > 0
    weighted = np.ones_like(labelled) if problem.row_weights is None else problem.row_weights > 0
    keep = labelled & weighted
    if not labelled.all():
        warn(f"{int((~labelled).sum())} rows have no label and are left out of training")
    if keep.all():
        return problem
    _need(bool(keep.any()), "row_weights has 0 for every row with a label; expected some weights above 0")
    at = np.flatnonzero(keep)
    return Problem(
        problem.X[at],
        problem.Y[at],
        None if problem.row_weights is None else problem.row_weights[at],
        None if problem.negatives is None else problem.negatives[at],
        problem.label_features,
        problem.words,
    )


def words_only(rows: Any, words: int | None) -> Any:
    """CSR rows without the features from a number on, in as many columns; None: as they are."""
    if words is None:
        return rows
    kept = rows.indices < words
    start = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return sp.csr_matrix((rows.data[kept], rows.indices[kept], start), shape=rows.shape)
