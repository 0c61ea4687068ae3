"""rows.py — a data file as the command line gives it in, blocks of texts or sparse rows with their ids out.

The law: where blocks end depends on the file and on k, on nothing else; so a run that goes on after a kill asks the
same blocks as an undisturbed one. A block is bounded in rows, in bytes of text and in answers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from beamwood import _core
from beamwood.batch.row_blocks import iter_rows
from beamwood.errors import SettingsError
from beamwood.inputs.records import iter_texts
from beamwood.inputs.sources import Gauge, text_lines

_MOST_ROWS = 8192
_MOST_ANSWERS = 1 << 20  # rows x k
_MOST_LETTERS = 1 << 22  # of all texts of a block
_EDGE = 1 << 20  # bytes at each end of a file that are looked at to know it again


@dataclass(frozen=True)
class Block:
    """Some rows: texts, or a matrix; their ids where asked for; and which share of the file has been read."""

    asked: Any
    ids: list[Any] | None
    share: float | None
    skipped: int = 0  # bad rows so far

    def __len__(self) -> int:
        return len(self.asked) if isinstance(self.asked, list) else int(self.asked.shape[0])


def rows_per_block(k: int) -> int:
    """How many rows are asked at a time."""
    return max(1, min(_MOST_ROWS, _MOST_ANSWERS // k))


def blocks(given: Any, features: int, k: int, id_column: str | None) -> Iterator[Block]:
    """All rows of the data. given: what the command line says of it (cli/support/given.py)."""
    if id_column is not None and (not given.is_text or given.kind == "lines"):
        raise SettingsError(
            f"--id-column is {id_column} and {given.name} has no columns; expected JSONL, CSV, TSV or Parquet. "
            "Leave it out: every answer has the number of its row."
        )
    made = _texts(given, k, id_column) if given.is_text else _numbers(given, features, k)
    return _ahead(made) if _is_file(given.data) else made


def _texts(given: Any, k: int, id_column: str | None) -> Iterator[Block]:
    gauge = Gauge()
    rows: Iterator[tuple[str, Any]]
    if given.kind == "lines":
        rows = ((text, None) for _, text in text_lines(given.data, gauge))
    else:
        bad = given.count_bad if given.skip_bad else None
        how = {"format": given.kind, "text": given.text_column, "id": id_column, "on_bad": bad, "gauge": gauge}
        rows = iter_texts(given.data, **how)
    most = rows_per_block(k)
    while True:
        texts: list[str] = []
        ids: list[Any] = []
        letters = 0
        for text, named in islice(rows, most):
            texts.append(text)
            ids.append(named)
            letters += len(text)
            if letters >= _MOST_LETTERS:
                break
        if not texts:
            return
        yield Block(texts, ids if id_column is not None else None, gauge.share(), given.skipped)


def _numbers(given: Any, features: int, k: int) -> Iterator[Block]:
    most = rows_per_block(k)
    if given.kind == "npz":
        X = given.rows(with_labels=False).X
        for first in range(0, X.shape[0], most):
            yield Block(X[first : first + most], None, min(1.0, (first + most) / X.shape[0]))
        return
    if given.kind == "svmlight" and not _is_file(given.data):  # it would have to be read twice
        X = given.rows(features=features, with_labels=False).X
        yield from (Block(X[first : first + most], None, None) for first in range(0, X.shape[0], most))
        return
    gauge = Gauge()
    for X, bad in iter_rows(given.data, given.kind, features, skip_bad=given.skip_bad, gauge=gauge):
        given.skipped = bad
        for first in range(0, X.shape[0], most):
            yield Block(X[first : first + most], None, gauge.share(), bad)


def _ahead(made: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the next one is read while the last one is asked."""
    with ThreadPoolExecutor(1, "rows") as reader:
        coming = reader.submit(next, made, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, made, None)
            yield block


def _is_file(data: str | None) -> bool:
    """Whether it can be read again from its start."""
    try:
        return data is not None and data != "-" and stat.S_ISREG(os.stat(data).st_mode)
    except (OSError, ValueError):
        return False


def known_by(given: Any) -> dict[str, Any] | None:
    """What a data file is known by: size, time, bytes at both ends. None for what cannot be read a second time."""
    path = str(given.x) if given.x is not None else given.data
    if not _is_file(path):
        return None
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        edges = file.read(_EDGE)
        file.seek(max(0, about.st_size - _EDGE))
        edges += file.read(_EDGE)
    seen = f"{_core.xxh3_64(np.frombuffer(edges, np.uint8)):016x}"
    return {"bytes": about.st_size, "changed": about.st_mtime_ns, "edges": seen}
