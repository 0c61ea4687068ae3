"""frames.py — columns of equal length in, a data frame of pandas, polars or Arrow out; none is needed before."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from beamwood.errors import SettingsError

Columns = Mapping[str, Sequence[Any]]

_MAKERS = {"pandas": ("pandas", "DataFrame"), "polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}


def frame_of(columns: Columns, kind: str) -> Any:
    """A frame of the kind asked for."""
    if kind not in _MAKERS:
        raise SettingsError(f"kind is {kind!r:.40}; expected one of {', '.join(_MAKERS)}.")
    package, maker = _MAKERS[kind]
    try:
        library = importlib.import_module(package)
    except ImportError:
        others = ", ".join(repr(other) for other in _MAKERS if other != kind)
        raise SettingsError(
            f"kind is {kind!r}, and {package} is not installed; expected it. "
            f"Run `pip install {package}`, or ask for {others}."
        ) from None
    return getattr(library, maker)(dict(columns))


def hit_columns(answers: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """The hits of some queries below each other: rank from 1, then the fields of a hit that any of them has."""
    hits = [(rank, hit) for answer in answers for rank, hit in enumerate(answer, 1)]
    columns: dict[str, list[Any]] = {"rank": [rank for rank, _ in hits]}
    for field in ("label", "key", "name", "score"):
        columns[field] = [getattr(hit, field) for _, hit in hits]
    for field in ("probability", "found_by"):
        values = [getattr(hit, field) for _, hit in hits]
        if any(value is not None for value in values):
            columns[field] = values
    return columns
