"""plots.py — a report's cases in, PNG and SVG pictures out: the paper's figures, then ours.

Needs the extra: pip install '.[plot]'.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from beamwood.bench import paper, tables
from beamwood.bench.tables import Case
from beamwood.plot import COLOURS, Drawing


def draw_all(cases: list[Case], folder: Path) -> list[Path]:
    """Every picture that the report has figures for; gives the PNG files."""
    drawings: dict[str, Callable[[list[Case]], Any]] = {
        "speedup-batch": lambda c: speed_ups(c, "batch"),
        "speedup-online": lambda c: speed_ups(c, "online"),
        "default": default_engine,
        "threads": threads,
        "beams": beams,
        "layers": layers,
        "memory": memory,
    }
    if any(case["rivals"] for case in cases):
        drawings["rivals"] = rivals
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        figure = draw(cases)
        for suffix in ("png", "svg"):
            figure.savefig(folder / f"{name}.{suffix}", dpi=130)
        written.append(folder / f"{name}.png")
    return written


def speed_ups(cases: list[Case], setting: str) -> Drawing:
    """The paper's figure: a panel a branching, a group of bars a set, a bar a matcher; the paper's own as a dot."""
    sets, branchings = tables.names_of(cases)
    figure, panels = _panels(len(branchings), max(5.0, 1.3 * len(sets)))
    width = 0.8 / len(tables.METHODS)
    for panel, branching in zip(panels, branchings, strict=True):
        for number, (matcher, method) in enumerate(tables.METHODS.items()):
            at = np.arange(len(sets)) + (number - 1.5) * width
            found = [tables.speed_up(tables.case_of(cases, name, branching), setting, matcher) for name in sets]
            panel.bar(at, [value or 0 for value in found], width * 0.92, color=COLOURS[number], label=method)
            theirs = [paper.speed_up(name, branching, setting, matcher) for name in sets]
            dots = [(x, y) for x, y in zip(at, theirs, strict=True) if y is not None]
            if dots:
                mark = {"label": "the paper's"} if number == len(tables.METHODS) - 1 else {}
                panel.scatter(*zip(*dots, strict=True), s=14, color="white", edgecolors="black", zorder=3, **mark)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_title(f"branching {branching}")
        _sets_below(panel, sets)
    panels[0].set_ylabel(f"times as fast as its baseline\n({setting}, one thread)")
    _legend(figure, panels[0])
    return figure


def default_engine(cases: list[Case]) -> Drawing:
    """Our default engine beside the best of the paper's four MSCM variants and the best baseline, online."""
    sets, branchings = tables.names_of(cases)
    figure, panels = _panels(len(branchings), max(5.0, 1.3 * len(sets)))
    for panel, branching in zip(panels, branchings, strict=True):
        found = [tables.case_of(cases, name, branching) for name in sets]
        bars = {
            "best baseline": [_best(case, "column") for case in found],
            "best of the paper's MSCM": [_best(case, "chunk") for case in found],
            "beamwood's default": [tables.cell(case, "online", "auto", "auto") or np.nan for case in found],
        }
        _groups(panel, bars, sets)
        _logarithmic(panel.yaxis)
        panel.set_title(f"branching {branching}")
    panels[0].set_ylabel("µs per query\n(online, in the engine, log scale)")
    _legend(figure, panels[0])
    return figure


def threads(cases: list[Case]) -> Drawing:
    """Queries per second against threads, relative to the default engine on one thread; mean over the cases."""
    figure, (panel,) = _panels(1, 6.5)
    counts = list(next(iter(cases[0]["threads"].values())))
    for number, engine in enumerate(cases[0]["threads"]):
        times = np.array([[case["threads"][engine][c] for c in counts] for case in cases])
        speed = np.exp(np.mean(np.log(1e6 / times), axis=0))
        panel.plot([int(c) for c in counts], speed, marker="o", color=COLOURS[number], label=tables.engine_name(engine))
    panel.set_xticks([int(c) for c in counts])
    _logarithmic(panel.yaxis)
    panel.set_xlabel("threads")
    panel.set_ylabel("queries per second in batch\n(geometric mean over the sets, log scale)")
    _legend(figure, panel)
    return figure


def _named_points(names: list[str], x: list[float], y: list[float]) -> list[tuple[str, tuple[float, float]]]:
    """The names of points and where they go; those of points that lie on each other share one place."""
    found: list[tuple[str, tuple[float, float]]] = []
    for name, px, py in zip(names, x, y, strict=True):
        text, (qx, qy) = found[-1] if found else ("", (0.0, 0.0))
        if found and abs(px / qx - 1) < 0.06 and abs(py - qy) < 4:
            found[-1] = (f"{text}, {name}", (qx, qy))
        else:
            found.append((name, (px, py)))
    return found


