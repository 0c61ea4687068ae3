"""problem.py — X and Y as people have them in, a checked `Problem` out: canonical CSR of finite numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError

_UNIT = 1e-3  # a row whose length is this near to one has length one


@dataclass(frozen=True, eq=False)
class Problem:
    """What a training learns from.

    X: rows x features, CSR float32, feature ids rising, no duplicates, finite.
    Y: rows x labels, CSR float32: a value says how much a label matters for a row (1 is usual), above 0.
    row_weights: what each row counts, or None: all count 1.
    negatives: rows x labels, CSR: label ids that a row must learn to tell from its own, or None.
    label_features: labels x features of the labels' own, or None.
    """

    X: Any
    Y: Any
    row_weights: npt.NDArray[np.float32] | None = None
    negatives: Any = None
    label_features: Any = None

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

    @property
    def rows_a_label(self) -> float:
        """The mean over the labels that have rows."""
        return float(self.Y.nnz / max(1, self.labels - self.labels_without_rows))

    def with_unit_rows(self) -> Problem:
        """The problem with every row of X divided by its length; itself if all have length one (or zero) already."""
        entries = np.diff(self.X.indptr)
        filled = entries > 0
        squares = np.square(self.X.data, dtype=np.float64)
        length = np.sqrt(np.add.reduceat(squares, self.X.indptr[:-1][filled])) if filled.any() else np.ones(0)
        if (np.abs(length - 1) <= _UNIT).all():
            return self
        value = (self.X.data / np.repeat(length, entries[filled])).astype(np.float32)
        X = sp.csr_matrix((value, self.X.indices, self.X.indptr), shape=self.X.shape)
        return replace(self, X=X)

    @property
    def labels_without_rows(self) -> int:
        return int((self.rows_of_label == 0).sum())


def checked_problem(
    X: Any, Y: Any, *, row_weights: Any = None, negatives_matrix: Any = None, label_features: Any = None
) -> Problem:
    """Checks all that a training needs of its data; leaves out rows that teach nothing and says how many."""
    X = checked_matrix(X, "X")
    Y = checked_matrix(Y, "Y")
    _need(
        X.shape[0] == Y.shape[0],
        f"X has {X.shape[0]} rows and Y has {Y.shape[0]}: give one row of Y a row of X",
    )
    _need(X.shape[0] > 0, "X has no rows: give at least one row with a label")
    _need(X.shape[1] > 0, "X has no feature columns: give at least one feature")
    _need(Y.shape[1] > 0, "Y has no label columns: give at least one label")
    if Y.nnz and Y.data.min() < 0:
        row, label = _position(Y, int(np.argmin(Y.data)))
        raise DataError(
            f"Y[{row}, {label}] = {Y.data.min():g} is negative: values of Y say how much a label matters, "
            "so leave out labels that do not apply"
        )
    _need(Y.nnz > 0, "Y is empty, no row has a label: there is nothing to learn; check how Y was made")
    weights = _checked_row_weights(row_weights, X.shape[0])
    negatives = None
    if negatives_matrix is not None:
        negatives = checked_matrix(negatives_matrix, "negatives_matrix")
        _need(
            negatives.shape == Y.shape,
            f"negatives_matrix is {negatives.shape}, Y is {Y.shape}: give the same shape",
        )
    if label_features is not None:
        label_features = checked_matrix(label_features, "label_features")
        _need(
            label_features.shape[0] == Y.shape[1],
            f"label_features has {label_features.shape[0]} rows, Y {Y.shape[1]} labels: give one row a label",
        )
    return _only_teaching_rows(Problem(X, Y, weights, negatives, label_features))


def checked_matrix(matrix: Any, name: str) -> Any:
    """Any two-dimensional real matrix as canonical CSR float32; the caller's matrix is never changed."""
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
        _need(matrix.ndim == 2, f"{name} has {matrix.ndim} dimensions: give a matrix with one row an example")
    kind = np.dtype(matrix.dtype).kind
    _need(kind in "biuf", f"{name} has dtype {matrix.dtype}: give real numbers (bool, int or float)")
    given = matrix
    with np.errstate(over="ignore"):
        matrix = sp.csr_matrix(matrix, dtype=np.float32)
    if not np.isfinite(matrix.data).all():
        at = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row, column = _position(matrix, at)
        raise DataError(f"{name}[{row}, {column}] = {matrix.data[at]}: give finite numbers within float32's range")
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        matrix = matrix.copy() if matrix is given or np.shares_memory(matrix.data, _data_of(given)) else matrix
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    _need(
        matrix.nnz < 2**31 or matrix.shape[1] < 2**31,
        f"{name} has 2^31 columns or more: renumber its columns",
    )
    return matrix


def _data_of(given: Any) -> npt.NDArray[Any]:
    return np.asarray(given.data) if sp.issparse(given) and hasattr(given, "data") else np.empty(0)


def _position(matrix: Any, at: int) -> tuple[int, int]:
    return int(np.searchsorted(matrix.indptr, at, side="right")) - 1, int(matrix.indices[at])


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DataError(otherwise)


def _checked_row_weights(row_weights: Any, rows: int) -> npt.NDArray[np.float32] | None:
    if row_weights is None:
        return None
    weights = np.asarray(row_weights)
    _need(
        weights.shape == (rows,),
        f"row_weights has shape {weights.shape}: give {rows} numbers, one a row of X",
    )
    _need(weights.dtype.kind in "biuf", f"row_weights has dtype {weights.dtype}: give real numbers")
    weights = weights.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    _need(bad.size == 0, f"row_weights[{bad[:1]}] is negative or not finite: give numbers of 0 or more")
    return weights


def _only_teaching_rows(problem: Problem) -> Problem:
    labelled = np.diff(problem.Y.indptr) > 0
    weighted = np.ones_like(labelled) if problem.row_weights is None else problem.row_weights > 0
    keep = labelled & weighted
    if not labelled.all():
        warnings.warn(f"{int((~labelled).sum())} rows have no label and are left out of training", stacklevel=4)
    if keep.all():
        return problem
    _need(bool(keep.any()), "every row with a label has weight 0: give some rows a weight above 0")
    at = np.flatnonzero(keep)
    return Problem(
        problem.X[at],
        problem.Y[at],
        None if problem.row_weights is None else problem.row_weights[at],
        None if problem.negatives is None else problem.negatives[at],
        problem.label_features,
    )
