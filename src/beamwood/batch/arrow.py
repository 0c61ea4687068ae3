"""arrow.py — ranked labels of rows in, Arrow columns of lists out: what they are called, where it lies in the model.

No string becomes one of Python's on the way: Arrow copies the bytes of those that were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import FormatError
from beamwood.inputs.records import pyarrow
from beamwood.storage.strings import StringTable


class LabelColumn:
    """What labels are called; `of` finds it for some of them.

    short: of Arrow's type string, for blocks of less than 2 GiB; else large_string.
    """

    def __init__(self, strings: Any, short: bool = False) -> None:
        self._strings = strings  # a large_string array, one per label; None: labels are called by their numbers
        self._short = short

    @classmethod
    def keys(cls, sections: Mapping[str, npt.NDArray[Any]], labels: int, short: bool = False) -> LabelColumn:
        """The unique keys; the numbers of labels that have none."""
        return cls(_strings(sections, "keys", labels), short)

    @classmethod
    def names(cls, sections: Mapping[str, npt.NDArray[Any]], labels: int) -> LabelColumn | None:
        """What people read, where that is not the key."""
        found = _strings(sections, "names", labels)
        return None if found is None else cls(found)

    def of(self, numbers: Any) -> Any:
        """The strings of an Arrow array of labels, one each."""
        pa, _ = pyarrow()
        found = numbers if self._strings is None else self._strings.take(numbers)
        return found.cast(pa.string() if self._short else pa.large_string())


def _strings(sections: Mapping[str, npt.NDArray[Any]], name: str, labels: int) -> Any:
    """A table of strings as an Arrow array of the model's own bytes, checked; None where there is none."""
    table = StringTable.from_arrays(sections, name, labels)
    if table is None:
        return None
    pa, _ = pyarrow()
    buffers = pa.py_buffer(np.ascontiguousarray(table.offsets)), pa.py_buffer(np.ascontiguousarray(table.blob))
    made = pa.LargeStringArray.from_buffers(labels, *buffers)
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"The model is damaged: its {name} ({error!s:.80}). Get a fresh copy of its file.") from None
    return made


def lists(columns: list[LabelColumn], labels: Any, *numbers_of: Any) -> list[Any]:
    """Columns of lists, an entry per row: what each column calls the labels found, and their scores, or other numbers.

    labels, numbers_of: n x k; labels padded with -1.
    """
    pa, _ = pyarrow()
    found = labels >= 0
    starts = np.zeros(len(labels) + 1, np.int32)
    np.cumsum(found.sum(axis=1), out=starts[1:])
    offsets, numbers = pa.array(starts), pa.array(labels[found])
    values = [column.of(numbers) for column in columns]
    values += [pa.array(each[found], pa.float32()) for each in numbers_of]
    return [pa.ListArray.from_arrays(offsets, each) for each in values]
