"""allowed.py — keys of labels from options and files in, a model's filter out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beamwood.cli.support.output import say
from beamwood.errors import one_line
from beamwood.inputs.sources import text_lines

_SHOWN = 3  # unknown keys that a note names


def filter_of(
    model: Any, allow: list[str] | None, allow_file: Path | None, deny: list[str] | None, deny_file: Path | None
) -> Any:
    """The filter that the options ask for, or None. A key that no label has is an error, in a file a note."""
    if not (allow or allow_file or deny or deny_file):
        return None
    model.filter(allow=allow, deny=deny)  # says so when a key of the command line is unknown
    allowed = (allow or []) + _keys_in(allow_file) if allow or allow_file else None
    made = model.filter(allow=allowed, deny=(deny or []) + _keys_in(deny_file), missing="ignore")
    if made.missing:
        shown = ", ".join(map(one_line, made.missing[:_SHOWN])) + ", …" * (len(made.missing) > _SHOWN)
        say(f"note: the model has no labels for {len(made.missing):,} of the keys: {shown}")
    return made


def _keys_in(path: Path | None) -> list[str]:
    """The keys of a file, one per line; what follows a tab is a name."""
    return [] if path is None else [line.partition("\t")[0] for _, line in text_lines(path) if line]
