"""settings.py — NAME=VALUE words of --set and --note in, settings of a training and notes out."""

from __future__ import annotations

from typing import Any

import typer

_HAVE_OPTIONS = ("preset", "seed", "threads", "lexical", "checkpoint", "calibrate")


def settings_of(words: list[str]) -> dict[str, Any]:
    """name=value words as settings: numbers become numbers, true and false truth values, the rest stays text."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--set {word} is not a setting; expected NAME=VALUE, for example --set prune=0.2")
        found[name] = _value(value)
    for name in _HAVE_OPTIONS:
        if name in found:
            raise typer.BadParameter(f"--set has {name}; expected another setting. Give it as --{name} {found[name]}.")
    return found


def notes_of(words: list[str]) -> dict[str, str]:
    """name=text words as notes on a model."""
    pairs = [word.partition("=") for word in words]
    for name, equals, text in pairs:
        if not (name and equals):
            raise typer.BadParameter(f"--note {name}{equals}{text} is no note; expected NAME=TEXT, like data=orders-7")
    return {name: text for name, _, text in pairs}


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
