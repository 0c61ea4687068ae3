"""records.py — JSONL, CSV, TSV, Parquet or lines of other programs in, texts with lists of label keys out."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

import numpy as np

from beamwood.errors import DataError, SettingsError, install
from beamwood.inputs.line_formats import LINE_FORMATS, Line, hint
from beamwood.inputs.sources import LONGEST_LINE, SKIP_BAD, Gauge, Source, bounded_lines, format_of, name_of, opened

Record = tuple[str, list[str]]
Named = tuple[str, Any]  # a text and what its row is called
Row = TypeVar("Row")
_ROWS_PER_BATCH = 4096
_MOST_DIGITS = 9  # of a column's number
_HEADER_LINES = 1000  # that are looked at for what stands between columns


@dataclass(frozen=True)
class Records:
    """Texts and, for each, its label keys. `skipped` counts bad rows that were left out (skip_bad=True)."""

    texts: list[str]
    labels: list[list[str]]
    skipped: int = 0


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where text and labels stand, and how several labels are written in one string."""

    text: str
    labels: str | None = None
    separator: str | None = None
    id: str | None = None

    @cached_property
    def used(self) -> list[str]:
        """All that a file must have."""
        return [column for column in (self.text, self.labels, self.id) if column is not None]

    @cached_property
    def numbers(self) -> list[int]:
        """The columns as numbers from 1 on, where all of them are: a table without a header. Otherwise none."""
        counted = [int(name) for name in self.used if name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS]
        return counted if len(counted) == len(self.used) and min(counted) > 0 else []

    def named(self, row: Any) -> Named:
        """Text and id of one row."""
        return self._text(row.get(self.text)), self._id(row.get(self.id)) if self.id else None

    def _id(self, found: Any) -> Any:
        if isinstance(found, (dict, list)):
            raise ValueError(f"{self.id!r} is {found!r:.40}; expected a string or a number")
        if found is None or isinstance(found, (str, int)):
            return found
        if isinstance(found, float):
            return found if math.isfinite(found) else None
        return str(found)

    def record(self, row: Any) -> Record:
        """Text and labels of one row (a mapping); raises ValueError that says what was found and expected."""
        return self._text(row.get(self.text)), self._keys(row.get(self.labels)) if self.labels else []

    def _text(self, found: Any) -> str:
        if not isinstance(found, str):
            raise ValueError(f"{self.text!r} is {found!r:.40}; expected a string")
        return found

    def _keys(self, found: Any) -> list[str]:
        if isinstance(found, str):
            keys: list[Any] = [found] if self.separator is None else found.split(self.separator)
            return (
                [key.strip() for key in keys if key.strip()] if self.separator is not None else [k for k in keys if k]
            )
        if isinstance(found, (list, tuple, np.ndarray)):
            return [self._key(key) for key in found]
        return [self._key(found)]

    def _key(self, found: Any) -> str:
        if isinstance(found, (bool, np.bool_)) or not isinstance(found, (str, int, np.integer)) or found == "":
            raise ValueError(f"{self.labels!r} has {found!r:.40}; expected label keys: a list, or one string")
        return str(found)


def read_records(
    source: Source,
    *,
    format: str | None = None,
    text: str = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    skip_bad: bool = False,
) -> Records:
    """Reads all texts and labels of a file into memory; the arguments are those of `iter_records`.

    >>> import io
    >>> found = read_records(io.BytesIO(b"__label__socks red wool"), format="fasttext")
    >>> found.texts, found.labels
    (['red wool'], [['socks']])
    """
    skipped: list[str] = []
    on_bad = skipped.append if skip_bad else None
    rows = list(iter_records(source, format=format, text=text, labels=labels, separator=separator, on_bad=on_bad))
    return Records([row[0] for row in rows], [row[1] for row in rows], len(skipped))


def iter_records(
    source: Source,
    *,
    format: str | None = None,
    text: str = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    on_bad: Callable[[str], object] | None = None,
) -> Iterator[Record]:
    """Yields (text, label keys) row by row.

    format:    "jsonl", "csv", "tsv" or "parquet"; None: by the file's name. Or lines as other programs write them:
               "fasttext" (`__label__a words`), "pecos" (`a,b<TAB>text`), "annif" (`text<TAB><a> <b>`).
    text, labels: the columns. labels=None: there are none, every list is empty. A CSV or TSV file without a header row
               has numbers for columns, from "1" on.
    separator: what stands between labels written in one string; None: a string is one label.
    on_bad:    called with a message for every bad row, which is left out; None: the first is a DataError.
    """
    if separator == "":
        raise SettingsError(
            "separator is empty; expected the character between labels (--separator), or None if there is one label."
        )
    columns = _Columns(text=text, labels=labels, separator=separator)
    yield from _taken(source, format, columns, columns.record, on_bad)


