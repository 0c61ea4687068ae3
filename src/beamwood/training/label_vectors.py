"""label_vectors.py — (X, Y) in, one sparse unit vector a label out: positive instance feature aggregation (PIFA)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, SettingsError

KINDS = ("pifa", "features", "pifa+features")


class Rows(NamedTuple):
    """A sparse matrix as the three arrays that cross into native code."""

    offset: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    features: int


def label_vectors(
    X: Any,
    Y: Any,
    *,
    kind: str = "pifa",
    label_features: Any = None,
    threads: int = 1,
) -> Any:
    """Return a CSR matrix, labels x features, float32: rows of length one, or all zero if nothing is known.

    X:              rows x features, sparse. Not read when kind is "features".
    Y:              rows x labels, sparse, relevances >= 0 (0 means not relevant). Each row is scaled to
                    length one first, so that a row with many labels says less about each of them.
    kind:           "pifa": the sum of a label's rows of X; "features": `label_features` as they are;
                    "pifa+features": both side by side, each scaled to length one before.
    label_features: labels x anything, sparse; wanted for the last two kinds.
    """
    if kind not in KINDS:
        raise SettingsError(f"label vectors of kind {kind!r} are not known; choose one of {', '.join(KINDS)}")
    if kind != "pifa" and label_features is None:
        raise SettingsError(f'kind="{kind}" needs label_features, a sparse matrix with one row a label')
    if kind == "pifa" and label_features is not None:
        raise SettingsError('kind="pifa" reads no label_features, but they are given; use "pifa+features"')
    if kind == "pifa":
        return _pifa(X, Y, threads)
    given = _unit(_matrix(label_features, "label_features"))
    if given.shape[0] != Y.shape[1]:
        raise DataError(f"label_features has {given.shape[0]} rows for {Y.shape[1]} labels; give one row a label")
    if kind == "features":
        return given
    return _unit(sp.csr_matrix(sp.hstack([_pifa(X, Y, threads), given], format="csr")))


def native_rows(matrix: Any, what: str) -> Rows:
    """Check a sparse matrix of real numbers and return its arrays; copies only what has another type."""
    rows = _matrix(matrix, what)
    return Rows(
        np.ascontiguousarray(rows.indptr, dtype=np.int64),
        np.ascontiguousarray(rows.indices, dtype=np.int32),
        np.ascontiguousarray(rows.data, dtype=np.float32),
        int(rows.shape[1]),
    )


def _pifa(X: Any, Y: Any, threads: int) -> Any:
    rows = native_rows(X, "X")
    positives = _positives(_matrix(Y, "Y"))
    labels, found, wanted = positives.shape[1], X.shape[0], positives.shape[0]
    if found != wanted:
        raise DataError(f"X has {found} rows and Y has {wanted}; row i of Y holds the labels of row i of X")
    offset = np.zeros(labels + 1, dtype=np.int64)
    arrays: list[npt.NDArray[Any]] = []

    def allocate(entries: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        arrays.extend((np.empty(entries, dtype=np.int32), np.empty(entries, dtype=np.float32)))
        return arrays[0], arrays[1]

    _core.pifa(
        *rows,
        positives.indptr.astype(np.int64),
        positives.indices.astype(np.int32, copy=False),
        positives.data,
        threads,
        offset,
        allocate,
    )
    return sp.csr_matrix((arrays[1], arrays[0], offset), shape=(labels, rows.features), copy=False)


def _positives(Y: Any) -> Any:
    """Y as float32 CSC without zeros, each row scaled to length one."""
    if Y.nnz and float(Y.data.min()) < 0:
        raise DataError(f"Y holds the value {Y.data.min()}; relevances must be 0 (not relevant) or positive")
    squares = np.asarray(Y.multiply(Y).sum(axis=1), dtype=np.float64).ravel()
    scale = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    values = (Y.data * np.repeat(scale, np.diff(Y.indptr))).astype(np.float32)
    scaled = sp.csr_matrix((values, Y.indices, Y.indptr), shape=Y.shape, copy=False).tocsc()
    scaled.eliminate_zeros()
    return scaled


def _matrix(given: Any, what: str) -> Any:
    """CSR with rising column ids, no duplicates, finite real values."""
    if not sp.issparse(given):
        raise DataError(f"{what} is a {type(given).__name__}; give a scipy sparse matrix (csr_matrix)")
    matrix: Any = given
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{what} holds values of type {matrix.dtype}; give real numbers (float32 is best)")
    if matrix.shape[1] >= 2**31:
        raise DataError(f"{what} has {matrix.shape[1]} columns; fewer than 2**31 can be numbered")
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.dtype.kind == "f" and not np.isfinite(rows.data).all():
        raise DataError(f"{what} holds NaN or infinite values; replace or remove them")
    return rows


def _unit(rows: Any) -> Any:
    """The same rows as float32, each of length one unless it is all zero."""
    values = rows.data.astype(np.float64)
    line = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    length = np.sqrt(np.bincount(line, weights=values * values, minlength=rows.shape[0]))
    values /= np.where(length > 0, length, 1.0)[line]
    unit = sp.csr_matrix((values.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape, copy=False)
    unit.has_canonical_format = True
    return unit
