"""Things to run in, times and tables out: rivals take turns, so a slow minute of the machine hits all."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Time:
    """Microseconds a query: the median of the rounds, and the quickest and the slowest round."""

    median: float
    low: float
    high: float


def in_turns(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, Time]:
    """Calls each once to warm up, then all of them `rounds` times, each round beginning with another one.

    A run returns its own figure, so it can leave out what it does not want counted.
    """
    names = list(runs)
    for name in names:
        runs[name]()
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            found[name].append(runs[name]())
    return {name: Time(statistics.median(f), min(f), max(f)) for name, f in found.items()}


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
    """A Markdown table whose columns line up; the first column is text, the others stand to the right."""
    cells = [list(heads), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    for row in (cells[0], ruler, *cells[1:]):
        print("| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |")
    print(flush=True)


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
