"""store.py — named arrays and a description in, one model file out; and back by memory map. FORMAT.md describes it.

The file is a safetensors container: a JSON header and the arrays, each at a multiple of 64 bytes. `__metadata__` has
one key, `beamwood`: a JSON string with the description and an XXH3-64 of every array and of the header itself.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import FormatError, MissingFileError, SettingsError
from beamwood.storage.draft import CUT, checked_path, checked_target, disk_errors, draft_beside

Array = npt.NDArray[Any]

FORMAT_VERSION = 2
REQUIRED = ["threads-3"]  # what a reader of our files must know
KNOWN_FEATURES = frozenset(
    {"chunk-1", "threads-1", "threads-2", "threads-3", "compact-1", "discount-1", "unit-rows-1", "index-1"}
    | {"head-1", "head-2", "text-2", "part-1", "encoder-1"}
)  # what this version knows; loading.py refuses those of previews
ALIGNMENT = 64
RESERVED = 1 << 16  # bytes that a file written piece by piece keeps free for its header
MAX_HEADER = 100_000_000  # safetensors' own limit
HUGE_PAGE = 2 << 20
_ZERO_HASH = "0" * 16
_DTYPES = {
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I64": np.int64,
    "F32": np.float32,
    "F64": np.float64,
}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_MUCH = 1 << 20  # bytes; pages of less are not worth a system call
_ADVICE = "Get a fresh copy of the file, or save the model again."


def write_file(path: str | os.PathLike[str], arrays: dict[str, Array], description: dict[str, Any]) -> None:
    """Writes a model file: a reader sees the old file or the new one, never a piece."""
    target = checked_target(path)
    header, padding = header_of(arrays, description)
    with disk_errors(target, sum(array.nbytes for array in arrays.values())), draft_beside(target) as draft:
        for piece in pieces(arrays, header, padding):
            draft.write(piece)
        check_intact(arrays)


def to_bytes(arrays: dict[str, Array], description: dict[str, Any]) -> bytes:
    """The file that `save` would write, in memory."""
    made = b"".join(pieces(arrays, *header_of(arrays, description)))
    check_intact(arrays)
    return made


@contextlib.contextmanager
def reading(arrays: Mapping[str, Array]) -> Iterator[None]:
    """Whatever happens to what is read here from a file that was cut meanwhile, the error says that it was."""
    try:
        yield
    except Exception:
        check_intact(arrays)
        raise
    check_intact(arrays)


def check_intact(arrays: Mapping[str, Array]) -> None:
    """What was just read from these arrays was there: the file they are mapped from was not cut meanwhile."""
    if any(array.nbytes and _core.is_broken(array.reshape(-1).view(np.uint8)) for array in arrays.values()):
        raise FormatError(CUT)


def pieces(arrays: dict[str, Array], header: bytes, padding: dict[str, int]) -> Iterator[bytes | memoryview]:
    """A file from its first byte to its last. Of arrays that are mapped, no more than one is in memory for that."""
    yield len(header).to_bytes(8, "little") + header
    for name, array in arrays.items():
        data = _bytes_of(array)
        yield data.data
        _let_go(data)
        yield bytes(padding[name])


def header_of(arrays: dict[str, Array], description: dict[str, Any], room: int = 0) -> tuple[bytes, dict[str, int]]:
    """The JSON header, filled up so that arrays start aligned, and the padding that follows each array.

    room: where arrays start if that is known already.
    """
    entries: dict[str, Any] = {}
    padding: dict[str, int] = {}
    at = 0
    for number, (name, array) in enumerate(arrays.items()):
        end = at + array.nbytes
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, end]}
        padding[name] = -end % ALIGNMENT
        at = end + padding[name]
        if padding[name]:
            entries[f"_pad/{number}"] = {"dtype": "U8", "shape": [padding[name]], "data_offsets": [end, at]}
    checks = {}
    for name, array in arrays.items():
        checks[name] = f"{hash_of(array):016x}"
        _let_go(_bytes_of(array))
    requires = [*REQUIRED, *description.get("requires", ())]
    meta = {"format": FORMAT_VERSION, **description, "requires": requires, "xxh3": checks, "header": _ZERO_HASH}

    def render() -> bytes:
        text = json.dumps({"__metadata__": {"beamwood": json.dumps(meta)}, **entries}, separators=(",", ":")).encode()
        return text + b" " * max(-(len(text) + 8) % ALIGNMENT, room - 8 - len(text))

    meta["header"] = f"{hash_of(np.frombuffer(render(), np.uint8)):016x}"
    return render(), padding


def version_of(arrays: dict[str, Array], description: dict[str, Any]) -> str:
    """The header's checksum of the file that `save` would write: it covers the checksums of all arrays."""
    header, _ = header_of(arrays, description)
    check_intact(arrays)
    return str(json.loads(json.loads(header)["__metadata__"]["beamwood"])["header"])


