"""row_blocks.py — sparse rows as lines of text in, matrices of some thousands of them at a time out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import scipy.sparse as sp

from beamwood import _core
from beamwood.errors import DataError
from beamwood.inputs.data import xmc_header
from beamwood.inputs.sources import LONGEST_LINE, SKIP_BAD, Gauge, Source, name_of, opened

_BYTES = 1 << 22  # of text per block
_MOST = 2**31 - 1


def iter_rows(
    source: Source, kind: str, features: int, *, skip_bad: bool = False, gauge: Gauge | None = None
) -> Iterator[tuple[sp.csr_array, int]]:
    """Yields (rows x features, bad lines left out so far) of a file in the format "xmc" or "svmlight".

    features: how many the model has. Svmlight ids start at 1 unless there is a 0 in the file, which is read for that.
    """
    first_id = 0 if kind == "xmc" else _first_id(source, skip_bad)
    with opened(source, gauge) as stream:
        expected = _rows_said(stream.readline(1 << 16), source, features) if kind == "xmc" else None
        found = bad = 0
        for parser in _parsed(stream, source, kind, features + first_id, skip_bad):
            found, bad = found + parser.seen, bad + parser.bad_lines
            starts, ids, values, *_ = parser.take()
            if first_id:
                ids -= first_id
            made = sp.csr_array((values, ids, starts), shape=(len(starts) - 1, features))
            made.has_sorted_indices = made.has_canonical_format = True
            yield made, bad
    if expected is not None and found != expected:
        raise DataError(
            f"{name_of(source)} has {found:,} rows; expected {expected:,}, as its header says. "
            "The file was cut off or its first line is wrong."
        )


def _rows_said(line: bytes, source: Source, features: int) -> int:
    """How many rows the header of an XMC file promises."""
    rows, columns, _ = xmc_header(line, source)
    if columns != features:
        raise DataError(
            f"{name_of(source)} has {columns:,} features; expected {features:,}, as the model has. "
            "Give the rows that belong to it."
        )
    return rows


def _first_id(source: Source, skip_bad: bool) -> int:
    """1, or 0 when that is a feature of some row."""
    with opened(source) as stream:
        for parser in _parsed(stream, source, "svmlight", _MOST, skip_bad):
            ids = parser.take()[1]
            if len(ids) and not ids.min():
                return 0
    return 1


def _parsed(stream: BinaryIO, source: Source, kind: str, features: int, skip_bad: bool) -> Iterator[Any]:
    """Parsers that have read the next lines each."""
    line = 2 if kind == "xmc" else 1
    for lines in _whole_lines(stream, source):
        parser = _core.RowParser(
            svmlight=kind == "svmlight",
            targets=False,
            rows=2**63 - 1,
            features=min(features, _MOST),
            labels=_MOST,
            skip_bad=skip_bad,
            first_line=line,
        )
        if not (parser.feed(lines) and parser.finish()):
            number, found, expected = parser.bad[0]
            raise DataError(f"{name_of(source)}, line {number} has {found!r}; expected {expected}. {SKIP_BAD}")
        yield parser
        line += lines.count(b"\n")


def _whole_lines(stream: BinaryIO, source: Source) -> Iterator[bytes]:
    """The bytes of a stream, cut where lines end."""
    rest = b""
    while block := stream.read(_BYTES):
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
        if len(rest) > LONGEST_LINE:
            raise DataError(
                f"{name_of(source)} has a line of more than {LONGEST_LINE:,} bytes; expected shorter ones. "
                "Check where its lines end."
            )
    if rest:
        yield rest
