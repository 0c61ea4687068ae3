"""html.py — rows of cells in, a small HTML table out, for notebooks.

The law: what comes from data (names, keys, words) is escaped, whatever it holds. Colours are those of the page around
it, so that a table is readable in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL = "padding:2px 10px;text-align:{side};vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere"
_BAR = (
    '<div style="width:6em;border:1px solid currentColor;opacity:.6;height:.6em">'
    '<div style="width:{percent:.0f}%;height:100%;background:currentColor"></div></div>'
)
_LONGEST = 200  # characters of a cell


class Raw(str):
    """HTML of our own making, which is not escaped."""


def bar(share: float) -> Raw:
    """A bar that is filled to a share of its length."""
    filled = share if 0.0 <= share <= 1.0 else float(share > 1.0)  # NaN: empty
    return Raw(_BAR.format(percent=100 * filled))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", note: str = "") -> str:
    """A table with a caption above and a note below; numbers are to the right."""
    rows = [list(row) for row in rows]
    lines = ['<table style="border-collapse:collapse;color:inherit">']
    if caption:
        lines.append(f'<caption style="text-align:left;padding:2px 10px"><b>{_text(caption)}</b></caption>')
    if any(head):
        below = rows[0] if rows else head
        cells = "".join(
            f'<th style="{_CELL.format(side=_side(value))}">{_text(name)}</th>'
            for name, value in zip(head, below, strict=True)
        )
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    lines += [f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows]
    lines.append("</tbody></table>")
    if note:
        lines.append(f'<div style="padding:2px 10px;opacity:.7">{_text(note)}</div>')
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f'<td style="{_CELL.format(side=_side(value))}">{_text(value)}</td>'


def _side(value: Any) -> str:
    return "right" if isinstance(value, (int, float)) else "left"


def _text(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
