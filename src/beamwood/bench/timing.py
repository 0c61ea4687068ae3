"""timing.py — things to run in, times and tables out: rivals take turns, so a slow minute of the machine hits all.

Two habits keep other users of the machine out of the figures. Calls on one thread are timed by processor
time, which on an idle machine is the time that passes. Short calls are timed one by one: the median of each
query over the rounds is taken first, the mean over the queries after that.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

Figures = float | Sequence[float]  # microseconds per query: of a whole call, or of every query on its own


@dataclass(frozen=True)
class Time:
    """Microseconds per query: with the median, the quickest and the slowest of the rounds for every query."""

    median: float
    low: float
    high: float


def in_turns(runs: Mapping[str, Callable[[], Figures]], rounds: int, warm: bool = False) -> dict[str, Time]:
    """The summary of each run's rounds. A run returns its own figures, so it can leave out what does not count.

    warm: every turn begins with a run that does not count. Where runs empty each other's caches, the first
    milliseconds of a turn fill them again: most of a quick one's turn, little of a slow one's.
    """
    return {name: summary(figures) for name, figures in _in_turns(runs, rounds, warm).items()}


def medians_in_turns(runs: Mapping[str, Callable[[], Figures]], rounds: int, warm: bool = False) -> dict[str, Any]:
    """The median over the rounds of every query, for percentiles over the queries."""
    return {name: np.median(np.asarray(figures), axis=0) for name, figures in _in_turns(runs, rounds, warm).items()}


def _in_turns(runs: Mapping[str, Callable[[], Figures]], rounds: int, warm: bool) -> dict[str, list[Figures]]:
    """Calls each once to begin with, then all of them `rounds` times, each round beginning with another one."""
    names = list(runs)
    for name in names:
        runs[name]()
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            if warm:
                runs[name]()
            found[name].append(runs[name]())
    return found


def summary(rounds: Sequence[Figures]) -> Time:
    """Median, least and most of the rounds for each query, then the mean over the queries."""
    table = np.asarray(rounds, np.float64).reshape(len(rounds), -1)
    return Time(*(float(f(table, axis=0).mean()) for f in (np.median, np.min, np.max)))


def batch_time(call: Callable[[], object], queries: int) -> float:
    """Microseconds per query of one call on one thread, in processor time."""
    started = time.process_time_ns()
    call()
    return (time.process_time_ns() - started) / 1e3 / queries


def each_time(
    call: Callable[[Any], object], queries: Sequence[Any], clock: Callable[[], int] = time.thread_time_ns
) -> list[float]:
    """Microseconds of one call for each query, in processor time of this thread unless another clock is given."""
    found = []
    for query in queries:
        started = clock()
        call(query)
        found.append((clock() - started) / 1e3)
    return found


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, memory, system, versions, and how busy it was."""
    packages = ("beamwood", "numpy", "scipy")
    return {
        "processor": _first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in packages}},
    }


def _first(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return "unknown"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def print_header(title: str, settings: dict[str, Any]) -> None:
    """The first lines of every bench: where and how."""
    print(f"# {title}\n")
    for key, value in {**machine(), **settings}.items():
        several = isinstance(value, dict)
        text = ", ".join(f"{name} {entry}" for name, entry in value.items()) if several else value
        print(f"- {key}: {text}")
    print()


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a Markdown table."""
    print(markdown_table(heads, rows), flush=True)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table whose columns line up; the first column is text, the others stand to the right."""
    cells = [list(heads), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in (cells[0], ruler, *cells[1:])]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return str(cell)


def save_json(path: Path | None, figures: dict[str, Any]) -> None:
    """Everything that was measured, with the machine, for whoever wants to compare later."""
    if path is None:
        return
    text = json.dumps({"machine": machine(), **figures}, indent=1, default=_plain)
    path.write_text(text + "\n")
    print(f"written to {path}", file=sys.stderr)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
