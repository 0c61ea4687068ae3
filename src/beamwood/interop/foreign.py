"""foreign.py — a foreign folder's files in, checked values out, or a FormatError that names file and field.

A folder is taken for hostile: nothing in it is run, every size is compared with what is really there before memory is
taken for it, and every id is checked before it is followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beamwood.errors import DataError, FormatError, MissingFileError, SettingsError
from beamwood.inputs.text import FittedText
from beamwood.model import Model

ADVICE = "Copy the folder again from where it was made."
MOST_FEATURES = 2**31 - 1
MOST_LAYERS = 512
_LARGEST_JSON = 16 << 20
_UNUSED_FEATURES = 1 << 24  # features that need no weight to be believed: hashed ones are many, and most have none
_FEATURES_PER_WEIGHT = 64


@dataclass(frozen=True)
class Imported:
    """A model made elsewhere: what it was, the model, and what is not quite as it was at home."""

    kind: str
    model: Model
    found: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportedText:
    """Text features made elsewhere."""

    kind: str
    text: FittedText
    found: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def wrong(path: Path, what: str) -> FormatError:
    """The error of a foreign file: its path, what was found and expected, what to do."""
    return FormatError(f"{path}: {what}. {ADVICE}")


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """What is wrong with data or settings made from foreign files is an error of those files."""
    try:
        yield
    except (FormatError, MissingFileError):
        raise
    except (DataError, SettingsError) as error:
        raise FormatError(f"{path}: {error}") from error
    except OSError as error:
        raise FormatError(f"{error.filename or path}: {(error.strerror or str(error)).lower()}. {ADVICE}") from error


def read_file(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file."""
    try:
        if not path.is_file():
            raise wrong(path, "it is a folder; expected a file" if path.is_dir() else "the file is not there")
        size = os.stat(path).st_size
        if most is not None and size > most:
            raise wrong(path, f"the file has {size:,} bytes; expected at most {most:,}")
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: {(error.strerror or str(error)).lower()}. {ADVICE}") from error


def read_text(path: Path, most: int | None = None) -> str:
    """The text of a UTF-8 file."""
    try:
        return read_file(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise wrong(path, f"byte {error.start:,} is not UTF-8; expected a text file") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(read_text(path, _LARGEST_JSON))
    except (ValueError, RecursionError):
        raise wrong(path, "it is not JSON; expected a JSON object") from None
    if not isinstance(found, dict):
        raise wrong(path, f"it holds a {type(found).__name__}; expected a JSON object")
    return found


def whole(values: dict[str, Any], name: str, path: Path, least: int = 0, most: int = MOST_FEATURES) -> int:
    """A whole number of a JSON object."""
    value = values.get(name)
    if type(value) is not int or not least <= value <= most:
        raise wrong(path, f"{name} is {value!r:.60}; expected a whole number from {least:,} to {most:,}")
    return value


def real(values: dict[str, Any], name: str, path: Path) -> float:
    """A finite number of a JSON object."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e38:
        raise wrong(path, f"{name} is {value!r:.60}; expected a finite number")
    return float(value)


def check_features(path: Path, features: int, weights: int) -> None:
    """Refuses a number of features that the weights do not bear out: a model takes four bytes for each of them."""
    most = _UNUSED_FEATURES + _FEATURES_PER_WEIGHT * weights
    if features > most:
        raise wrong(path, f"it says {features:,} features; expected at most {most:,} with {weights:,} weights")


def same(path: Path, name: str, found: object, expected: object, where: str) -> None:
    """Refuses two numbers that must agree and do not."""
    if found != expected:
        raise wrong(path, f"{name} is {found!r:.60}; expected {expected!r:.60}, as {where} says")
