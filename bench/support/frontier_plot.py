"""frontier_plot.py — points of quality and µs per query in, one picture out: a column per set, P@1 and recall@10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FAMILIES = {  # family: colour, mark
    "presets": ("#1b6e53", "o"),
    "one tree": ("#d98c21", "s"),
    "several trees": ("#3c6fb0", "D"),
    "others": ("#6b6b6b", "^"),
}
SHOWN = {"precision@1": "P@1", "recall@10": "recall@10"}


def draw(found: dict[str, dict[str, dict[str, Any]]], plot: Path) -> None:
    """Batch time where there is one, else online; upwards and to the left is better."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    from beamwood.plot import Drawing

    figure = Drawing(figsize=(4.6 * len(found), 8.4), layout="constrained")
    panels = figure.subplots(len(SHOWN), len(found), squeeze=False)
    for column, (name, points) in enumerate(found.items()):
        for line, (measure, unit) in enumerate(SHOWN.items()):
            panel = panels[line][column]
            _points(panel, points, measure)
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.grid(alpha=0.25)
            panel.set_title(name if line == 0 else "")
            panel.set_ylabel(unit if column == 0 else "")
            panel.set_xlabel("µs per query, one thread" if line == len(SHOWN) - 1 else "")
            low, high = panel.get_xlim()
            panel.set_xlim(low / 1.2, high * 2.6)  # room for the names
    marks = [
        panels[0][0].scatter([], [], color=colour, marker=mark, label=family)
        for family, (colour, mark) in FAMILIES.items()
        if any(row["family"] == family for points in found.values() for row in points.values())
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    for suffix in (".png", ".svg"):
        figure.savefig(plot.with_suffix(suffix), dpi=110, metadata={"Date": None} if suffix == ".svg" else None)


def _points(panel: Any, points: dict[str, dict[str, Any]], measure: str) -> None:
    places = []
    for point, row in points.items():
        x = row["batch"] if row["batch"] is not None else row["online"]
        if x is None:
            continue
        colour, mark = FAMILIES[row["family"]]
        panel.scatter([x], [row[measure]], color=colour, marker=mark, zorder=3, s=60 if mark == "o" else 26)
        places.append((x, row[measure], point, colour, row["family"] == "presets"))
    presets = sorted((x, y) for x, y, _, _, preset in places if preset)
    if presets:
        panel.plot(*zip(*presets, strict=True), color=FAMILIES["presets"][0], linewidth=1, zorder=2)
    for x, y, point, colour, preset in _apart(panel, places):
        panel.annotate(
            point,
            (x, y[0]),
            xytext=(7, y[1]),
            textcoords="offset points",
            fontsize=8 if preset else 6.5,
            color=colour,
            va="center",
            fontweight="bold" if preset else "normal",
        )


def _apart(panel: Any, places: list[Any]) -> list[Any]:
    """Names of points that would lie on each other are shifted up or down."""
    if not places:
        return []
    low, high = min(p[1] for p in places), max(p[1] for p in places)
    step = (high - low or 1.0) / 26
    taken: list[tuple[float, float]] = []
    moved = []
    for x, y, point, colour, preset in sorted(places, key=lambda p: (not p[4], p[0])):
        shift = next(
            s
            for s in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5)
            if s == 5 or all(abs(y + s * step - b) >= step * 0.95 or not 1 / 3 < x / a < 3 for a, b in taken)
        )
        taken.append((x, y + shift * step))
        moved.append((x, (y, shift * 9.0), point, colour, preset))
    return moved