def iter_texts(
    source: Source,
    *,
    format: str | None = None,
    text: str = "text",
    id: str | None = None,
    on_bad: Callable[[str], object] | None = None,
    gauge: Gauge | None = None,
) -> Iterator[Named]:
    """Yields (text, id) row by row; the id is what the column `id` holds, None where no column is named.

    gauge: is told which share of the file has been read. The rest is as in `iter_records`.
    """
    columns = _Columns(text=text, id=id)
    yield from _taken(source, format, columns, columns.named, on_bad, gauge)


def _taken(
    source: Source,
    format: str | None,
    columns: _Columns,
    take: Callable[[Any], Row],
    on_bad: Callable[[str], object] | None,
    gauge: Gauge | None = None,
) -> Iterator[Row]:
    """What `take` makes of every row of a file."""
    kind = format or format_of(source)
    readers = {"jsonl": _jsonl, "csv": _csv(","), "tsv": _csv("\t"), "parquet": _parquet}
    readers |= {name: _of_lines(split) for name, split in LINE_FORMATS.items()}
    if kind not in readers:
        raise SettingsError(
            f"format is {kind!r}; expected one of {', '.join(readers)}. Say which with format (--format)."
        )
    name = name_of(source)
    with opened(source, gauge) as stream:
        for place, row in readers[kind](stream, columns, name):
            try:
                if isinstance(row, ValueError):
                    raise row
                taken = take(row)
            except ValueError as error:
                message = f"{name}, {place}: {error}"
                if on_bad is None:
                    raise DataError(f"{message}. {SKIP_BAD}") from error
                on_bad(message)
            else:
                yield taken


# A reader yields (where, row or what is wrong with it), so that one place decides what happens to bad rows.
Found = Iterator[tuple[str, "dict[str, Any] | ValueError"]]


def _jsonl(stream: BinaryIO, columns: _Columns, name: str) -> Found:
    for number, line in bounded_lines(stream):
        if line is None:
            yield f"line {number}", ValueError(f"it has more than {LONGEST_LINE:,} bytes; expected fewer")
        elif line.strip():
            yield f"line {number}", _json_row(line, columns)


def _of_lines(split: Callable[[str], Line]) -> Callable[[BinaryIO, _Columns, str], Found]:
    """A reader of lines that another program writes; they have a text and labels, and no columns."""

    def read(stream: BinaryIO, columns: _Columns, name: str) -> Found:
        for number, line in bounded_lines(stream):
            place = f"line {number}"
            try:
                if line is None:
                    raise ValueError(f"it has more than {LONGEST_LINE:,} bytes; expected fewer")
                if line.strip():
                    labels, text = split(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"))
                    yield place, {columns.text: text, columns.labels or "": labels}
            except UnicodeDecodeError as error:
                yield place, ValueError(f"byte {error.start + 1} is not UTF-8; expected UTF-8")
            except ValueError as error:
                yield place, error

    return read


_NAMED = "or what --text-column and --labels-column name"
_decode_json = json.JSONDecoder().raw_decode  # without the looking round of json.loads, which takes half of its time


def _json_row(line: bytes, columns: _Columns) -> dict[str, Any] | ValueError:
    try:
        text = line.decode().removeprefix("\ufeff").strip(" \t\r\n")
        row, end = _decode_json(text)
        if end != len(text):
            row = json.loads(text)  # says what is wrong
    except UnicodeDecodeError as error:
        return ValueError(f"byte {error.start + 1} is not UTF-8; expected UTF-8")
    except json.JSONDecodeError as error:
        return ValueError(f"it is no JSON ({error.msg}, column {error.colno}); expected one JSON object per line")
    except RecursionError:
        return ValueError("it is nested too deeply; expected one flat object")
    if not isinstance(row, dict):
        return ValueError(f"it is {row!r:.40}; expected one JSON object per line")
    missing = [key for key in columns.used if key not in row]
    if missing:
        return ValueError(f"it has no {missing[0]!r} among {sorted(row)!r:.80}; expected it in every object, {_NAMED}")
    return row


def _csv(delimiter: str) -> Callable[[BinaryIO, _Columns, str], Found]:
    def read(stream: BinaryIO, columns: _Columns, name: str) -> Found:
        # The limit is the process's; only ever raised, so that a long text is not an error.
        csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))
        lines, begun = _Decoded(stream, name), list[str]()
        mark = delimiter if delimiter != "," else _comma_or_semicolon(lines, begun, columns)
        rows = _csv_rows(csv.reader(chain(begun, lines), delimiter=mark), lines)
        start, header = next(rows, (1, None))
        if header is None:
            raise DataError(f"{name}: the file is empty; expected a first row with the names of the columns.")
        if isinstance(header, csv.Error):
            raise DataError(
                f"{name}, line {start}: cannot be read as CSV ({header}); expected the names of the columns."
            ) from header
        like, above = "the header", []
        if _is_data(header, columns):
            like, above, header = "the first row", header, [str(place) for place in range(1, len(header) + 1)]
        _require(columns, header, name)
        if above:
            yield f"line {start}", _csv_row(above, header, like)
        for start, row in rows:
            if isinstance(row, csv.Error):
                yield f"line {start}", ValueError(f"it cannot be read ({row}); expected CSV")
            else:
                yield f"line {start}", _csv_row(row, header, like)

    return read


