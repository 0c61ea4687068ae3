"""diff_text.py — the difference of two models in, lines for people out; names cannot play tricks with a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beamwood.errors import one_line

if TYPE_CHECKING:
    from beamwood.life.diff import AnswerChanges, Difference

_SHOWN = 10  # labels of a list
_WIDE = 36  # letters of a label beside another


def in_words(found: Difference) -> str:
    """The whole difference."""
    lines = [f"{'':<18}{'old':>20}{'new':>20}"]
    lines += [f"{name:<18}{_value(old):>20}{_value(new):>20}" for name, old, new in found.facts]
    if found.settings:
        lines += ["", "settings that changed"]
        lines += [
            f"  {name}: {one_line(f'{old!r:.60}')} → {one_line(f'{new!r:.60}')}" for name, old, new in found.settings
        ]
    lines += ["", f"labels: {len(found.added):,} added, {len(found.removed):,} removed, {len(found.renamed):,} renamed"]
    for mark, keys in (("+", found.added), ("-", found.removed)):
        lines += [f"  {mark} {one_line(key)}" for key in keys[:_SHOWN]] + _rest(keys)
    lines += [f"  {one_line(key)}: {one_line(old)} → {one_line(new)}" for key, old, new in found.renamed[:_SHOWN]]
    lines += _rest(found.renamed)
    if found.answers is not None:
        lines += ["", *_answers(found.answers)]
    return "\n".join(lines)


def _answers(found: AnswerChanges) -> list[str]:
    lines = [f"answers to {found.queries:,} queries", f"  {'at':<24}" + "".join(f"{k:>8}" for k in found.changed)]
    lines.append(f"  {'changed':<24}" + "".join(f"{share:8.1%}" for share in found.changed.values()))
    lines.append(f"  {'labels in common':<24}" + "".join(f"{share:8.1%}" for share in found.overlap.values()))
    lines.append(
        f"  scores of common labels moved by {found.drift['mean']:+.3g} on average, by {found.drift['mean_size']:.3g} "
        f"in size, {found.drift['largest']:.3g} at most"
    )
    if any(found.empty):
        lines.append(f"  without an answer: {found.empty[0]:.1%} → {found.empty[1]:.1%}")
    if found.quality:
        lines += ["", f"  {'quality in percent':<24}{'old':>8}{'new':>8}{'':>4}change"]
        for name, (old, new) in found.quality.items():
            lines.append(f"  {name:<24}{100 * old:8.2f}{100 * new:8.2f}{100 * (new - old):+10.2f}")
        lines.append(f"  {found.better:,} queries with more right labels among ten, {found.worse:,} with fewer")
    for query in found.most:
        lines += ["", f"  {query.change:4.0%}  {one_line(query.query)[:100]}"]
        for place in range(max(len(query.old), len(query.new))):
            lines.append(f"    {_hit(query.old, place)}   {_hit(query.new, place)}".rstrip())
    return lines


def _hit(answer: Any, place: int) -> str:
    if place >= len(answer):
        return " " * (_WIDE + 8)
    _, name, score = answer[place]
    return f"{score:7.2g} {one_line(name)[:_WIDE]:<{_WIDE}}"


def _rest(listed: Any) -> list[str]:
    return [f"  … and {len(listed) - _SHOWN:,} more"] if len(listed) > _SHOWN else []


def _value(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(str(value))
