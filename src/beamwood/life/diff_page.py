"""diff_page.py — the difference of two models in, one HTML page out that needs nothing else and runs nothing.

The law: keys, names and queries are text in it, whatever they hold. Every value goes through `_text`, the page forbids
scripts and requests to anywhere, and each name is set apart, so that none can turn the text around it.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from beamwood.errors import one_line

if TYPE_CHECKING:
    from beamwood.life.diff import AnswerChanges, Difference

_SHOWN = 200  # labels of a list
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>beamwood diff</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere }
th { font-weight: 600 } td.number { text-align: right; font-variant-numeric: tabular-nums }
.same { opacity: .6 } .only { font-weight: 600 }
h2 { margin: 2rem 0 .3rem; font-size: 1.1rem } h3 { margin: 1.2rem 0 .2rem; font-size: 1rem }
</style></head><body>
"""


def page(found: Difference) -> str:
    """The whole page."""
    parts = [_HEAD, "<h1>What changed</h1>", _table(("", "old", "new"), [_row(fact) for fact in found.facts])]
    if found.settings:
        parts += ["<h2>Settings</h2>", _table(("", "old", "new"), [_row(each) for each in found.settings])]
    counts = f"{len(found.added):,} added, {len(found.removed):,} removed, {len(found.renamed):,} renamed"
    parts.append(f"<h2>Labels: {counts}</h2>")
    parts += [_list("Added", found.added), _list("Removed", found.removed)]
    if found.renamed:
        rows = [_row(each) for each in found.renamed[:_SHOWN]]
        parts += ["<h3>Renamed</h3>", _table(("key", "old", "new"), rows), _rest(found.renamed)]
    if found.answers is not None:
        parts.append(_answers(found.answers))
    return "".join([*parts, "</body></html>\n"])


def _text(value: Any) -> str:
    """Anything as text of its own direction."""
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(str(value))
    return f"<bdi>{html.escape(shown)}</bdi>"


def _row(cells: Any) -> str:
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _table(head: tuple[str, ...], rows: list[str]) -> str:
    return "<table><tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>" + "".join(rows) + "</table>"


def _list(title: str, keys: Any) -> str:
    if not keys:
        return ""
    items = "".join(f"<li>{_text(key)}</li>" for key in keys[:_SHOWN])
    return f"<h3>{title}</h3><ul>{items}</ul>{_rest(keys)}"


def _rest(listed: Any) -> str:
    return f"<p>… and {len(listed) - _SHOWN:,} more</p>" if len(listed) > _SHOWN else ""


def _numbers(name: str, values: Any, form: str) -> str:
    return f"<tr><td>{_text(name)}</td>" + "".join(f'<td class="number">{v:{form}}</td>' for v in values) + "</tr>"


def _answers(found: AnswerChanges) -> str:
    rows = [_numbers("changed", found.changed.values(), ".1%"), _numbers("in common", found.overlap.values(), ".1%")]
    parts = [f"<h2>Answers to {found.queries:,} queries</h2>", _table(("at", *map(str, found.changed)), rows)]
    drift = found.drift
    parts.append(
        f"<p>Scores of common labels moved by {drift['mean']:+.3g} on average, by {drift['mean_size']:.3g} in size, "
        f"{drift['largest']:.3g} at most. Without an answer: {found.empty[0]:.1%} before, {found.empty[1]:.1%} now.</p>"
    )
    if found.quality:
        rows = [
            _numbers(name, (100 * old, 100 * new, 100 * (new - old)), ".2f")
            for name, (old, new) in found.quality.items()
        ]
        parts += ["<h2>Quality in percent</h2>", _table(("", "old", "new", "change"), rows)]
        parts.append(f"<p>{found.better:,} queries have more right labels among ten, {found.worse:,} fewer.</p>")
    if found.most:
        parts.append("<h2>Queries that changed most</h2>")
    for query in found.most:
        pairs = [(_hits(query.old, query.new, i), _hits(query.new, query.old, i)) for i in range(10)]
        rows = [f"<tr>{old}{new}</tr>" for old, new in pairs if old != new or "<td></td>" not in old]
        parts += [f"<h3>{query.change:.0%} {_text(query.query[:500])}</h3>", _table(("", "old", "", "new"), rows)]
    return "".join(parts)


def _hits(answer: Any, other: Any, place: int) -> str:
    """Score and name of one hit; those that only one model gives stand out."""
    if place >= len(answer):
        return "<td></td><td></td>"
    key, name, score = answer[place]
    kind = "same" if key in {hit[0] for hit in other} else "only"
    return f'<td class="number">{score:.3g}</td><td class="{kind}">{_text(name)}</td>'
