"""spool.py — blocks of answers in, the same blocks as plain bytes out; and of these a Parquet or npz file at the end.

A block is a head of two uint64 (rows, bytes of ids), labels (int32, rows x k), scores (float32, rows x k) and the ids
as a JSON list, where there are any. Never more than some blocks are in memory.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from beamwood.batch.arrow import LabelColumn, lists
from beamwood.errors import DataError, SettingsError
from beamwood.inputs.records import pyarrow
from beamwood.storage.build import Sections
from beamwood.storage.draft import draft_beside
from beamwood.storage.strings import not_utf8

_HEAD = 16
_ROWS_PER_GROUP = 1 << 17  # of a Parquet file


class Spool:
    """Gathers blocks; `note` is whether every id so far is a whole number."""

    def __init__(
        self,
        kind: str,
        sections: Sections,
        labels: int,
        k: int,
        with_ids: bool,
        probable: Callable[[Any], Any] | None = None,
    ) -> None:
        self._kind, self._sections, self._labels, self._k, self._with_ids = kind, sections, labels, k, with_ids
        self._probable = probable  # makes probabilities of scores, where the model knows them
        self.note: Any = True
        if kind == "parquet":
            pyarrow()  # says so now when it is missing

    def start(self) -> bytes:
        """A file starts with its first block."""
        return b""

    def block(self, first_row: int, labels: Any, scores: Any, ids: Sequence[Any] | None) -> bytes:
        """One block as bytes."""
        listed = b""
        if ids is not None:
            whole = all(type(i) is int and -(2**63) <= i < 2**63 for i in ids)
            self.note = bool(self.note) and whole
            listed = _listed(ids)
        head = np.array([len(labels), len(listed)], np.uint64)
        return b"".join((head.tobytes(), labels.astype(np.int32).tobytes(), scores.tobytes(), listed))

    def convert(self, gathered: BinaryIO, target: Path) -> None:
        """The target from all blocks."""
        with draft_beside(target) as draft:
            (self._npz if self._kind == "npz" else self._parquet)(gathered, draft)

    def _blocks(self, gathered: BinaryIO) -> Iterator[tuple[Any, Any, bytes]]:
        """(labels, scores, ids as JSON) of each block."""
        gathered.seek(0)
        while head := gathered.read(_HEAD):
            rows, size = np.frombuffer(head, np.uint64).tolist()
            cells = rows * self._k
            labels = np.frombuffer(gathered.read(4 * cells), np.int32).reshape(rows, self._k)
            scores = np.frombuffer(gathered.read(4 * cells), np.float32).reshape(rows, self._k)
            yield labels, scores, gathered.read(size)

    def _npz(self, gathered: BinaryIO, draft: BinaryIO) -> None:
        """What scipy.sparse.save_npz writes, uncompressed, one array after the other."""
        rows = found = 0
        for labels, _, _ in self._blocks(gathered):
            rows += len(labels)
            found += int((labels >= 0).sum())
        if not rows:
            raise SettingsError("there are no rows to write as a matrix; expected at least one.")
        number = np.dtype(np.int32 if max(found, self._labels) < 2**31 else np.int64)
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            _put(archive, "indices", number, found, lambda: self._each(gathered, lambda n, s: n[n >= 0].astype(number)))
            _put(archive, "indptr", number, rows + 1, lambda: self._starts(gathered, number))
            _put(archive, "format", np.dtype("S3"), None, lambda: iter([np.array(b"csr")]))
            _put(archive, "shape", np.dtype(np.int64), 2, lambda: iter([np.array([rows, self._labels])]))
            _put(archive, "data", np.dtype(np.float32), found, lambda: self._each(gathered, lambda n, s: s[n >= 0]))

    def _each(self, gathered: BinaryIO, take: Callable[[Any, Any], Any]) -> Iterator[Any]:
        return (take(labels, scores) for labels, scores, _ in self._blocks(gathered))

    def _starts(self, gathered: BinaryIO, number: Any) -> Iterator[Any]:
        yield np.zeros(1, number)
        before = 0
        for labels, _, _ in self._blocks(gathered):
            starts = before + np.cumsum((labels >= 0).sum(axis=1))
            before = int(starts[-1])
            yield starts.astype(number)

    def _parquet(self, gathered: BinaryIO, draft: BinaryIO) -> None:
        """Columns id, row, keys, names, scores and probabilities; a row's answers are lists."""
        pa, pq = pyarrow()
        called = [LabelColumn.keys(self._sections, self._labels)]
        if (names := LabelColumn.names(self._sections, self._labels)) is not None:
            called.append(names)
        whole = bool(self.note)
        fields = [("id", pa.int64() if whole else pa.string())] * self._with_ids + [("row", pa.int64())]
        fields += [(name, pa.list_(pa.large_string())) for name in ("keys", "names")[: len(called)]]
        numbers = ["scores"] + ["probabilities"] * (self._probable is not None)
        schema = pa.schema([*fields, *((name, pa.list_(pa.float32())) for name in numbers)])
        row = 0
        with pq.ParquetWriter(draft, schema) as writer:
            waiting: list[Any] = []
            for labels, scores, ids in self._blocks(gathered):
                columns = _id_column(pa, ids, whole) if self._with_ids else []
                columns += [
                    pa.array(np.arange(row, row + len(labels))),
                    *lists(called, labels, *self._numbers(scores)),
                ]
                waiting.append(pa.record_batch(columns, schema=schema))
                row += len(labels)
                if sum(map(len, waiting)) >= _ROWS_PER_GROUP:
                    writer.write_table(pa.Table.from_batches(waiting))
                    waiting.clear()
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting))

    def _numbers(self, scores: Any) -> list[Any]:
        """Scores, and probabilities of a model that knows them."""
        return [scores] if self._probable is None else [scores, self._probable(scores)]


def _put(
    archive: zipfile.ZipFile, name: str, dtype: Any, count: int | None, pieces: Callable[[], Iterator[Any]]
) -> None:
    """One array of the archive, piece by piece; count=None: a single value without a dimension."""
    member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: the same answers are the same file
    with archive.open(member, "w", force_zip64=True) as stream:
        head = {"descr": dtype.str, "fortran_order": False, "shape": () if count is None else (count,)}
        np.lib.format.write_array_header_1_0(stream, head)
        for piece in pieces():
            stream.write(np.ascontiguousarray(piece).tobytes())


def _listed(ids: Sequence[Any]) -> bytes:
    """Ids as a JSON list."""
    try:
        return json.dumps(list(ids), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        bad = next(i for i in ids if isinstance(i, str) and not i.isascii() and i.encode(errors="ignore").decode() != i)
        raise DataError(not_utf8(bad, "an id")) from None


def _id_column(pa: Any, listed: bytes, whole: bool) -> list[Any]:
    ids = json.loads(listed)
    if whole:
        return [pa.array(ids, pa.int64())]
    return [pa.array([i if i is None or isinstance(i, str) else json.dumps(i) for i in ids], pa.string())]
