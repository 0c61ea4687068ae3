"""filters.py — the labels that may be found in, an immutable filter out: built once, used by any search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, FormatError, SettingsError

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Find = Callable[[list[str]], Ints]  # the label of each key, -1 for keys that no label has

_SHOWN = 5  # unknown keys that a message names


@dataclass(frozen=True, eq=False, repr=False)
class Filter:
    """Which labels of one model may be found. Made by `Model.filter`; never changes; share it between threads."""

    allowed: int
    labels: int
    missing: tuple[str, ...]  # keys that no label of the model has, where they were ignored
    _native: Any
    _leaves: tuple[Any, ...]  # the arrays of the model it was made for: how a model knows its own filters

    def __len__(self) -> int:
        """How many labels are allowed."""
        return self.allowed

    def native_for(self, leaves: tuple[Any, ...]) -> Any:
        """The native side, for the model that has these arrays; it must be the one that the filter was made for."""
        same = (one is other for one, other in zip(self._leaves, leaves, strict=False))
        if len(self._leaves) != len(leaves) or not all(same):
            raise SettingsError("The filter was made by another model. Make one with this model's filter(…).")
        return self._native

    @property
    def nbytes(self) -> int:
        """The memory it takes: one bit a node."""
        return int(self._native.bytes)

    def __repr__(self) -> str:
        return f"<beamwood.Filter: {self.allowed:,} of {self.labels:,} labels allowed>"


def make_filter(
    forest: Any, leaves: tuple[Any, ...], labels: int, find: Find, allow: Any, deny: Any, missing: str
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
    try:
        native = _core.Filter(forest, mask.view(np.uint8))
    except IndexError as error:
        raise FormatError(f"The model is damaged: {error}. Get a fresh copy of its file.") from None
    return Filter(int(mask.sum()), labels, tuple(unknown), native, leaves)


def mask_of(given: Any, name: str, labels: int, find: Find) -> tuple[Bools, list[str]]:
    """Keys, label numbers or truth values as one truth value a label; and the keys that no label has."""
    values = as_array(given, name)
    if values.dtype.kind == "b":
        if values.shape != (labels,):
            raise DataError(
                f"{name} has {len(values):,} truth values, but the model has {labels:,} labels. One for each is wanted."
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
            f"{name} holds label {values[outside][0]}, but the model has {labels:,} labels, numbered from 0."
        )
    mask = np.zeros(labels, bool)
    mask[values] = True
    return mask, unknown


def as_array(given: Any, name: str) -> npt.NDArray[Any]:
    """What was given as an array of truth values, of integers, or (dtype object) of strings."""
    wanted = "A list of label keys, an array of label numbers or a truth value for each label is wanted."
    if isinstance(given, (str, bytes)) or not isinstance(given, (Iterable, np.ndarray)):
        raise SettingsError(f"{name}={given!r:.80}. {wanted}")
    array: npt.NDArray[Any]
    if isinstance(given, np.ndarray):
        array = given
    else:
        values = list(given)
        kinds = set(map(type, values))
        if str in kinds or (bool in kinds and len(kinds) > 1):
            return as_keys(values, name, wanted)
        try:
            array = np.array(values) if values else np.zeros(0, np.int64)
        except ValueError:
            raise SettingsError(f"{name} holds lists of different lengths. {wanted}") from None
    if array.ndim != 1 or array.dtype.kind not in "biuUO":
        raise SettingsError(f"{name} is an array of shape {array.shape} and dtype {array.dtype}. {wanted}")
    return as_keys(array.tolist(), name, wanted) if array.dtype.kind in "UO" else array


def as_keys(values: list[Any], name: str, wanted: str) -> npt.NDArray[np.object_]:
    """Strings alone."""
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise SettingsError(f"{name}[{i}] is {value!r:.80} among other things. {wanted}")
    keys = np.empty(len(values), object)
    keys[:] = values
    return keys


def unknown_keys(keys: list[str]) -> str:
    """What to say of keys that no label has."""
    shown = ", ".join(map(repr, keys[:_SHOWN])) + ", …" * (len(keys) > _SHOWN)
    what = "1 key is" if len(keys) == 1 else f"{len(keys):,} keys are"
    return f"{what} not among the model's labels: {shown}. Leave them out, or pass missing='ignore'."
