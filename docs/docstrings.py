"""A docstring as it stands in the source in, Markdown out: lines `name: what it is` become a list, examples code.

An extension of griffe, which reads the sources for the API page.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"^(\w+(?:, \w+)*):\s+(\S.*)$")


class FieldLists(griffe.Extension):
    """Sees every object of the package once."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrites the docstring of an object, if it has one."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The same words, with a list for a run of entries and their continued lines, and a block for each example."""
    lines: list[str] = []
    inside = example = False
    for line in text.splitlines():
        if line.startswith(">>>") or (example and line.strip()):
            lines += [] if example else ["", "```pycon"]
            lines.append(line)
            example, inside = True, False
            continue
        lines += ["```"] if example else []
        example = False
        entry = _ENTRY.match(line)
        if entry:
            lines += [] if inside else [""]
            lines.append(f"- **{entry[1]}**: {entry[2]}")
            inside = True
        elif inside and line.startswith("  "):
            lines.append("  " + line.strip())
        else:
            lines += [""] if inside and line.strip() else []
            lines.append(line)
            inside = False
    lines += ["```"] if example else []
    return "\n".join(lines)
