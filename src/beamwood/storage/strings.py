"""strings.py — many strings in, three arrays out that are searched where they lie: they cost nothing at start-up.

A table is a blob of UTF-8 bytes, the offset of each string in it, and, where strings are looked up, open-addressing
slots (string number + 1, or 0) that are entered at the XXH3-64 of the bytes (native/include/beamwood/strings.hpp).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, FormatError
from beamwood.inputs.arguments import as_strings, cores
from beamwood.storage.store import check_intact

Array = npt.NDArray[Any]


class StringTable:
    """Strings by number, and numbers by string when it has slots."""

    def __init__(self, blob: Array, offsets: Array, slots: Array | None = None) -> None:
        self.blob, self.offsets, self.slots = blob, offsets, slots

    @classmethod
    def of(cls, strings: Sequence[str], what: str, *, searchable: bool) -> StringTable:
        """A new table; with searchable=True the strings must be unique."""
        every = tuple(strings)
        good, blob, offsets = _core.pack_strings(every)
        if good < len(every):
            raise DataError(not_utf8(every[good], f"{what} {good}"))
        table = cls(blob, offsets)
        return table.indexed(what) if searchable else table

    def indexed(self, what: str) -> StringTable:
        """The same table with slots, in which strings are looked up: they must be unique."""
        slots, first, second = _core.key_slots(self.blob, self.offsets, cores())
        if slots is None:
            raise DataError(
                f"{what} {second} is {self[second]!r}, the same as {what} {first}. Each must be unique: give keys "
                "of their own."
            )
        return StringTable(self.blob, self.offsets, slots)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def bytes_at(self, i: int) -> bytes:
        """The bytes of string i; offsets may come from a damaged file and are checked."""
        start, end = int(self.offsets[i]), int(self.offsets[i + 1])
        if not start <= end <= len(self.blob):
            raise FormatError(f"The model is damaged: string {i} lies outside its table. Get a fresh copy of the file.")
        found = self.blob[start:end].tobytes()
        if not any(found):  # nothing, or zeros: what a file that was cut gives
            check_intact({"blob": self.blob, "offsets": self.offsets})
        return found

    def __getitem__(self, i: int) -> str:
        return self.bytes_at(i).decode("utf-8", errors="replace")

    def find(self, text: str) -> int | None:
        """The number of a string, or None."""
        (found,) = self.find_many([text])
        return None if found < 0 else int(found)

    def find_many(self, texts: list[str]) -> npt.NDArray[np.int64]:
        """The number of each string, -1 for those that are not there."""
        found = np.full(len(texts), -1, np.int64)
        if self.slots is not None:
            _core.find_keys(self.blob, self.offsets, self.slots, texts, found)
            check_intact({"slots": self.slots})
        return found

    def arrays(self, name: str) -> dict[str, Array]:
        """The arrays as they are named in a model."""
        arrays = {f"{name}/blob": self.blob, f"{name}/offsets": self.offsets}
        return arrays if self.slots is None else arrays | {f"{name}/slots": self.slots}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], name: str, count: int) -> StringTable | None:
        """The table of that name among a model's arrays, if there is one."""
        if f"{name}/offsets" not in arrays:
            if f"{name}/blob" in arrays or f"{name}/slots" in arrays:
                raise FormatError(f"The model is damaged: {name} has no offsets. Get a fresh copy of its file.")
            return None
        offsets = arrays[f"{name}/offsets"]
        if len(offsets) != count + 1:
            raise FormatError(
                f"The model is damaged: {name} has {len(offsets) - 1:,} strings, but there are {count:,} labels."
            )
        blob, slots = arrays.get(f"{name}/blob", np.zeros(0, np.uint8)), arrays.get(f"{name}/slots")
        valid = blob.dtype == np.uint8 and offsets.dtype == np.uint64
        if not valid or (slots is not None and (slots.dtype != np.uint32 or len(slots) <= count)):
            raise FormatError(f"The model is damaged: the arrays of {name} do not fit. Get a fresh copy of its file.")
        return cls(blob, offsets, slots)


def not_utf8(text: object, what: str) -> str:
    """Why something cannot be stored as UTF-8."""
    if not isinstance(text, str):
        return f"{what} is {text!r:.80}; expected a str."
    return f"{what} is {text!r:.80}, which is not valid Unicode (a lone surrogate). Mend or drop it."


def string_sections(names: Sequence[str] | None, keys: Sequence[str] | None, labels: int) -> dict[str, Array]:
    """The tables of keys and names; names that are the keys are stored once."""
    names = None if names is None else as_strings(names, "names", f"{labels:,} ")
    keys = None if keys is None else as_strings(keys, "keys", f"{labels:,} ")
    for what, strings in (("names", names), ("keys", keys)):
        if strings is not None and len(strings) != labels:
            raise DataError(f"There are {len(strings):,} {what}; expected {labels:,}, one for each label.")
    if keys is None:
        return {} if names is None else StringTable.of(names, "name", searchable=True).arrays("keys")
    sections = StringTable.of(keys, "key", searchable=True).arrays("keys")
    if names is not None:
        sections |= StringTable.of(names, "name", searchable=False).arrays("names")
    return sections


def native_strings(table: StringTable | None) -> Any:
    """The table as native code reads it."""
    return None if table is None else _core.Strings(table.blob, table.offsets)
