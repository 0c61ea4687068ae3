"""Whatever holds sparse numbers in, canonical float32 CSR arrays out, without touching the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError

Array = npt.NDArray[Any]


def is_sparse(matrix: object) -> bool:
    """Whether it is a scipy sparse matrix or array of any kind."""
    return bool(sp.issparse(matrix))


def as_float32(values: Array, what: str) -> npt.NDArray[np.float32]:
    """Real numbers as float32; refuses complex and object arrays and values that float32 cannot hold."""
    if values.dtype == np.float32:
        return values
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{what} has dtype {values.dtype}. Real numbers are wanted: convert it, for example with "
            ".astype('float32')."
        )
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    if values.dtype.kind == "f" and values.dtype.itemsize > 4:
        lost = np.isfinite(values) & ~np.isfinite(narrow)
        if lost.any():
            raise DataError(
                f"{what} holds {values[lost][0]!r}, which float32 cannot hold. Scale the values down first."
            )
    return narrow


def as_csr(matrix: Any, columns: int | None, what: str) -> Any:
    """A two-dimensional canonical float32 CSR array: ids rising, no doubles. The caller's arrays are never changed."""
    if not sp.issparse(matrix):
        dense = np.asarray(matrix)
        if dense.dtype.kind not in "buif" or dense.ndim not in (1, 2):
            raise DataError(
                f"{what} is a {type(matrix).__name__} of dtype {dense.dtype} with {dense.ndim} dimensions. "
                f"A scipy sparse matrix or a real array with one row a query is wanted."
            )
        matrix = sp.csr_array(np.atleast_2d(as_float32(dense, what)))
    if matrix.ndim == 1:
        matrix = matrix.reshape(1, -1)
    if columns is not None and matrix.shape[1] != columns:
        raise DataError(
            f"{what} has {matrix.shape[1]:,} columns, but the model has {columns:,} features. "
            f"Make it with the vectorizer that the model was trained with."
        )
    if matrix.dtype.kind not in "buif":
        raise DataError(
            f"{what} has dtype {matrix.dtype}. Real numbers are wanted: convert it, for example with "
            ".astype('float32')."
        )
    csr = sp.csr_array(matrix)  # shares the arrays when it is CSR already
    check_structure(csr, what)
    csr = sp.csr_array((as_float32(csr.data, what), csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    check_finite(csr, what)
    return csr


def check_structure(csr: Any, what: str) -> None:
    """Offsets rise and end inside the arrays, ids lie inside the shape: hand-made matrices may break either."""
    offsets, ids = csr.indptr, csr.indices
    if len(offsets) != csr.shape[0] + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] > len(ids):
        raise DataError(
            f"{what} is not a valid CSR matrix: its indptr does not rise from 0 to the number of values. Build it anew."
        )
    used = ids[: offsets[-1]]
    if len(used) and (used.min() < 0 or used.max() >= csr.shape[1]):
        bad = used[(used < 0) | (used >= csr.shape[1])][0]
        raise DataError(
            f"{what} has column id {bad}, but only {csr.shape[1]:,} columns (0 to {csr.shape[1] - 1:,}). Build it anew."
        )


def check_finite(csr: Any, what: str) -> None:
    """No NaN, no infinity; names the first place."""
    bad = np.flatnonzero(~np.isfinite(csr.data))
    if len(bad):
        row = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"{what} holds {csr.data[bad[0]]} in row {row}, column {csr.indices[bad[0]]}. "
            f"Finite numbers are wanted: look for a division by zero or an overflow where it was made."
        )
