"""label_vectors.py — (X, Y) in, one sparse unit vector per label out: positive instance feature aggregation (PIFA)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.label_matrix import LabelsLike, label_matrix
from beamwood.inputs.matrices import MatrixLike, as_csr
from beamwood.training.settings import VECTORS


class CsrArrays(NamedTuple):
    """A sparse matrix as the three arrays that cross into native code."""

    offset: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    features: int


def label_vectors(
    X: MatrixLike,
    Y: LabelsLike,
    *,
    kind: str = "pifa",
    label_features: MatrixLike | None = None,
    threads: int = 1,
) -> Any:
    """Return a CSR matrix, labels x features, float32: rows of length one, or all zero if nothing is known.

    X:              rows x features, sparse. Not read when kind is "features".
    Y:              rows x labels, sparse, relevances >= 0 (0 means not relevant). Each row is scaled to
                    length one first, so that a row with many labels says less about each of them.
    kind:           "pifa": the sum of a label's rows of X; "features": `label_features` as they are;
                    "pifa+features": both side by side, each scaled to length one before.
    label_features: labels x anything, sparse; needed by the last two kinds.
    """
    if kind not in VECTORS:
        raise SettingsError(f"label vectors of kind {kind!r} are not known; expected one of {', '.join(VECTORS)}.")
    if kind != "pifa" and label_features is None:
        raise SettingsError(f'kind="{kind}" has no label_features; expected a matrix with one row per label.')
    if kind == "pifa" and label_features is not None:
        raise SettingsError('kind="pifa" has label_features; expected none. Use kind="pifa+features".')
    if kind == "pifa":
        return _pifa(X, Y, threads)
    labels = label_matrix(Y, "Y").shape[1]
    given = _unit(as_csr(label_features, None, "label_features"))
    if given.shape[0] != labels:
        raise DataError(f"label_features has {given.shape[0]} rows for {labels:,} labels; expected one row per label.")
    if kind == "features":
        return given
    return _unit(sp.csr_matrix(sp.hstack([_pifa(X, Y, threads), given], format="csr")))


def native_rows(matrix: Any, what: str) -> CsrArrays:
    """Check a matrix of real numbers and return its arrays; copies only what has another type."""
    rows = as_csr(matrix, None, what)
    return CsrArrays(
        np.ascontiguousarray(rows.indptr, dtype=np.int64),
        np.ascontiguousarray(rows.indices, dtype=np.int32),
        np.ascontiguousarray(rows.data, dtype=np.float32),
        int(rows.shape[1]),
    )


def _pifa(X: Any, Y: Any, threads: int) -> Any:
    rows = native_rows(X, "X")
    positives = _positives(label_matrix(Y, "Y"))
    labels, found, expected = positives.shape[1], len(rows.offset) - 1, positives.shape[0]
    if found != expected:
        raise DataError(f"X has {found:,} rows and Y has {expected:,}; expected one row of Y per row of X.")
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
    if not np.isfinite(arrays[1]).all():
        raise DataError(
            f"X has values up to {np.abs(rows.value).max():.3g}; expected rows that can be added up in float32. "
            "Scale X down, or set unit_rows=True."
        )
    return sp.csr_matrix((arrays[1], arrays[0], offset), shape=(labels, rows.features), copy=False)


def _positives(Y: Any) -> Any:
    """Relevances above 0 as float32 CSC, each row scaled to length one."""
    squares = np.asarray(Y.multiply(Y).sum(axis=1), dtype=np.float64).ravel()
    scale = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    values = (Y.data * np.repeat(scale, np.diff(Y.indptr))).astype(np.float32)
    scaled = sp.csr_matrix((values, Y.indices, Y.indptr), shape=Y.shape, copy=False).tocsc()
    scaled.eliminate_zeros()
    return scaled


def _unit(rows: Any) -> Any:
    """The same rows as float32, each of length one unless it is all zero."""
    values = rows.data.astype(np.float64)
    line = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    length = np.sqrt(np.bincount(line, weights=values * values, minlength=rows.shape[0]))
    values /= np.where(length > 0, length, 1.0)[line]
    unit = sp.csr_matrix((values.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape, copy=False)
    unit.has_canonical_format = True
    return unit
