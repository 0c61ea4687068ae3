"""arguments.py — what a caller gave for a number or a text in, one that can be used out; or an error."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, SettingsError

MOST = 2**31 - 1  # of k, beam and threads
MOST_WORKERS = 4096
_LONG_RANGE = 1 << 24  # numbers that nobody wrote down: those of a longer range are not made


def positive(value: Any, name: str) -> int:
    """A whole number from 1 on that the core can count with."""
    if type(value) is int and 1 <= value <= MOST:
        return value
    wrong = SettingsError(f"{name} is {value!r:.80}; expected a whole number from 1 to {MOST:,}.")
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong from None
    if not 1 <= number <= MOST or isinstance(value, bool):
        raise wrong
    return number


def whole_below(value: Any, count: int, name: str) -> int:
    """A whole number from 0 to count - 1: of a label, a tree, a node."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        found = repr(value)[:80] if isinstance(value, (int, str)) else f"a {type(value).__name__}"
        raise SettingsError(f"{name} is {found}; expected a whole number from 0 to {count - 1:,}.")
    return number


def plain_array(values: Any) -> npt.NDArray[Any]:
    """An array of what was given; where numpy cannot make one, an empty one of objects, which no check lets pass."""
    if isinstance(values, range) and len(values) < _LONG_RANGE:
        return np.asarray(values)
    if not isinstance(values, (list, tuple, np.ndarray, memoryview)) and not hasattr(values, "__array__"):
        return np.empty(0, object)
    try:
        return np.asarray(values)
    except MemoryError:
        raise
    except Exception:  # whatever a foreign object raises
        return np.empty(0, object)


def as_texts(texts: Any) -> list[str]:
    """A list of texts: of any iterable, also one that can be read only once."""
    if isinstance(texts, (str, bytes)):
        raise DataError("texts is one string; expected a list of strings. Give [text].")
    if not is_column(texts):
        raise DataError(
            f"texts is a {type(texts).__name__}; expected a list of strings. Matrices go to topk and train."
        )
    return texts if isinstance(texts, list) else plain_column(texts)


def as_strings(strings: Any, what: str, count: str = "") -> Sequence[Any]:
    """Keys or names, one per label, of any column; count: how many there should be, for the message."""
    if isinstance(strings, (str, bytes)) or not is_column(strings):
        raise DataError(f"{what} is a {type(strings).__name__}; expected a list of {count}strings.")
    return strings if isinstance(strings, (list, tuple)) else plain_column(strings)


def is_column(given: Any) -> bool:
    """Whether values come out of it one by one, in an order that means something."""
    return holds_values(given) and not isinstance(given, (set, frozenset, range)) and not hasattr(given, "tocsr")


def holds_values(given: Any) -> bool:
    """Whether values come out of it one by one; an array without dimensions says that they do, and has none."""
    return isinstance(given, Iterable) and not isinstance(given, Mapping) and getattr(given, "ndim", 1) != 0


def as_column(numbers: Any) -> Any:
    """Numbers of a column that is no array, or of an array of objects, as a list; everything else as it is."""
    if isinstance(numbers, (list, tuple, str, bytes)) or not is_column(numbers):
        return numbers
    objects = getattr(getattr(numbers, "dtype", None), "kind", "") == "O" and getattr(numbers, "ndim", 0) == 1
    return plain_column(numbers) if objects or not hasattr(numbers, "__array__") else numbers


def plain_column(column: Iterable[Any]) -> list[Any]:
    """The values of a column as Python's own: columns of Arrow and polars would give values of their own kinds."""
    as_list = getattr(column, "to_pylist", getattr(column, "to_list", getattr(column, "tolist", None)))
    found = as_list() if callable(as_list) else list(column)
    return found if isinstance(found, list) else list(column)


def one_by_one(column: Iterable[Any]) -> Iterable[Any]:
    """The same, for who stops at the first wrong one: numbers of a range are not made before."""
    return column if isinstance(column, range) else plain_column(column)


def as_rows(given: Any) -> Any:
    """Texts or lists of labels as a list, whatever column holds them; matrices, blocks and numbers as they are."""
    if isinstance(given, (list, tuple, str, bytes)) or not is_column(given):
        return given
    if isinstance(given, np.ndarray) and _holds_texts(given):
        return given.tolist()
    shape = getattr(given, "shape", (0,))
    if not isinstance(shape, tuple) or len(shape) != 1 or getattr(getattr(given, "dtype", None), "names", None):
        return given
    found = plain_column(given)
    first = next((value for value in found if value is not None), None)
    read_once = isinstance(given, Iterator)
    return found if read_once or (isinstance(first, Iterable) and not isinstance(first, Mapping)) else given


def _holds_texts(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "UT" or (array.dtype == object and array.size > 0 and isinstance(array.flat[0], str))


def is_texts(given: Any) -> bool:
    """Whether it is a list of texts, and of nothing else."""
    return isinstance(given, (list, tuple)) and len(given) > 0 and all(isinstance(text, str) for text in given)


def as_path(path: Any, what: str = "the path") -> str:
    """A path as a string."""
    try:
        found = os.fspath(path)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise SettingsError(f"{what} is a {type(path).__name__}; expected a string or a pathlib.Path.")
    return found


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers(threads: int | None) -> int:
    """A number of threads for long work, each with memory of its own; None means all cores."""
    if threads is None:
        return cores()
    if positive(threads, "threads") > MOST_WORKERS:
        raise SettingsError(f"threads is {threads}; expected at most {MOST_WORKERS:,}, or None for all cores.")
    return int(threads)


def checked_text(text: object) -> str:
    """A string that native code can read: lone surrogates, which UTF-8 does not have, become replacement characters."""
    if not isinstance(text, str):
        raise DataError(f"The text is a {type(text).__name__}; expected a string. For many texts use search_many.")
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