def _csv_rows(reader: Any, lines: _Decoded) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Rows that are not empty, or what is wrong with one, each with the number of the line that it begins in."""
    while True:
        start = reader.line_num + 1
        lines.taken = 0
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row = error
        if row:
            yield start, row


def _is_data(first: list[str], columns: _Columns) -> bool:
    """Whether a table has no header: its columns are asked for by number, and the first row is none of numbers that
    data frames without names of their own write, from 0 on or those that are asked for."""
    names = set(first)
    framed = names == {str(place) for place in range(len(first))}
    numbered = all(cell.isdigit() for cell in first) and (framed or names.issuperset(columns.used))
    return bool(columns.numbers) and not numbered


def _comma_or_semicolon(lines: Iterator[str], begun: list[str], columns: _Columns) -> str:
    """A semicolon where the first row has the asked columns only so: what spreadsheets write in half of Europe.

    begun: the lines that were read for it are put there.
    """

    def first_row(mark: str) -> list[str]:
        read = chain(tuple(begun), _kept(islice(lines, _HEADER_LINES), begun))
        try:
            return next((row for row in csv.reader(read, delimiter=mark) if row), [])
        except csv.Error:  # the reader of all rows says what is wrong
            return []

    commas, asked = first_row(","), set(columns.used)
    if _is_data(commas, columns):
        fits = len(commas) < max(columns.numbers) and len(commas) < len(first_row(";"))
    else:
        fits = not asked <= set(commas) and asked <= set(first_row(";"))
    return ";" if fits else ","


def _kept(lines: Iterator[str], kept: list[str]) -> Iterator[str]:
    for line in lines:
        kept.append(line)
        yield line


class _Decoded:
    """Lines as str; bytes that are not UTF-8 become lone surrogates, which `_csv_row` finds.

    taken: bytes since the row began. A quote that is never closed would make one row of the rest of the file.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._lines, self._name, self.taken = bounded_lines(stream), name, 0

    def __iter__(self) -> _Decoded:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        self.taken += len(line or b"")
        if line is None or self.taken > LONGEST_LINE:
            raise DataError(
                f"{self._name}, line {number}: belongs to a row of more than {LONGEST_LINE:,} bytes; expected less. "
                "Look for a quote that is not closed."
            )
        return line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")


def _csv_row(row: list[str], header: list[str], like: str) -> dict[str, Any] | ValueError:
    if len(row) != len(header):
        cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
        return ValueError(f"it has {cells}; expected {len(header)} like {like}")
    if any("\udc80" <= c <= "\udcff" for cell in row if not cell.isascii() for c in cell):
        return ValueError("it has bytes that are not UTF-8; expected UTF-8")
    return dict(zip(header, row, strict=True))


def pyarrow() -> tuple[Any, Any]:
    """pyarrow and its Parquet, or an error that says how to install them."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
        import pyarrow.parquet as pq  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise DataError(f"Parquet needs pyarrow, which is not installed. {install('parquet')}") from None
    return pa, pq


def _parquet(stream: BinaryIO, columns: _Columns, name: str) -> Found:
    pa, pq = pyarrow()
    try:
        file = pq.ParquetFile(stream if _can_seek(stream) else io.BytesIO(stream.read()))
        _require(columns, file.schema_arrow.names, name)
        number = 0
        for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, columns=columns.used):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except (pa.ArrowException, UnicodeDecodeError, OverflowError, OSError) as error:
        raise DataError(
            f"{name}: cannot be read as Parquet ({error!s:.200}); expected a valid file. Write it again."
        ) from error


def _can_seek(stream: BinaryIO) -> bool:
    return stream.seekable()


def _require(columns: _Columns, header: list[str], name: str) -> None:
    for column in columns.used:
        if header.count(column) != 1:
            found = "twice" if column in header else "nowhere"
            raise DataError(
                f"{name}: column {column!r} is {found} among {', '.join(map(repr, header))[:200]}; "
                f"expected it once. {hint(header)}Say which columns hold what (--text-column, --labels-column, "
                "--id-column): by name, or all by number, from 1 on, if a CSV or TSV file has no header."
            )
