"""filters.py — the labels that may be found in, an immutable filter out: built once, used by any search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.inputs.arguments import plain_column
from beamwood.inputs.matrices import is_sparse
from beamwood.storage import store

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
Leaves = tuple[npt.NDArray[Any], ...]  # for each tree the leaf of each label
Mark = tuple[int, ...]  # a checksum for each tree
Find = Callable[[list[str]], Ints]  # the label of each key, -1 for keys that no label has

_SHOWN = 5  # unknown keys that a message names


class Filter:
    """Which labels of one model may be found. Made by `Model.filter`; never changes; share it between threads."""

    def __init__(
        self, bits: Bits, labels: int, missing: tuple[str, ...], mark: Mark | None, bound: Bound | None
    ) -> None:
        """For make_filter and pickle: one bit for each label, and the model that it is for, or that model's mark."""
        self._bits, self._labels, self._missing = bits, labels, missing
        self._mark, self._bound = mark, bound
        self._allowed = int(np.unpackbits(bits).sum())

    @property
    def allowed(self) -> int:
        """How many labels are allowed."""
        return self._allowed

    @property
    def labels(self) -> int:
        """How many labels the model has."""
        return self._labels

    @property
    def missing(self) -> tuple[str, ...]:
        """Keys that no label of the model has, where they were ignored."""
        return self._missing

    def mask(self) -> Bools:
        """A truth value for each label: whether it is allowed."""
        return np.unpackbits(self._bits, count=self._labels).astype(bool)

    def __len__(self) -> int:
        """How many labels are allowed."""
        return self._allowed

    def native_for(self, leaves: Leaves, forest: _core.Forest) -> _core.Filter:
        """The native side, for the model that has these arrays; it must be the one that the filter was made for.

        A filter that came out of a pickle meets its model here: one with the same leaves.
        """
        bound = self._bound
        if bound is not None and same_arrays(bound.leaves, leaves):
            return bound.native
        if self._mark is None or self._mark != mark_of(leaves):
            raise SettingsError("The filter was made by another model. Make one with this model's filter(…).")
        self._bound = bound = Bound(leaves, native_filter(forest, self._bits, self._labels))
        return bound.native

    @property
    def nbytes(self) -> int:
        """The memory it takes: one bit for each label and each node."""
        return self._bits.nbytes + (0 if self._bound is None else int(self._bound.native.bytes))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle: the labels one bit each, and a mark by which it will know its model."""
        mark = mark_of(self._bound.leaves) if self._mark is None and self._bound is not None else self._mark
        return _unpickled, (self._bits.tobytes(), self._labels, self._missing, mark)

    def __copy__(self) -> Filter:
        """Itself: a filter never changes."""
        return self

    def __deepcopy__(self, memo: Any) -> Filter:
        """Itself, for the same reason."""
        return self

    def __repr__(self) -> str:
        return f"<beamwood.Filter: {self.allowed:,} of {self.labels:,} labels allowed>"


def _unpickled(bits: bytes, labels: int, missing: tuple[str, ...], mark: Mark) -> Filter:
    """The inverse of Filter.__reduce__."""
    if len(bits) != -(-labels // 8):
        raise FormatError(
            f"The pickled filter has {len(bits):,} bytes for {labels:,} labels. Make and pickle it again."
        )
    return Filter(np.frombuffer(bits, np.uint8), labels, missing, mark, None)


class Bound(NamedTuple):
    """A model's leaves, and a filter over its nodes."""

    leaves: Leaves
    native: _core.Filter


def same_arrays(some: Leaves, others: Leaves) -> bool:
    """Whether they are the same objects: how a model knows its own filters."""
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def mark_of(leaves: Leaves) -> Mark:
    """What tells models whose labels lie on other leaves apart, also from one process to another."""
    return tuple(store.hash_of(array) for array in leaves)


def native_filter(forest: _core.Forest, bits: Bits, labels: int) -> _core.Filter:
    """The filter over the nodes of a model."""
    return _core.Filter(forest, np.unpackbits(bits, count=labels))


