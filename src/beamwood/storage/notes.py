"""notes.py — what a user writes on a model in, checked names and texts for its file out; the clock is never asked.

The law: a model that was given no notes has the file that it had before there were any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beamwood.errors import SettingsError

MOST_NOTES = 32
LONGEST_NOTE = 1000  # characters; all notes together fit the room that a streamed file keeps for its header
_LONGEST_NAME = 60


def merged(had: Mapping[str, str], given: Any) -> dict[str, str]:
    """Notes with others over them, in the order of their names; an empty text takes one away."""
    if not isinstance(given, Mapping):
        raise SettingsError(
            f'notes is a {type(given).__name__}; expected a mapping of names to texts, like {{"data": "orders-7"}}.'
        )
    for name, text in given.items():
        check("the name of a note", name, _LONGEST_NAME)
        check(f"the note {name!r}", text, LONGEST_NOTE)
        if not name:
            raise SettingsError("the name of a note is empty; expected a word, like data.")
    found = {name: text for name, text in sorted({**had, **given}.items()) if text}
    if len(found) > MOST_NOTES:
        raise SettingsError(f"there are {len(found)} notes; expected at most {MOST_NOTES}. Put some of them together.")
    return found


def check(what: str, text: Any, longest: int) -> None:
    """Refuses what is no text, too long, or holds half a character."""
    if not isinstance(text, str):
        raise SettingsError(f"{what} is a {type(text).__name__}; expected a str. Write it out: str(…).")
    if len(text) > longest:
        raise SettingsError(f"{what} has {len(text):,} characters; expected at most {longest:,}. Shorten it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{what} has a lone surrogate; expected text. Decode it as UTF-8 first.") from None


def read(given: Any) -> dict[str, str]:
    """From the description in a file, which may be damaged."""
    if given is None:
        return {}
    try:
        return merged({}, given)
    except SettingsError as error:
        raise ValueError(str(error)) from None
