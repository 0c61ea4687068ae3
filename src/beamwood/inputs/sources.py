"""sources.py — a path, "-" or an open file in, bytes out: decompressed by suffix, errors name the file."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from beamwood.errors import BeamwoodError, DataError, MissingFileError, SettingsError
from beamwood.inputs.arguments import as_path

Source = str | os.PathLike[str] | BinaryIO
BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 26  # bytes of one text with its labels: a longer line was not meant as one
SKIP_BAD = "Correct it, or leave bad rows out with skip_bad=True (--skip-bad)."
_LONGEST_NAME = 300  # letters of a path that a message shows

_FORMATS = {
    ".npz": "npz",
    ".txt": "xmc",
    ".xmc": "xmc",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def name_of(source: Source) -> str:
    """What to call the source in a message."""
    if hasattr(source, "read"):
        return str(getattr(source, "name", "the open file"))
    path = as_path(source, "the file to read")
    return "standard input" if path == "-" else path.encode("utf-8", "replace").decode()[:_LONGEST_NAME]


def format_of(source: Source) -> str:
    """The format that the file's name stands for: npz, xmc, svmlight, jsonl, csv, tsv or parquet."""
    path = Path(name_of(source))
    if path.suffix in (".gz", ".zst"):
        path = path.with_suffix("")
    if path.suffix.lower() in _FORMATS:
        return _FORMATS[path.suffix.lower()]
    if not hasattr(source, "read") and os.path.isdir(path):
        raise DataError(f"{name_of(source)} is a folder; expected a file. Name one of the files in it.")
    known = ", ".join(sorted({*_FORMATS.values(), "lines", "fasttext", "pecos", "annif"}))
    raise SettingsError(
        f"{name_of(source)} is a name that tells no format; expected one of {known}. Say which with format (--format); "
        "jsonl has one JSON object per line."
    )


class Gauge:
    """Which share of a file has been read, by its bytes as they lie on the disk."""

    def __init__(self) -> None:
        self._raw: BinaryIO | None = None
        self._size = 0

    def watch(self, raw: BinaryIO) -> None:
        """Looks at this file from now on."""
        self._raw, self._size = raw, os.fstat(raw.fileno()).st_size

    def share(self) -> float | None:
        """From 0 to 1; None where there is no file with a size."""
        if self._raw is None or not self._size:
            return None
        return 1.0 if self._raw.closed else min(1.0, self._raw.tell() / self._size)


@contextmanager
def opened(source: Source, gauge: Gauge | None = None) -> Iterator[BinaryIO]:
    """The source as a stream of plain bytes. The caller's streams stay open; what breaks is a DataError."""
    name = name_of(source)
    try:
        if hasattr(source, "read"):
            yield _readable(source)
        elif source == "-":
            yield sys.stdin.buffer
        else:
            with _open(source) as raw, _decompressed(raw, Path(source)) as plain:
                if gauge is not None and raw.seekable():
                    gauge.watch(raw)
                yield plain
    except BeamwoodError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{name}: there is no such file. Check the path.", name) from error
    except (UnicodeEncodeError, _NoName) as error:
        raise DataError(f"{name!r}: cannot name a file ({error}). Give another path.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{name}: the compressed data is damaged or cut off ({error}). Fetch the file again."
        ) from error
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error}). Check the path.") from error


class _NoName(Exception):
    """A path that no file can have."""


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        return open(path, "rb")
    except ValueError as error:  # a zero byte, a lone surrogate
        raise _NoName(str(error)) from None


def blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, a block at a time."""
    while block := stream.read(BLOCK_BYTES):
        yield block


def bounded_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1, bytes) of each line; None for one that is too long, whose rest is read over."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) <= LONGEST_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(BLOCK_BYTES)
        yield number, None


def text_lines(source: Source, gauge: Gauge | None = None) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of each line; bytes that are not UTF-8 are an error."""
    with opened(source, gauge) as stream:
        for number, line in bounded_lines(stream):
            if line is None:
                raise DataError(
                    f"{name_of(source)}, line {number}: has more than {LONGEST_LINE:,} bytes; expected less. "
                    "Check where its lines end."
                )
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{name_of(source)}, line {number} has bytes that are not UTF-8 ({error.reason}); "
                    "expected UTF-8. Save it as UTF-8."
                ) from error


def _readable(stream: Any) -> BinaryIO:
    if not hasattr(stream, "read") or isinstance(stream, io.TextIOBase):
        raise SettingsError(f"{stream!r:.60} is no binary file; expected a path, '-' or a file opened with mode 'rb'.")
    return stream  # type: ignore[no-any-return]


def _decompressed(raw: BinaryIO, path: Path) -> Any:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), BLOCK_BYTES)
    if path.suffix == ".zst":
        return io.BufferedReader(_zstd_reader(raw), BLOCK_BYTES)
    return raw


def _zstd_reader(raw: BinaryIO) -> Any:
    """A decompressing reader from Python 3.14 itself or from the zstandard package."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return _ZstdFrames(raw, _Stdlib(zstd), zstd.ZstdError)
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise DataError(
            "files ending in .zst need Python 3.14 or the zstandard package. "
            "Install it (pip install zstandard) or decompress the file first."
        ) from None
    return _ZstdFrames(raw, zstandard.ZstdDecompressor, zstandard.ZstdError)


class _Stdlib:
    """Python 3.14's decompressor under the package's names."""

    def __init__(self, zstd: Any) -> None:
        """Takes the module compression.zstd."""
        self._zstd = zstd

    def __call__(self) -> _Stdlib:
        """The factory and what it makes are one."""
        return self

    def decompressobj(self) -> Any:
        """A decompressor of one frame, with eof and unused_data."""
        return self._zstd.ZstdDecompressor()


class _ZstdFrames(io.RawIOBase):
    """Decompresses frame after frame. The package's own reader takes a cut-off file for a complete one."""

    def __init__(self, raw: BinaryIO, make: Any, error: type[Exception]) -> None:
        """Takes the compressed stream, the decompressor's class and the exception it raises."""
        self._raw, self._make, self._error = raw, make, error
        self._frame: Any = None
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Always: this is what it is for."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 at the end."""
        while not self._ready:
            piece = self._rest or self._raw.read(1 << 14)
            if not piece:
                if self._frame is not None:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            self._ready = memoryview(self._decompress(piece))
        got = min(len(buffer), len(self._ready))
        buffer[:got] = self._ready[:got]
        self._ready = self._ready[got:]
        return got

    def _decompress(self, piece: bytes) -> bytes:
        if self._frame is None:
            self._frame = self._make().decompressobj()
        try:
            plain: bytes = self._frame.decompress(piece)
        except self._error as error:
            raise EOFError(str(error)) from error
        self._rest = self._frame.unused_data if self._frame.eof else b""
        if self._frame.eof:
            self._frame = None
        return plain
