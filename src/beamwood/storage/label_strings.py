"""label_strings.py — a label's number in, its key and name out; and back."""

from __future__ import annotations

import difflib
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError
from beamwood.inputs.arguments import is_column, one_by_one
from beamwood.storage.parts import ModelParts
from beamwood.storage.strings import StringTable, native_strings

_MOST_COMPARED, _LONGEST_COMPARED = 100_000, 100  # labels and letters that are looked through for a slip


class LabelStrings:
    """The keys and names of a model's labels, read where they lie. Labels without a key are called by their number."""

    def __init__(self, parts: ModelParts) -> None:
        self._labels = parts.shape.labels
        self._keys = StringTable.from_arrays(parts.sections, "keys", self._labels)
        self._names = StringTable.from_arrays(parts.sections, "names", self._labels)
        self.native: tuple[Any, Any] = native_strings(self._keys), native_strings(self._names)

    @property
    def has_keys(self) -> bool:
        """Whether labels are called by keys; else by their numbers."""
        return self._keys is not None

    def key(self, label: int) -> str:
        """The unique key of a label; its number when the model has no keys."""
        label = self.checked(label)
        return str(label) if self._keys is None else self._keys[label]

    def name(self, label: int) -> str:
        """What people read for a label; its key when the model has no names."""
        return self.key(label) if self._names is None else self._names[self.checked(label)]

    def find(self, key: str) -> int | None:
        """The label with this key, or None."""
        if not isinstance(key, str):
            raise DataError(f"key is a {type(key).__name__}; expected a string. For a label's number use key(label).")
        if self._keys is not None:
            return self._keys.find(key)
        return int(key) if key.isascii() and key.isdecimal() and int(key) < self._labels else None

    def find_many(self, keys: list[str]) -> npt.NDArray[np.int64]:
        """The label of each key, -1 for keys that no label has."""
        if self._keys is not None:
            return self._keys.find_many(keys)
        return np.array([-1 if found is None else found for found in map(self.find, keys)], np.int64)

    def number(self, label: str | int) -> int:
        """The number of a label given by its key or number."""
        if not isinstance(label, str):
            return self.checked(label)
        found = self.find(label)
        if found is None:
            raise DataError(f"{label!r} is no label's key; expected one of the model's. {self._nearest(label)}")
        return found

    def _nearest(self, key: str) -> str:
        """Advice for a key that no label has: the one that was likely meant, looked for in small models only."""
        if self._keys is not None and self._labels <= _MOST_COMPARED and len(key) <= _LONGEST_COMPARED:
            keys = {self._keys[label].lower(): self._keys[label] for label in range(self._labels)}
            near = [each for each in keys if abs(len(each) - len(key)) <= 2]  # what differs more is no slip
            close = difflib.get_close_matches(key.lower(), near, n=1, cutoff=0.8)
            if close:
                return f"Did you mean {keys[close[0]]!r}?"
        return "Keys are what search shows."

    def checked(self, label: int) -> int:
        """The number of a label that exists."""
        try:
            number = operator.index(label)
        except TypeError:
            raise DataError(f"label is a {type(label).__name__}; expected the number of a label, or its key.") from None
        if not 0 <= number < self._labels:
            raise DataError(
                f"Label {label} does not exist; expected a number from 0 to {self._labels - 1:,}. The model has "
                f"{self._labels:,} labels."
            )
        return number


def given_labels(labels: Any, rows: int, strings: LabelStrings, count: int) -> npt.NDArray[np.int64]:
    """Keys or numbers for all rows, or a matrix of numbers for each, as one row of numbers per row; -1 is no label."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        if labels.dtype.kind not in "iu" or len(labels) != rows:
            raise DataError(
                f"labels has shape {labels.shape} and dtype {labels.dtype}; expected label numbers in {rows:,} rows, "
                "one per row of X. Give what topk returned, or a list of keys."
            )
        outside = (labels < -1) | (labels >= count)
        if outside.any():
            raise DataError(
                f"labels has {labels[outside][0]}; expected numbers from 0 to {count - 1:,}, or -1 for none."
            )
        return np.ascontiguousarray(labels, np.int64)
    if isinstance(labels, (str, bytes)) or not (is_column(labels) or isinstance(labels, range)):
        raise DataError(
            f"labels is a {type(labels).__name__}; expected a list of label keys or numbers, or a matrix of numbers."
        )
    numbers = np.array([strings.number(label) for label in one_by_one(labels)], np.int64)
    return np.ascontiguousarray(np.broadcast_to(numbers, (rows, len(numbers))))
