"""label_table.py — label keys in, ids out, and back: which label is column j, and what people call it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import as_strings, is_column, plain_column
from beamwood.inputs.sources import Source, name_of, text_lines


@dataclass(frozen=True)
class LabelTable:
    """Labels 0..L-1, each with a key that is unique and a name for people (the key, unless one is given).

    Tables made from seen labels are in the order of the keys' code points, so the ids do not depend on the
    order of the rows. Tables read from a file keep the file's order.

    >>> table = LabelTable.from_labels([["wool", "socks"], ["boots"]])
    >>> table.keys, table.matrix([["wool"]]).toarray().tolist()
    (('boots', 'socks', 'wool'), [[0.0, 0.0, 1.0]])
    """

    keys: tuple[str, ...]
    names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Checks that keys are unique strings and that names fit them."""
        object.__setattr__(self, "keys", tuple(as_strings(self.keys, "keys")))
        object.__setattr__(self, "names", tuple(as_strings(self.names, "names")) or self.keys)
        if len(self.names) != len(self.keys):
            raise DataError(
                f"there are {len(self.keys):,} label keys and {len(self.names):,} names; expected one name per key."
            )
        for what in (*self.keys, *self.names):
            if not isinstance(what, str):
                raise DataError(f"a label key or name is {what!r:.40}; expected a str.")
        if len(self._ids) != len(self.keys):
            raise DataError(f"label key {_first_repeated(self.keys)!r} is there twice; expected each key once.")

    @staticmethod
    def from_labels(labels: Iterable[Iterable[str]]) -> LabelTable:
        """The table of all labels seen in some rows, keys sorted."""
        seen: set[str] = set()
        for row in as_label_keys(labels):
            seen.update(row)
        return LabelTable(tuple(sorted(seen)))

    @staticmethod
    def from_file(source: Source) -> LabelTable:
        """Reads a label a line: `key`, or `key<TAB>name` (names may hold further tabs). Ids: file order."""
        rows = _label_lines(source)
        return LabelTable(tuple(key for key, _ in rows), tuple(name for _, name in rows))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `key<TAB>name` lines that `from_file` reads back."""
        for key, name in zip(self.keys, self.names, strict=True):
            if not key or any(c in key for c in "\t\n\r") or any(c in name for c in "\n\r"):
                raise DataError(
                    f"label {key!r:.60} cannot be written; expected a key with letters but no tab or line end, "
                    "a name without line ends."
                )
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{key}\t{name}\n" for key, name in zip(self.keys, self.names, strict=True))

    def __len__(self) -> int:
        """How many labels there are."""
        return len(self.keys)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def id_of(self, key: str) -> int:
        """The id of one label."""
        try:
            return self._ids[key]
        except KeyError:
            raise DataError(f"label is {key!r:.60}; expected one of the {len(self):,} known labels.") from None

    def with_names(self, names: Mapping[str, str]) -> LabelTable:
        """The same labels, with names for the keys that are in the mapping."""
        if not isinstance(names, Mapping):
            raise DataError(f"names is a {type(names).__name__}; expected a mapping from label keys to names.")
        return LabelTable(self.keys, tuple(names.get(key, old) for key, old in zip(self.keys, self.names, strict=True)))

    def matrix(self, labels: Iterable[Iterable[str]], unknown: Literal["error", "skip"] = "error") -> sp.csr_array:
        """Rows x labels, csr float32 of ones. A label that is not in the table is an error, or left out."""
        if unknown not in ("error", "skip"):
            raise SettingsError(f'unknown is {unknown!r}; expected "error" or "skip".')
        ids, starts, known = [], [0], self._ids
        for number, row in enumerate(as_label_keys(labels)):
            found = {known.get(key, -1): key for key in row}
            if -1 in found and unknown == "error":
                raise DataError(
                    f"row {number} has the label {found[-1]!r:.60}; expected one of the {len(self):,} known "
                    'labels. Correct it, or leave such labels out with unknown="skip".'
                )
            found.pop(-1, None)
            ids.extend(sorted(found))
            starts.append(len(ids))
        made = sp.csr_array(
            (
                np.ones(len(ids), dtype=np.float32),
                np.asarray(ids, dtype=np.int32),
                np.asarray(starts, dtype=np.int64),
            ),
            shape=(len(starts) - 1, len(self)),
        )
        made.has_canonical_format = True
        return made


def as_label_keys(labels: Any) -> list[list[str]]:
    """A list of label keys per row: of any iterables, also those that can be read only once."""
    if isinstance(labels, (str, bytes)) or not is_column(labels):
        raise DataError(f"labels is a {type(labels).__name__}; expected a list of label keys per row, like [['wool']].")
    rows: list[list[str]] = []
    for number, row in enumerate(plain_column(labels)):
        if isinstance(row, str):
            raise DataError(
                f"the labels of row {number} are one string; expected a list of label keys. Give [{row!r:.40}]."
            )
        if isinstance(row, (bytes, Mapping)) or not isinstance(row, Iterable):
            raise DataError(f"the labels of row {number} are a {type(row).__name__}; expected a list of label keys.")
        rows.append(list(row))
        for key in rows[-1]:
            if not isinstance(key, str):
                raise DataError(
                    f"row {number} has the label {key!r:.40}, a {type(key).__name__}; expected strings. "
                    "Turn label keys into strings first."
                )
    return rows


def _first_repeated(keys: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _label_lines(source: Source) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for number, text in text_lines(source):
        key, _, name = text.partition("\t")
        if not key:
            raise DataError(
                f"{name_of(source)}, line {number} is {text[:40]!r}; expected `key` or `key<TAB>name`. "
                "Give every label a key."
            )
        rows.append((key, name or key))
    return rows
