"""npz.py — the bytes of a `.npz` or `.npy` file that nobody vouches for in, the parts of a matrix out.

scipy's and numpy's own readers trust sizes. Here the table of the archive and the headers of its arrays are compared
with each other and with the file before anything is read, nothing is unpickled, and what comes out has still to pass
structure.py before anybody walks through it.
"""

from __future__ import annotations

import ast
import io
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

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
_MOST_TIMES = 200  # how many times its size a file may unpack to; numbers hardly shrink, ones do
_LONGEST_HEADER = 10_000
NPY_MAGIC = b"\x93NUMPY"
_FIELDS = {  # what each format holds beside its values, and how many dimensions these have
    "csr": (("indptr", "indices"), 1),
    "csc": (("indptr", "indices"), 1),
    "bsr": (("indptr", "indices"), 3),
    "coo": (("row", "col"), 1),
    "dia": (("offsets",), 2),
}


class Unreadable(Exception):
    """What is wrong with the file, to be told together with its name."""


@dataclass(frozen=True)
class MatrixParts:
    """The arrays of a scipy matrix under scipy's own names, with nothing checked that is between them."""

    format: str
    shape: tuple[int, int]
    data: Array
    indptr: Array | None = None
    indices: Array | None = None
    offsets: Array | None = None
    row: Array | None = None
    col: Array | None = None

    @property
    def ndim(self) -> int:
        """Always two: other shapes are not read."""
        return 2


def read_npz(data: bytes, formats: tuple[str, ...] = tuple(_FIELDS)) -> MatrixParts:
    """The parts of a matrix that scipy.sparse.save_npz wrote in one of these formats."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > _MOST_TIMES * len(data):
                raise Unreadable(f"it has {len(data):,} bytes that claim to unpack to {unpacked:,}")
            kind = bytes(_member(archive, "format", "SU", 0).astype("S8").item()).decode("ascii", "replace")
            if kind not in formats:
                raise Unreadable(f"its format is {kind!r}; expected {', '.join(formats)}")
            shape = _member(archive, "shape", "iu", 1)
            if len(shape) != 2 or not all(0 <= int(n) < 2**63 for n in shape):
                raise Unreadable(f"its shape is {shape.tolist()!r:.60}; expected two sizes")
            names, dimensions = _FIELDS[kind]
            fields = {name: _member(archive, name, "iu", 1) for name in names}
            values = _member(archive, "data", "iufb", dimensions)
            return MatrixParts(kind, (int(shape[0]), int(shape[1])), values, **fields)
    except _UNREADABLE as error:
        raise Unreadable(f"it is not a readable .npz file ({str(error)[:120]})") from None


def read_npy(data: bytes) -> Array:
    """The array of numbers in a .npy file."""
    try:
        return _array(io.BytesIO(data), len(data), "the array", "iufb", None)
    except _UNREADABLE as error:
        raise Unreadable(f"it is not a readable .npy file ({str(error)[:120]})") from None


def _member(archive: zipfile.ZipFile, name: str, kinds: str, dimensions: int) -> Array:
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        return _array(stream, member.file_size, f"{name}.npy", kinds, dimensions)  # type: ignore[arg-type]


def _array(stream: BinaryIO, size: int, name: str, kinds: str, dimensions: int | None) -> Array:
    """One array, once its header says what its size says."""
    version = np.lib.format.read_magic(stream)
    head = stream.read(2 if version[0] == 1 else 4)
    length = int.from_bytes(head, "little")
    if version not in ((1, 0), (2, 0)) or length > _LONGEST_HEADER:
        raise Unreadable(f"{name} has a header of version {version} and {length:,} bytes")
    header = ast.literal_eval(stream.read(length).decode("latin-1").strip())
    if not isinstance(header, dict) or not isinstance(header["descr"], str):
        raise Unreadable(f"{name} has a header that describes no plain array")
    dtype, shape = np.dtype(header["descr"]), header["shape"]
    if dtype.kind not in kinds or dtype.itemsize > 64:
        raise Unreadable(f"{name} has dtype {dtype}, which is not expected there")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise Unreadable(f"{name} has the shape {shape!r:.60}")
    if len(shape) != dimensions and dimensions is not None:
        raise Unreadable(f"{name} has the shape {shape!r:.60}; expected {dimensions} dimensions")
    count = 1
    for n in shape:
        count *= n
    rest = size - len(head) - 8 - length
    if count * dtype.itemsize != rest:
        raise Unreadable(f"{name} says {count:,} values of {dtype.itemsize} bytes, {rest:,} bytes are there")
    order = "F" if header["fortran_order"] else "C"
    values = np.empty(rest, np.uint8)  # memory of our own, which may be written to
    got = stream.readinto(values.data)  # type: ignore[attr-defined]
    if got != rest:
        raise Unreadable(f"{name} ends after {got:,} of {rest:,} bytes")
    return values.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]
