"""progress.py — stages and the share of them that is done in, a bar or plain lines for people out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TextIO

Update = Callable[[float], None]


class Progress(Protocol):
    """Shows long work: one `stage` after the other, each told now and then which share of it is done.

    rows: how many the stage goes through, for its speed; 0: not known.
    """

    def stage(self, name: str, rows: int) -> AbstractContextManager[Update]: ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def stage(self, name: str, rows: int) -> Iterator[Update]:
        yield lambda share: None


class Lines:
    """Plain lines for logs: one when a stage ends, and one every few seconds while it runs."""

    def __init__(self, out: TextIO, every: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._every, self._clock = out, every, clock

    @contextmanager
    def stage(self, name: str, rows: int) -> Iterator[Update]:
        begun = last = self._clock()

        def update(share: float) -> None:
            nonlocal last
            now = self._clock()
            if now - last < self._every:
                return
            last = now
            spent = now - begun
            self._say(f"{name}: {share:4.0%}{_speed(rows * share, spent)}, {_left(share, spent)} left")

        yield update
        spent = self._clock() - begun
        self._say(f"{name}: done in {spent:.1f} s{_speed(rows, spent)}")

    def _say(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class Bars:
    """A rich progress bar on a terminal: stage, share, rows per second, time left."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @contextmanager
    def stage(self, name: str, rows: int) -> Iterator[Update]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns: list[Any] = [
            TextColumn("{task.description:<24}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
        ]
        begun = time.monotonic()
        with Progress(*columns, console=Console(file=self._out)) as bar:
            task = bar.add_task(name, total=1.0, speed="")

            def update(share: float) -> None:
                spent = max(time.monotonic() - begun, 1e-9)
                speed = f"{_speed(rows * share, spent)}, {_left(share, spent)} left"
                bar.update(task, completed=share, speed=speed.removeprefix(", "))

            yield update
            bar.update(task, completed=1.0, speed=_speed(rows, time.monotonic() - begun).removeprefix(", "))


def _speed(rows: float, spent: float) -> str:
    """Rows a second behind a comma; nothing for a stage that cannot say how many rows it has."""
    return f", {rows / max(spent, 1e-9):,.0f} rows/s" if rows else ""


def _left(share: float, spent: float) -> str:
    if share <= 0:
        return "?"
    seconds = round(spent * (1 - share) / share)
    return f"{seconds // 60}:{seconds % 60:02d}"


def progress_for(progress: bool | Progress) -> Progress:
    """A bar on a terminal, lines elsewhere, nothing with False; an object of your own is used as it is."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return Silent()
    return Bars(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)