def dtype_name(dtype: Any) -> str:
    """What safetensors calls a dtype."""
    return _NAMES[np.dtype(dtype)]


def write_header(draft: Any, places: dict[str, tuple[str, int]], description: dict[str, Any]) -> None:
    """Completes a file whose arrays (dtype and length, in this order) were written from RESERVED on, each padded."""
    draft.flush()
    buffer = np.frombuffer(mmap.mmap(draft.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    arrays: dict[str, Array] = {}
    at = RESERVED
    for name, (dtype, count) in places.items():
        size = count * np.dtype(_DTYPES[dtype]).itemsize
        arrays[name] = buffer[at : at + size].view(_DTYPES[dtype])
        at += size + -size % ALIGNMENT
    header, _ = header_of(arrays, description, RESERVED)
    if len(header) + 8 != RESERVED:
        raise FormatError(f"The description of the model takes {len(header):,} bytes; {RESERVED:,} are reserved.")
    draft.seek(0)
    draft.write(len(header).to_bytes(8, "little") + header)


def hash_of(array: Array) -> int:
    """The XXH3-64 of an array's bytes."""
    return _core.xxh3_64(_bytes_of(array))


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _let_go(data: Array) -> None:
    if data.size >= _MUCH:
        _core.let_go(data)


def read_file(
    path: str | os.PathLike[str], memory: str = "map", verify: bool = False
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a model file, in place, and its description. Reads only the header unless asked to verify."""
    if memory not in ("map", "read", "huge"):
        raise SettingsError(
            f"memory={memory!r} is not known. Use 'map' (share the file's pages), 'read' (copy) or 'huge' "
            "(copy into huge pages)."
        )
    target = checked_path(path)
    try:
        mode = os.stat(target).st_mode
        if stat.S_ISDIR(mode):
            raise FormatError(f"{target} is a folder. A beamwood model is one file, for example {target / 'model.bw'}.")
        if not stat.S_ISREG(mode):  # a pipe would be waited for, a device has no size
            raise FormatError(f"{target} is a pipe or a device; expected a file. Copy the model to a file first.")
        buffer = np.frombuffer(contents(target, memory), np.uint8)
    except FileNotFoundError as error:
        raise MissingFileError(f"{target}: there is no such file. Check the path.", str(target)) from error
    except OSError as error:
        raise FormatError(f"Cannot read {target}: {error.strerror}. Check the path.") from error
    return read(buffer, target, verify)


def read(buffer: Array, target: Path, verify: bool) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the description in the bytes of a file; target is what messages call it."""
    header, start = read_header(buffer, target)
    meta = read_meta(header, buffer[8:start], target)
    arrays = read_arrays(header, buffer, start, target)
    if set(arrays) != set(meta["xxh3"]):
        raise FormatError(f"{target} is damaged: its arrays are not those that its description lists. {_ADVICE}")
    if verify:
        for name, array in arrays.items():
            if f"{hash_of(array):016x}" != meta["xxh3"][name]:
                raise FormatError(f"{target} is damaged: the checksum of {name} does not match. {_ADVICE}")
    return arrays, meta


def contents(path: Path, memory: str) -> Any:
    """The bytes of a file: mapped, or copied into memory of our own."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise FormatError(f"{path} is empty; expected a beamwood model. {_ADVICE}")
        if memory == "map":
            return _core.MappedFile(file.fileno()).bytes()  # zeros and a mark, not SIGBUS, when it is cut
        if memory == "read":
            return file.read()
        copy = huge_memory(size)
        done = 0
        while done < size:
            got = file.readinto(copy[done : done + (1 << 26)])
            if not got:
                raise FormatError(f"{path} became shorter while it was read. {_ADVICE}")
            done += got
        return copy.toreadonly()


def huge_memory(size: int) -> memoryview:
    """Room for so many bytes in huge pages, where the system gives them: whole ones, from the first byte on."""
    # Private memory: systems commonly give huge pages only to it, not to what processes may share.
    pages = -(-size // HUGE_PAGE) + 1
    room = mmap.mmap(-1, pages * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError, AttributeError):  # a kernel without huge pages: plain ones do
        room.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(room, np.uint8).ctypes.data % HUGE_PAGE
    return memoryview(room)[start : start + size]


def read_header(buffer: Array, path: Path) -> tuple[dict[str, Any], int]:
    """The container's JSON header and where the arrays start."""
    foreign = FormatError(
        f"{path} is not a beamwood model: no safetensors header. To use a model of another program, convert it first."
    )
    if len(buffer) < 8:
        raise foreign
    length = int.from_bytes(buffer[:8].tobytes(), "little")
    if length > min(MAX_HEADER, len(buffer) - 8) or length < 2:
        raise foreign
    try:
        header = json.loads(buffer[8 : 8 + length].tobytes(), object_pairs_hook=without_doubles)
    except (ValueError, RecursionError):
        raise foreign from None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__"), dict):
        raise foreign
    return header, 8 + length


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are unique."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def read_meta(header: dict[str, Any], raw: Array, path: Path) -> dict[str, Any]:
    """The description inside the header, once its version and checksum are known to be good."""
    text = header["__metadata__"].get("beamwood")
    if not isinstance(text, str):
        raise FormatError(
            f"{path} is a safetensors file, but not a beamwood model. To use a model of another program, "
            "convert it first."
        )
    try:
        meta = json.loads(text, object_pairs_hook=without_doubles)
        version, requires, checks, mark = meta["format"], list(meta["requires"]), meta["xxh3"], meta["header"]
        valid = isinstance(version, int) and isinstance(checks, dict) and isinstance(mark, str) and len(mark) == 16
    except (ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if valid and version > FORMAT_VERSION:
        raise FormatError(
            f"{path} has format version {str(version)[:20]}; this beamwood reads up to {FORMAT_VERSION}. Install a "
            f"newer beamwood (the file was written by {str(meta.get('version', 'a newer version'))[:40]})."
        )
    if not valid or version < 1 or not header_intact(raw, mark):
        raise FormatError(f"{path} is damaged: its header does not match its checksum. {_ADVICE}")
    unknown = sorted({str(feature)[:40] for feature in requires} - KNOWN_FEATURES)[:9]
    if unknown:
        raise FormatError(
            f"{path} needs {', '.join(unknown)}, which this beamwood does not have. Install beamwood "
            f"{str(meta.get('version', 'of a newer version'))[:40]} or newer."
        )
    return dict(meta)


def header_intact(raw: Array, mark: str) -> bool:
    """Whether the header with its own checksum zeroed has that checksum."""
    data = raw.tobytes()
    needle = f'\\"header\\": \\"{mark}\\"'.encode()
    if data.count(needle) != 1:
        return False
    zeroed = data.replace(needle, f'\\"header\\": \\"{_ZERO_HASH}\\"'.encode())
    return f"{hash_of(np.frombuffer(zeroed, np.uint8)):016x}" == mark


def read_arrays(header: dict[str, Any], buffer: Array, start: int, path: Path) -> dict[str, Array]:
    """Views of the arrays; they must follow each other without a hole and end where the file ends."""
    arrays: dict[str, Array] = {}
    at = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, (count,), (first, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
            valid = all(type(number) is int and 0 <= number <= len(buffer) for number in (count, first, end))
            valid = valid and first == at and end - first == count * dtype.itemsize
        except (KeyError, TypeError, ValueError):
            valid = False
        if not valid or start + end > len(buffer):
            raise FormatError(f"{path} is damaged or cut short at {name}: {len(buffer):,} bytes are there. {_ADVICE}")
        if not name.startswith("_pad/"):
            if (start + first) % dtype.itemsize:
                raise FormatError(f"{path} is damaged: {name} is not aligned. {_ADVICE}")
            arrays[name] = buffer[start + first : start + end].view(dtype)
        at = end
    if start + at != len(buffer):
        raise FormatError(f"{path} is damaged: it has {len(buffer):,} bytes; expected {start + at:,}. {_ADVICE}")
    return arrays
