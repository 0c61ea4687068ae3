"""strings.py — tables of keys and names in, those of fewer, more or renamed labels out. Bytes are moved, not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import FormatError
from beamwood.storage.label_strings import LabelStrings
from beamwood.storage.strings import StringTable

Ints = npt.NDArray[np.int64]

Array = npt.NDArray[Any]
TABLES = ("keys", "names")


def with_more(
    sections: Mapping[str, Array], labels: int, keys: Sequence[str] | None, names: Sequence[str] | None
) -> dict[str, Array]:
    """The tables with those of new labels behind the old ones; a label without a name is called by its key."""
    made: dict[str, Array] = {}
    if keys is None:
        return made
    old = {name: StringTable.from_arrays(sections, name, labels) for name in TABLES}
    made |= joined(old["keys"], keys, "key", searchable=True).arrays("keys")
    if old["names"] is not None or names is not None:
        before = old["names"] if old["names"] is not None else old["keys"]
        made |= joined(before, keys if names is None else names, "name", searchable=False).arrays("names")
    return made


def joined(old: StringTable | None, more: Sequence[str], what: str, *, searchable: bool) -> StringTable:
    """A table with further strings at its end."""
    new = StringTable.of(more, what, searchable=False)
    if old is None:
        return StringTable.of(more, what, searchable=searchable)
    blob = np.concatenate([np.asarray(old.blob, np.uint8), new.blob])
    offsets = np.concatenate([old.offsets, new.offsets[1:] + old.offsets[-1]]).astype(np.uint64)
    return StringTable(blob, offsets).indexed(what) if searchable else StringTable(blob, offsets)


def with_fewer(sections: Mapping[str, Array], stays: npt.NDArray[np.bool_]) -> dict[str, Array]:
    """The tables of the labels that stay."""
    made: dict[str, Array] = {}
    for name in TABLES:
        old = StringTable.from_arrays(sections, name, len(stays))
        if old is None:
            continue
        ends: Ints = old.offsets.astype(np.int64)
        sizes: Ints = ends[1:] - ends[:-1]
        if (sizes < 0).any() or int(old.offsets[-1]) != len(old.blob):
            raise FormatError(f"The model is damaged: {name} lie outside their table. Get a fresh copy of its file.")
        blob = np.asarray(old.blob, np.uint8)[np.repeat(stays, sizes)]
        offsets = np.concatenate([[0], np.cumsum(sizes[stays])]).astype(np.uint64)
        table = StringTable(blob, offsets)
        made |= (table if old.slots is None else table.indexed(name)).arrays(name)
    return made


def renamed(strings: LabelStrings, labels: int, names: Mapping[int, str]) -> dict[str, Array]:
    """The table of names with some of them changed."""
    every = [names[label] if label in names else strings.name(label) for label in range(labels)]
    return StringTable.of(every, "name", searchable=False).arrays("names")
