"""matrices.py — whatever holds numbers in, canonical float32 CSR out; every public function comes through here.

The law: structure first (structure.py), then the conversion, then the values. A matrix that leaves this module is
two-dimensional, its ids rise without doubles, its values are finite, and the caller's arrays are as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Union

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import DataError
from beamwood.inputs.arguments import as_column, plain_array
from beamwood.inputs.npz import MatrixParts
from beamwood.inputs.structure import as_real, check_real, valid_csr, valid_transposed

Array = npt.NDArray[Any]
SparseMatrix = Union["sp.spmatrix", "sp.sparray"]  # any scipy format, matrix or array
MatrixLike = SparseMatrix | npt.ArrayLike  # or what numpy makes an array of
RowsLike = MatrixLike | Mapping[str, MatrixLike]  # or named blocks of features, of a model that has such

_MOST_COLUMNS = 2**31 - 1
_SEQUENCES = (list, tuple, np.ndarray, memoryview)


class Columns(Protocol):
    """The features of a model that were trained as named blocks: blocks/blocks.py."""

    @property
    def columns(self) -> int: ...
    @property
    def advice(self) -> str: ...
    def joined(self, given: Mapping[Any, Any], what: str) -> Any: ...


def is_sparse(matrix: object) -> bool:
    """Whether it is a scipy sparse matrix or array of any kind."""
    return bool(sp.issparse(matrix))


def is_blocks(rows: object) -> bool:
    """Whether these are named blocks of features. A scipy matrix may be a dictionary too."""
    return isinstance(rows, Mapping) and not is_sparse(rows)


def empty_rows(rows: int, columns: int) -> sp.csr_matrix[np.float32]:
    """Rows that hold nothing."""
    return sp.csr_matrix(sp.csr_array((rows, columns), dtype=np.float32))


def row_lengths(csr: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The length (l2 norm, summed in float64) of each row that has values; and for each value that of its row."""
    entries = np.diff(csr.indptr)
    filled = entries > 0
    squares = np.square(csr.data, dtype=np.float64)
    length = np.sqrt(np.add.reduceat(squares, csr.indptr[:-1][filled])) if filled.any() else np.zeros(0)
    return length, np.repeat(length, entries[filled])


def as_float32(values: Array, what: str) -> npt.NDArray[np.float32]:
    """Real numbers as float32; refuses complex and object arrays and values that float32 cannot hold."""
    return as_real(values, what, np.dtype(np.float32))


def as_csr(matrix: Any, columns: int | Columns | None, what: str, *, zeros: bool = True) -> Any:
    """A two-dimensional canonical float32 CSR array: ids rising, no doubles, finite. One dimension means one row.

    columns: how many there must be; None: any number; or the blocks of a model, whose rows may come as a dictionary.
    zeros=False leaves stored zeros out.
    """
    if is_blocks(matrix):
        matrix = _joined(matrix, columns, what)
    sparse = is_sparse(matrix) or isinstance(matrix, MatrixParts)
    csr = valid_csr(matrix if sparse else _from_dense(matrix, what), what, np.dtype(np.float32))
    return _canonical(csr, columns, what, zeros, False)


class Row(NamedTuple):
    """One row as CSR has it; nobody has looked at its numbers."""

    indptr: Array
    indices: Array
    data: Array


def one_row(row: Any, columns: int) -> Row | None:
    """What `csr[i]` of a sparse array gives, one dimension of float32, without a copy; None: it is something else."""
    if type(row) is not sp.coo_array or row.shape != (columns,):
        return None
    ids, values = row.coords[0] if row.coords else None, row.data
    if not isinstance(ids, np.ndarray) or not isinstance(values, np.ndarray):
        return None
    if ids.dtype.kind != "i" or values.dtype != np.float32 or ids.ndim != 1 or ids.shape != values.shape:
        return None
    return Row(np.array((0, len(ids)), ids.dtype), ids, values)


def columns_as_csr(matrix: Any, what: str) -> Any:
    """The columns of a scipy matrix as the rows of a canonical CSR array; CSC shares its arrays."""
    return _canonical(valid_transposed(matrix, what, np.dtype(np.float32)), None, what, True, True)


def _joined(blocks: Mapping[Any, Any], columns: int | Columns | None, what: str) -> Any:
    if columns is None or isinstance(columns, int):
        raise DataError(
            f"{what} is a dictionary of feature blocks; expected one matrix, as the model was trained from. Give that "
            "matrix."
        )
    return columns.joined(blocks, what)


