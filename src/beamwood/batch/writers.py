"""writers.py — labels and scores of blocks of rows in, the bytes of a JSONL, CSV, TSV, Parquet or npz file out.

Lines are written as they come. Parquet and npz know only at the end what stands at their start: for these, blocks are
gathered as they are (spool.py) and made into the file once all are there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from beamwood import _core
from beamwood.batch.spool import Spool
from beamwood.errors import DataError, SettingsError
from beamwood.storage.label_strings import LabelStrings
from beamwood.storage.strings import not_utf8

_BETWEEN = {"jsonl": "", "csv": ",", "tsv": "\t"}
_KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}


def kind_of(output: str) -> str:
    """The format that a file's name stands for."""
    path = Path(output)
    packed = path.suffix == ".gz"
    kind = _KINDS.get((path.with_suffix("") if packed else path).suffix.lower())
    if kind is None or (packed and kind not in _BETWEEN):
        raise SettingsError(
            f"{output} is a name that tells no format; expected one that ends in .jsonl, .csv, .tsv (each also .gz), "
            ".parquet or .npz. Give such a name with -o."
        )
    return kind


class Writer(Protocol):
    """Makes bytes of answers."""

    note: Any  # of what was written so far; a run that goes on is given it back

    def start(self) -> bytes: ...

    def block(self, first_row: int, labels: Any, scores: Any, ids: Sequence[Any] | None) -> bytes: ...

    def convert(self, gathered: BinaryIO, target: Path) -> None: ...


def writer_for(kind: str, model: Any, *, with_ids: bool, packed: bool, threads: int, k: int) -> Writer:
    """The writer of a format."""
    strings, probable = LabelStrings(model.parts), model.probability if model.is_calibrated else None
    if kind in _BETWEEN:
        return Lines(strings, _BETWEEN[kind], with_ids, packed, threads, probable)
    if kind == "npz" and with_ids:
        raise SettingsError(
            "--id-column is given and .npz holds only numbers; expected .jsonl, .csv, .tsv or .parquet, which carry "
            "ids. The rows of a .npz have the order of the data."
        )
    return Spool(kind, model.parts.sections, model.n_labels, k, with_ids, probable)


@dataclass
class Lines:
    """JSON: one object per row. CSV and TSV: one line per answer, and one without an answer for a row that has none.

    probable: makes probabilities of scores, where the model knows them.
    """

    strings: LabelStrings
    between: str
    with_ids: bool
    packed: bool
    threads: int
    probable: Callable[[Any], Any] | None = None
    note: Any = None

    def start(self) -> bytes:
        """The names of the columns, where there are columns."""
        if not self.between:
            return b""
        named = self.strings.native[1] is not None
        columns = ["id"] * self.with_ids + ["row", "rank", "key"] + ["name"] * named + ["score"]
        columns += ["probability"] * (self.probable is not None)
        return self._packed((self.between.join(columns) + "\n").encode())

    def block(self, first_row: int, labels: Any, scores: Any, ids: Sequence[Any] | None) -> bytes:
        """The lines of some rows; a block that is packed is a gzip member of its own."""
        named, quote = (None, False) if ids is None else _packed_ids(ids, json_text=not self.between)
        shown = None if self.probable is None else self.probable(scores)
        strings = (*self.strings.native, named, quote)
        return self._packed(_core.print_answers(labels, scores, first_row, *strings, self.between, self.threads, shown))

    def convert(self, gathered: BinaryIO, target: Path) -> None:
        """Nothing is left to do: the lines are the file."""
        raise NotImplementedError

    def _packed(self, lines: bytes) -> bytes:
        return gzip.compress(lines, compresslevel=6, mtime=0) if self.packed else lines


def _packed_ids(ids: Sequence[Any], json_text: bool) -> tuple[Any, bool]:
    """Ids as native strings, and whether they have still to be put into quotes."""
    strings = all(type(given) is str for given in ids)
    if strings:
        texts = tuple(ids)
    elif json_text:
        texts = tuple(json.dumps(given, ensure_ascii=False) for given in ids)
    else:
        texts = tuple("" if given is None else str(given) for given in ids)
    good, blob, offsets = _core.pack_strings(texts)
    if good < len(texts):
        raise DataError(not_utf8(ids[good], "an id"))
    return _core.Strings(blob, offsets), strings