def make_filter(
    forest: _core.Forest, leaves: Leaves, labels: int, find: Find, allow: Any, deny: Any, missing: str
) -> Filter:
    """The filter that lets through what is allowed (None: everything) and not denied (None: nothing)."""
    if missing not in ("error", "ignore"):
        raise SettingsError(f"missing={missing!r} is not known. Use 'error' or 'ignore'.")
    mask = np.ones(labels, bool)
    unknown: list[str] = []
    if allow is not None:
        mask, unknown = mask_of(allow, "allow", labels, find)
    if deny is not None:
        denied, more = mask_of(deny, "deny", labels, find)
        mask, unknown = mask & ~denied, unknown + more
    if unknown and missing == "error":
        raise DataError(unknown_keys(unknown))
    bits = np.packbits(mask)
    return Filter(bits, labels, tuple(unknown), None, Bound(leaves, native_filter(forest, bits, labels)))


def mask_of(given: Any, name: str, labels: int, find: Find) -> tuple[Bools, list[str]]:
    """Keys, label numbers or truth values as one truth value per label; and the keys that no label has."""
    values = as_array(given, name)
    if values.dtype.kind == "b":
        if values.shape != (labels,):
            raise DataError(
                f"{name} has {len(values):,} truth values; expected {labels:,}, one per label of the model."
            )
        return values, []
    unknown: list[str] = []
    if values.dtype.kind == "O":
        keys = values.tolist()
        values = find(keys)
        unknown = [keys[i] for i in np.flatnonzero(values < 0)]
        values = values[values >= 0]
    outside = (values < 0) | (values >= labels)
    if outside.any():
        raise DataError(
            f"{name} has the label {values[outside][0]}; expected 0 to {labels - 1:,}, the labels of the model."
        )
    mask = np.zeros(labels, bool)
    mask[values] = True
    return mask, unknown


def as_array(given: Any, name: str) -> npt.NDArray[Any]:
    """What was given as an array of truth values, of integers, or (dtype object) of strings."""
    expected = "expected a list of label keys, an array of label numbers or one truth value per label."
    if isinstance(given, (str, bytes, dict)) or is_sparse(given) or _endless(given) or not isinstance(given, Iterable):
        found = f"{name} is {given!r:.80}" if isinstance(given, (str, bytes)) else f"{name} is a {type(given).__name__}"
        raise SettingsError(f"{found}; {expected}")
    array: npt.NDArray[Any]
    if isinstance(given, np.ndarray):
        array = given
    else:
        values = plain_column(given)
        kinds = set(map(type, values))
        if str in kinds or (bool in kinds and len(kinds) > 1):
            return as_keys(values, name, expected)
        try:
            array = np.array(values) if values else np.zeros(0, np.int64)
        except ValueError:
            raise SettingsError(f"{name} has lists of different lengths; {expected}") from None
    if array.ndim != 1 or array.dtype.kind not in "biuUTO":
        raise SettingsError(f"{name} is an array of shape {array.shape} and dtype {array.dtype}; {expected}")
    return as_keys(array.tolist(), name, expected) if array.dtype.kind in "UTO" else array


def _endless(given: Any) -> bool:
    """Whether it is a range of more numbers than there are labels anywhere."""
    return isinstance(given, range) and len(given) >= 2**31


def as_keys(values: list[Any], name: str, expected: str) -> npt.NDArray[np.object_]:
    """Only strings."""
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise SettingsError(f"{name}[{i}] is {value!r:.80} among other things; {expected}")
    keys = np.empty(len(values), object)
    keys[:] = values
    return keys


def unknown_keys(keys: list[str]) -> str:
    """What to say of keys that no label has."""
    shown = ", ".join(map(repr, keys[:_SHOWN])) + ", …" * (len(keys) > _SHOWN)
    what = "1 key is" if len(keys) == 1 else f"{len(keys):,} keys are"
    return f"{what} not among the model's labels: {shown}. Leave them out, or pass missing='ignore'."
