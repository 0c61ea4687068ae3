"""structure.py — a scipy matrix of any format in, a CSR array whose structure is valid out.

The law: no loop of scipy or of ours walks through a matrix before its offsets and ids have been checked against its
shape and its arrays. Hand-made matrices and damaged files may break either, and scipy's loops trust both. What each
format may look like is known here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError

Array = npt.NDArray[Any]

_ADVICE = "Rebuild the matrix."
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
_EMPTY_LINES = 1 << 24  # rows or columns that need no value to be believed: each takes eight bytes of offsets
_LINES_PER_VALUE = 64


def valid_csr(matrix: Any, what: str, dtype: Any) -> Any:
    """The matrix as a CSR array with values of this dtype: rows of one dimension become one row.

    Ids may be unsorted or doubled as they were; values may be anything that the dtype can hold. Arrays are shared with
    the caller's where they are CSR of this dtype already, and never changed.
    """
    convert = _FORMATS.get(getattr(matrix, "format", ""))
    if convert is None:
        raise DataError(f"{what} is a {type(matrix).__name__}; expected one of {', '.join(_FORMATS)}. {_ADVICE}")
    _check_shape(matrix.shape, what)
    return convert(matrix, what, dtype)


def valid_transposed(matrix: Any, what: str, dtype: Any) -> Any:
    """The same of the matrix turned around: CSC, which holds columns as CSR holds rows, shares its arrays."""
    if getattr(matrix, "format", "") != "csc":
        csr = valid_csr(matrix, what, dtype)
        check_believable(csr.shape[1], csr.nnz, what, "column")
        return csr.T.tocsr()
    _check_shape(matrix.shape, what)
    return _compressed(matrix, matrix.shape[::-1], what, dtype, "row")


def check_real(dtype: Any, what: str) -> None:
    """Refuses complex numbers, objects, strings and dates."""
    if np.dtype(dtype).kind not in "buif":
        raise DataError(
            f"{what} has dtype {dtype}; expected real numbers. Convert it, for example with .astype('float32')."
        )


def as_real(values: Array, what: str, dtype: Any) -> Array:
    """Real numbers as float32 or float64; refuses what they cannot hold."""
    if values.dtype == dtype:
        return values
    check_real(values.dtype, what)
    with np.errstate(over="ignore"):
        narrow: Array = values.astype(dtype)
    if values.dtype.kind == "f" and values.dtype.itemsize > narrow.dtype.itemsize:
        lost = np.isfinite(values) & ~np.isfinite(narrow)
        if lost.any():
            raise DataError(
                f"{what} has the value {values[lost][0]}; expected numbers that {narrow.dtype} can hold. "
                "Scale the values down first."
            )
    return narrow


def check_compressed(
    indptr: Array, indices: Array, values: int, shape: tuple[int, int], what: str, line: str = "column"
) -> int:
    """Checks offsets and ids of CSR (or, with the shape turned, CSC) arrays; how many values they use.

    shape: how many rows there are, and how many ids. line: what an id stands for.
    """
    rows, ids = shape
    held = min(len(indices), values)
    if len(indptr) != rows + 1 or int(indptr[0]) != 0 or (indptr[1:] < indptr[:-1]).any() or int(indptr[-1]) > held:
        raise DataError(
            f"{what} has an indptr of {len(indptr):,} offsets that do not fit; expected {rows + 1:,} that rise from 0 "
            f"to at most {held:,}, the number of its values. {_ADVICE}"
        )
    used = int(indptr[-1])
    _check_ids(indices[:used], ids, line, what)
    return used


def check_believable(lines: int, stored: int, what: str, line: str) -> None:
    """Refuses a number of rows or columns that nothing but the shape speaks of: each of them takes memory."""
    most = _EMPTY_LINES + _LINES_PER_VALUE * stored
    if lines > most:
        raise DataError(
            f"{what} has {lines:,} {line}s for {stored:,} stored values; expected at most {most:,}. Check its shape."
        )


def _check_shape(shape: Any, what: str) -> None:
    if len(shape) not in (1, 2) or any(int(n) < 0 for n in shape):
        raise DataError(f"{what} has the shape {tuple(shape)}; expected two dimensions. Give one row per query.")


def _check_ids(ids: Array, size: int, line: str, what: str) -> None:
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= size):
        bad = ids[(ids < 0) | (ids >= size)][0]
        expected = f"{line}s 0 to {size - 1:,}" if size else f"no {line}s"
        raise DataError(f"{what} has a value in {line} {bad}; expected {expected}. {_ADVICE}")


def _field(matrix: Any, name: str, what: str, dimensions: int = 1) -> Array:
    """One of the arrays that a matrix is made of; anybody may have put anything there."""
    found = getattr(matrix, name, None)
    if not isinstance(found, np.ndarray) or found.ndim != dimensions:
        shape = f" of shape {found.shape}" if isinstance(found, np.ndarray) else ""
        raise DataError(
            f"{what} has a {type(found).__name__}{shape} as its {name}; expected an array of {dimensions} "
            f"dimension{'s' * (dimensions > 1)}. {_ADVICE}"
        )
    return np.asarray(found)  # a memory map becomes a plain array over the same memory


def _ids(found: Array, name: str, what: str) -> Array:
    """Integers in a type that scipy and the core read."""
    if found.dtype.kind not in "iu":
        raise DataError(f"{what} has {name} of dtype {found.dtype}; expected integers. {_ADVICE}")
    if found.dtype.kind == "u" and found.dtype.itemsize == 8 and len(found) and int(found.max()) >= 2**63:
        raise DataError(f"{what} has {found.max()} in its {name}; expected numbers below 2^63. {_ADVICE}")
    return found if found.dtype in _INDEX_TYPES else found.astype(np.int64)


def _index(matrix: Any, name: str, what: str) -> Array:
    return _ids(_field(matrix, name, what), name, what)


def _compressed(matrix: Any, shape: tuple[int, int], what: str, dtype: Any, line: str) -> Any:
    """CSR of this shape over the arrays of a CSR or CSC matrix. line: what its ids stand for."""
    indptr, indices = _index(matrix, "indptr", what), _index(matrix, "indices", what)
    data = _field(matrix, "data", what)
    used = check_compressed(indptr, indices, len(data), shape, what, line)
    whole = (as_real(data[:used], what, dtype), indices[:used], indptr)
    return sp.csr_array(tuple(map(np.ascontiguousarray, whole)), shape=shape)


def _from_csr(matrix: Any, what: str, dtype: Any) -> Any:
    return _compressed(matrix, (1, *matrix.shape)[-2:], what, dtype, "column")


def _from_csc(matrix: Any, what: str, dtype: Any) -> Any:
    turned = _compressed(matrix, matrix.shape[::-1], what, dtype, "row")
    check_believable(matrix.shape[0], turned.nnz, what, "row")
    return turned.T.tocsr()


def _from_bsr(matrix: Any, what: str, dtype: Any) -> Any:
    rows, columns = matrix.shape
    indptr, indices = _index(matrix, "indptr", what), _index(matrix, "indices", what)
    data = _field(matrix, "data", what, 3)
    high, wide = data.shape[1:]
    if high < 1 or wide < 1 or rows % high or columns % wide:
        raise DataError(
            f"{what} has blocks of {high} x {wide} in a shape of {rows:,} x {columns:,}; expected a size that divides "
            f"it. {_ADVICE}"
        )
    used = check_compressed(indptr, indices, len(data), (rows // high, columns // wide), what, "block column")
    values = np.ascontiguousarray(as_real(data[:used], what, dtype))
    return sp.bsr_array((values, indices[:used], indptr), shape=matrix.shape).tocsr()


def _from_cells(row: Array, column: Array, data: Array, shape: Any, what: str, dtype: Any) -> Any:
    """CSR of single values; one that stands twice is added up."""
    rows, columns = (1, *shape)[-2:]
    if not len(row) == len(column) == len(data):
        raise DataError(
            f"{what} has {len(row):,} rows, {len(column):,} columns and {len(data):,} values; expected as many of "
            f"each. {_ADVICE}"
        )
    _check_ids(row, rows, "row", what)
    _check_ids(column, columns, "column", what)
    check_believable(rows, len(data), what, "row")
    values = np.ascontiguousarray(as_real(data, what, dtype))
    return sp.coo_array((values, (row, column)), shape=(rows, columns)).tocsr()


def _from_coo(matrix: Any, what: str, dtype: Any) -> Any:
    coords = getattr(matrix, "coords", None) or (matrix.row, matrix.col)
    if len(coords) != len(matrix.shape) or not all(isinstance(ids, np.ndarray) and ids.ndim == 1 for ids in coords):
        raise DataError(f"{what} has coords that are not {len(matrix.shape)} arrays of ids. {_ADVICE}")
    data = _field(matrix, "data", what)
    found = [_ids(np.asarray(ids), "coords", what) for ids in coords]
    row = found[0] if len(found) == 2 else np.zeros(len(data), np.int64)
    return _from_cells(row, found[-1], data, matrix.shape, what, dtype)


def _from_dia(matrix: Any, what: str, dtype: Any) -> Any:
    rows, columns = matrix.shape
    data, offsets = _field(matrix, "data", what, 2), _index(matrix, "offsets", what)
    if len(offsets) != len(data) or len(np.unique(offsets)) != len(offsets):
        raise DataError(
            f"{what} has {len(offsets):,} offsets for {len(data):,} diagonals; expected a different one for each. "
            f"{_ADVICE}"
        )
    inside = (offsets > -rows) & (offsets < columns)
    data, offsets = data[inside, :columns], offsets[inside].astype(np.int64)
    diagonal, column = np.nonzero(data)
    row = column - offsets[diagonal]
    kept = (row >= 0) & (row < rows)  # a diagonal is stored longer than it is
    cells = (row[kept], column[kept], data[diagonal[kept], column[kept]])
    return _from_cells(*cells, matrix.shape, what, dtype)


def _from_lil(matrix: Any, what: str, dtype: Any) -> Any:
    rows, data = _field(matrix, "rows", what), _field(matrix, "data", what)
    lists = all(type(one) is list for one in chain(rows, data))
    if not lists or len(rows) != matrix.shape[0] or len(data) != len(rows):
        raise DataError(f"{what} has rows that are not one list for each of {matrix.shape[0]:,}. {_ADVICE}")
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if (lengths != np.fromiter(map(len, data), np.int64, len(data))).any():
        raise DataError(f"{what} has rows with more ids than values, or fewer; expected one for each. {_ADVICE}")
    columns = _ids(_flat(chain.from_iterable(rows), "ids", what), "ids", what)
    values = _flat(chain.from_iterable(data), "values", what)
    return _from_cells(np.repeat(np.arange(len(rows)), lengths), columns, values, matrix.shape, what, dtype)


def _from_dok(matrix: Any, what: str, dtype: Any) -> Any:
    keys, values = list(matrix.keys()), _flat(matrix.values(), "values", what)
    cells = _ids(_flat(chain.from_iterable(keys) if len(matrix.shape) == 2 else keys, "ids", what), "ids", what)
    if len(cells) != len(keys) * len(matrix.shape):
        raise DataError(f"{what} has keys that are not {len(matrix.shape)} ids each. {_ADVICE}")
    cells = cells.reshape(len(keys), len(matrix.shape))
    row = cells[:, 0] if len(matrix.shape) == 2 else np.zeros(len(keys), np.int64)
    return _from_cells(row, cells[:, -1], values, matrix.shape, what, dtype)


def _flat(values: Any, name: str, what: str) -> Array:
    """Numbers that stand in Python lists as an array of one dimension."""
    try:
        found = list(values)
        flat = np.array(found) if found else np.zeros(0, np.int64)
    except (TypeError, ValueError, OverflowError):
        flat = np.empty(0, object)
    if flat.ndim != 1 or flat.dtype.kind not in "buif":
        raise DataError(f"{what} has {name} that are not all real numbers. {_ADVICE}")
    return flat


_FORMATS: dict[str, Callable[[Any, str, Any], Any]] = {
    "csr": _from_csr,
    "csc": _from_csc,
    "coo": _from_coo,
    "bsr": _from_bsr,
    "dia": _from_dia,
    "lil": _from_lil,
    "dok": _from_dok,
}