def _canonical(csr: Any, columns: int | Columns | None, what: str, zeros: bool, turned: bool) -> Any:
    count = columns if columns is None or isinstance(columns, int) else columns.columns
    if count is not None and csr.shape[1] != count:
        advice = getattr(columns, "advice", "Make it with the vectorizer that the model was trained with.")
        raise DataError(f"{what} has {csr.shape[1]:,} columns; expected {count:,}, the features of the model. {advice}")
    if csr.shape[1] > _MOST_COLUMNS:
        raise DataError(
            f"{what} has {csr.shape[1]:,} columns; expected at most {_MOST_COLUMNS:,}. Number its columns from 0 on."
        )
    keep = zeros or bool(csr.data.all())
    if not keep or not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
        if not zeros:
            csr.eliminate_zeros()
    _check_finite(csr, what, turned)
    return csr


def check_dimensions(matrix: Any, what: str, advice: str) -> None:
    """Refuses what has not two dimensions, where one row could not be meant."""
    found = getattr(matrix, "ndim", 2)
    if found != 2:
        raise DataError(f"{what} has {found} dimension{'s' * (found != 1)}; expected 2. {advice}")


def as_numbers(values: Any, count: int, what: str, per: str, whole: bool = False) -> Array:
    """A list of real (or whole) numbers as an array, one for each of something."""
    found = plain_array(as_column(values))
    if found.shape != (count,) or found.dtype.kind not in ("iu" if whole else "buif"):
        shape, kind = f"shape {found.shape} and dtype {found.dtype}", "whole" if whole else "real"
        raise DataError(f"{what} has {shape}; expected {count:,} {kind} numbers. Give one per {per}.")
    return found


def _check_finite(csr: Any, what: str, turned: bool) -> None:
    """No NaN, no infinity; names the first place. turned: rows of the CSR are columns of what was given."""
    bad = np.flatnonzero(~np.isfinite(csr.data))
    if len(bad):
        row, column = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1, int(csr.indices[bad[0]])
        row, column = (column, row) if turned else (row, column)
        raise DataError(
            f"{what} has {csr.data[bad[0]]} in row {row}, column {column}; expected finite numbers. "
            "Look for a division by zero or an overflow where it was made."
        )


def dense_array(given: Any, what: str) -> Array:
    """Lists of numbers, arrays, tables of other libraries as an array of real numbers, of whatever dimensions."""
    if not isinstance(given, _SEQUENCES) and not hasattr(given, "__array__"):
        raise _no_matrix(given, what, f"a {type(given).__name__}")
    if isinstance(given, np.ma.MaskedArray):
        raise DataError(f"{what} is a masked array; expected every value. Fill the gaps, for example with .filled(0).")
    try:
        dense = np.asarray(given)
    except MemoryError:
        raise
    except Exception:  # whatever a foreign object raises
        raise _no_matrix(given, what, f"a {type(given).__name__} of rows that differ in length or kind") from None
    if dense.dtype.kind in "OSU":
        texts = dense.dtype.kind == "U" or (dense.size and isinstance(dense.flat[0], str))
        found = "texts" if texts else f"objects (dtype {dense.dtype})"
        raise _no_matrix(given, what, f"a {type(given).__name__} of {found}")
    check_real(dense.dtype, what)
    return dense


def whole_columns(given: Any, what: str) -> Any:
    """A dense array of two dimensions as CSC float32 that holds every number, also zeros."""
    dense = dense_array(given, what)
    values = as_float32(np.ascontiguousarray(dense.T).reshape(-1), what)
    rows, columns = dense.shape
    index = np.int32 if dense.size < 2**31 else np.int64
    start = np.arange(columns + 1, dtype=index) * index(rows)
    return sp.csc_array((values, np.tile(np.arange(rows, dtype=index), columns), start), shape=dense.shape)


def _from_dense(given: Any, what: str) -> Any:
    dense = dense_array(given, what)
    if dense.ndim not in (1, 2):
        raise DataError(
            f"{what} has {dense.ndim} dimensions; expected 2. Give one row per query, for example "
            f"{what}.reshape(len({what}), -1)."
        )
    return sp.csr_array(np.atleast_2d(as_float32(np.ascontiguousarray(dense), what)))


def _no_matrix(given: Any, what: str, found: str) -> DataError:
    advice = " Texts go to search_many and train_text." if "texts" in found or isinstance(given, str) else ""
    return DataError(
        f"{what} is {found}; expected a scipy sparse matrix or a real array with one row per query.{advice}"
    )