def beams(cases: list[Case]) -> Drawing:
    """Precision at 1 against latency, a line per set, a point per beam."""
    largest = max(case["branching"] for case in cases)
    shown = [case for case in cases if case["branching"] == largest]
    figure, (panel,) = _panels(1, 7.0)
    for number, case in enumerate(shown):
        x = [entry["online"]["mean"] for entry in case["beams"]]
        y = [100 * next(iter(entry["precision"].values())) for entry in case["beams"]]
        panel.plot(x, y, marker="o", color=COLOURS[number % len(COLOURS)], label=case["set"])
        for text, place in _named_points([str(entry["beam"]) for entry in case["beams"]], x, y):
            panel.annotate(text, place, textcoords="offset points", xytext=(0, 5), ha="center", size=7)
    _logarithmic(panel.xaxis)
    panel.set_xlabel(f"µs per query (online, default engine, branching {largest}, log scale)")
    panel.set_title("beside each point: its beam", size=9)
    panel.set_ylabel("precision at 1, percent")
    panel.margins(y=0.12)
    _legend(figure, panel)
    return figure


def layers(cases: list[Case]) -> Drawing:
    """Where the time of one query goes: a bar a case, cut by layer from the top of the tree."""
    figure, (panel,) = _panels(1, 8.0, height=1.2 + 0.28 * len(cases))
    for row, case in enumerate(cases):
        total, left = sum(case["layers"]) or 1.0, 0.0
        for depth, spent in enumerate(case["layers"]):
            share = 100 * spent / total
            colour = COLOURS[depth % len(COLOURS)]
            panel.barh(row, share, left=left, color=colour, edgecolor="white", linewidth=0.5)
            if share > 9:
                panel.text(left + share / 2, row, str(depth), ha="center", va="center", color="white", size=7)
            left += share
    panel.set_yticks(range(len(cases)), [f"{case['set']}, B={case['branching']}" for case in cases], size=8)
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xlabel("percent of the time of one query (numbers: layers from the top)")
    return figure


def memory(cases: list[Case]) -> Drawing:
    """Bytes a non-zero weight of each engine, mean over the cases of a branching."""
    _, branchings = tables.names_of(cases)
    figure, (panel,) = _panels(1, 9.0)
    engines = list(cases[0]["memory"])
    bars = {
        f"branching {branching}": [
            np.mean([c["memory"][e] / c["model"]["nonzeros"] for c in cases if c["branching"] == branching])
            for e in engines
        ]
        for branching in branchings
    }
    _groups(panel, bars, [tables.engine_name(engine) for engine in engines])
    panel.set_ylabel("resident bytes per non-zero weight")
    _legend(figure, panel)
    return figure


def rivals(cases: list[Case]) -> Drawing:
    """How many times as fast as each rival we are on its own weights."""
    kinds = list(dict.fromkeys(duel["what"] for case in cases for duel in tables.duels_of(case)))
    sets, branchings = tables.names_of(cases)
    figure, panels = _panels(len(branchings), max(5.0, 1.3 * len(sets)))
    for panel, branching in zip(panels, branchings, strict=True):
        bars: dict[str, list[float]] = {}
        for kind in kinds:
            row = []
            for name in sets:
                case = tables.case_of(cases, name, branching)
                found = [d["theirs"] / d["ours"] for d in tables.duels_of(case or {"rivals": {}}) if d["what"] == kind]
                row.append(found[0] if found else np.nan)
            bars[kind] = row
        _groups(panel, bars, sets)
        _logarithmic(panel.yaxis)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_title(f"branching {branching}")
    panels[0].set_ylabel("times as fast as the rival\n(same weights, one thread, log scale)")
    _legend(figure, panels[0])
    return figure


def _best(case: Case | None, layout: str) -> float:
    times = [tables.cell(case, "online", matcher, layout) for matcher in tables.METHODS]
    return min((time for time in times if time is not None), default=float("nan"))


def _groups(panel: Any, bars: dict[str, list[float]], names: list[str]) -> None:
    width = 0.8 / len(bars)
    for number, (label, values) in enumerate(bars.items()):
        at = np.arange(len(names)) + (number - (len(bars) - 1) / 2) * width
        panel.bar(at, values, width * 0.92, color=COLOURS[number % len(COLOURS)], label=label)
    _sets_below(panel, names)


def _sets_below(panel: Any, names: list[str]) -> None:
    panel.set_xticks(range(len(names)), names, rotation=25, ha="right", size=8)
    panel.tick_params(axis="x", length=0)


def _logarithmic(axis: Any) -> None:
    """A log scale with plain numbers: 1, 2, 5, 10, 20 …"""
    axis.axes.set_yscale("log") if axis.axis_name == "y" else axis.axes.set_xscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def _panels(count: int, width: float, height: float = 3.6) -> tuple[Drawing, Any]:
    figure = Drawing(figsize=(max(width * count * 0.72, 6.0), height), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, count, sharey=True))
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        panel.set_axisbelow(True)
    return figure, panels


def _legend(figure: Drawing, panel: Any) -> None:
    handles, labels = panel.get_legend_handles_labels()
    columns = max(2, int(figure.get_figwidth() // 2.6))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
