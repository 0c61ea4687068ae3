"""npz.py — an untrusted `.npz` file of scipy in, a checked sparse matrix out; and the plain kind that libpecos reads.

scipy's own reader trusts sizes. Here the table of the archive and the headers of its arrays are compared with each
other and with the file before anything is read, and every offset and id is checked before scipy sees it.
"""

from __future__ import annotations

import ast
import io
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.interop.foreign import MOST_FEATURES, read_file, wrong

Array = npt.NDArray[Any]

_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    EOFError,
    RuntimeError,  # an encrypted member; also NotImplementedError: an unknown compression
    OverflowError,
    SyntaxError,
    RecursionError,
    OSError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    tokenize.TokenError,
)
_MOST_TIMES = 200  # how many times its size a file may unpack to; weights hardly shrink, ones do a little
_LONGEST_HEADER = 10_000
_EMPTY_COLUMNS = 4096  # that a csr file may have: nothing in it but the shape speaks of them, and each takes memory
_COLUMNS_A_VALUE = 4


def read_csc(path: Path) -> Any:
    """A CSC or CSR file as a canonical float32 CSC array with finite values."""
    data = read_file(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > _MOST_TIMES * len(data):
                raise wrong(path, f"{len(data):,} bytes that claim to unpack to {unpacked:,}")
            kind = bytes(_member(archive, "format", path, "SU", 0).astype("S8").item()).decode("ascii", "replace")
            if kind not in ("csc", "csr"):
                raise wrong(path, f"format is {kind!r}, csc or csr is wanted")
            shape = _member(archive, "shape", path, "iu", 1)
            arrays = [_member(archive, name, path, kinds, 1) for name, kinds in _ARRAYS]
    except _UNREADABLE as error:
        raise wrong(path, f"not a readable .npz file ({str(error)[:120]})") from None
    return _checked(path, kind, shape, *arrays)


_ARRAYS = (("indptr", "iu"), ("indices", "iu"), ("data", "iufb"))


def _member(archive: zipfile.ZipFile, name: str, path: Path, kinds: str, dimensions: int) -> Array:
    """One array of the archive, once its header says what its member's size says."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        head = stream.read(2 if version[0] == 1 else 4)
        length = int.from_bytes(head, "little")
        if version not in ((1, 0), (2, 0)) or length > _LONGEST_HEADER:
            raise wrong(path, f"{name}.npy has a header of version {version} and {length:,} bytes")
        header = ast.literal_eval(stream.read(length).decode("latin-1").strip())
        if not isinstance(header, dict) or not isinstance(header["descr"], str):
            raise wrong(path, f"{name}.npy has a header that describes no plain array")
        dtype, shape = np.dtype(header["descr"]), header["shape"]
        if dtype.kind not in kinds or dtype.itemsize > 64:
            raise wrong(path, f"{name}.npy has dtype {dtype}, which is not wanted there")
        if not isinstance(shape, tuple) or len(shape) != dimensions or not all(type(n) is int for n in shape):
            raise wrong(path, f"{name}.npy has shape {shape!r:.60}, {dimensions} dimensions are wanted")
        count = shape[0] if shape else 1
        rest = member.file_size - len(head) - 8 - length
        if count < 0 or count * dtype.itemsize != rest:
            raise wrong(path, f"{name}.npy says {count:,} values of {dtype.itemsize} bytes, {rest:,} bytes are there")
        content = stream.read(rest)
    return np.frombuffer(content, dtype).reshape(shape)


def _checked(path: Path, kind: str, shape: Array, indptr: Array, indices: Array, data: Array) -> Any:
    """The matrix, once offsets rise, ids lie inside the shape and values are finite."""
    if shape.shape != (2,) or not all(0 <= int(n) <= MOST_FEATURES for n in shape):
        raise wrong(path, f"shape is {shape.tolist()!r:.60}, two sizes up to {MOST_FEATURES:,} are wanted")
    rows, columns = (int(n) for n in shape)
    major, minor = (rows, columns) if kind == "csr" else (columns, rows)
    if len(indptr) != major + 1 or len(indices) != len(data):
        raise wrong(
            path,
            f"indptr, indices and data have {len(indptr):,}, {len(indices):,} and {len(data):,} values, which does "
            f"not go with shape {rows:,} x {columns:,}",
        )
    if int(indptr[0]) != 0 or (indptr[1:] < indptr[:-1]).any() or int(indptr[-1]) != len(data):
        raise wrong(path, "indptr does not rise from 0 to the number of values")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= minor):
        raise wrong(path, f"indices go from {indices.min()} to {indices.max()}, but there are only {minor:,}")
    with np.errstate(over="ignore"):
        values = data.astype(np.float32)
    if not np.isfinite(values).all():
        raise wrong(path, f"data holds {data[~np.isfinite(values)][0]}, finite float32 numbers are wanted")
    if kind == "csr" and columns > _EMPTY_COLUMNS + _COLUMNS_A_VALUE * len(data):
        raise wrong(
            path, f"{len(data):,} values in {columns:,} columns; a csr file of so many empty columns is refused"
        )
    form: Any = sp.csr_array if kind == "csr" else sp.csc_array
    narrow = np.int32 if len(data) < 2**31 else np.int64
    matrix = form((values, indices.astype(np.int32), indptr.astype(narrow)), shape=(rows, columns))
    matrix.sum_duplicates()
    return sp.csc_array(matrix)


def write_csc(path: Path, matrix: Any) -> None:
    """The matrix as libpecos' native reader wants it: stored, not packed, csc, float32, ids rising."""
    columns = sp.csc_matrix(matrix, dtype=np.float32)
    columns.sort_indices()
    sp.save_npz(path, columns, compressed=False)
