"""rows.py — whatever holds sparse numbers in, canonical float32 CSR arrays out, without touching the caller's."""

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
        try:
            dense = np.asarray(matrix)
        except ValueError:
            raise DataError(f"{what} has rows of different lengths. One number a column is wanted in each.") from None
        if dense.dtype.kind not in "buif" or dense.ndim not in (1, 2):
            raise DataError(
                f"{what} is a {type(matrix).__name__} of dtype {dense.dtype} with {dense.ndim} dimensions. "
                f"A scipy sparse matrix or a real array with one row a query is wanted."
            )
        matrix = sp.csr_array(np.atleast_2d(as_float32(dense, what)))
    check_structure(matrix, what)  # before scipy walks through it: its loops trust ids and offsets
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
    stored = csr.indptr[-1]
    csr = sp.csr_array((as_float32(csr.data[:stored], what), csr.indices[:stored], csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    check_finite(csr, what)
    return csr


def check_structure(matrix: Any, what: str) -> None:
    """Offsets rise and end inside the arrays, ids lie inside the shape: hand-made matrices may break either."""
    if matrix.format == "coo":
        for ids, size in zip(matrix.coords, matrix.shape, strict=True):
            check_ids(ids, size, what)
    if matrix.format not in ("csr", "csc"):
        return
    major, minor = (1, *matrix.shape)[-2:] if matrix.format == "csr" else matrix.shape[::-1]
    offsets, ids = matrix.indptr, matrix.indices
    held = min(len(ids), len(matrix.data))
    if len(offsets) != major + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] > held:
        raise DataError(
            f"{what} is not a valid {matrix.format.upper()} matrix: its indptr does not rise from 0 to the number of "
            "values. Build it anew."
        )
    check_ids(ids[: offsets[-1]], minor, what)


def check_ids(ids: Array, size: int, what: str) -> None:
    """Ids of rows or columns lie in 0..size-1."""
    if ids.dtype.kind not in "iu":
        raise DataError(f"{what} has ids of dtype {ids.dtype}. Integers are wanted. Build it anew.")
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        bad = ids[(ids < 0) | (ids >= size)][0]
        raise DataError(f"{what} has id {bad}, but only {size:,} are there (0 to {size - 1:,}). Build it anew.")


def check_finite(csr: Any, what: str) -> None:
    """No NaN, no infinity; names the first place."""
    bad = np.flatnonzero(~np.isfinite(csr.data))
    if len(bad):
        row = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"{what} holds {csr.data[bad[0]]} in row {row}, column {csr.indices[bad[0]]}. "
            f"Finite numbers are wanted: look for a division by zero or an overflow where it was made."
        )
