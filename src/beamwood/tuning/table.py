"""table.py — trials as they end in, lines for people out: a table that grows on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from beamwood.errors import one_line
from beamwood.tuning.search import Trial

_COLUMNS = ("rows", "P@1", "P@5", "R@10", "gain", "±", "training", "query", "model")


@contextmanager
def teller(progress: bool | Callable[[Trial], None]) -> Iterator[Callable[[Trial], None]]:
    """What is told of each trial."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield lambda trial: None
    elif sys.stderr.isatty():
        with _live() as tell:
            yield tell
    else:
        print(f"{'':<34}" + "".join(f"{name:>10}" for name in _COLUMNS), file=sys.stderr)
        yield lambda trial: print(line(trial), file=sys.stderr, flush=True)


def cells(trial: Trial) -> list[str]:
    """The columns of a trial behind its name."""
    if trial.failed:
        return [f"{trial.rows:,}", one_line(trial.failed)[:60]]
    return [
        f"{trial.rows:,}",
        *(f"{value:.2f}" for value in trial.quality.values()),
        f"{trial.gain:+.2f}",
        f"{trial.error:.2f}",
        f"{trial.seconds:.1f} s",
        f"{trial.microseconds:.0f} µs",
        f"{trial.bytes / 1e6:.1f} MB",
    ]


def line(trial: Trial) -> str:
    """A trial as a line."""
    return f"{trial.name[:33]:<34}" + "".join(f"{cell:>10}" for cell in cells(trial))


@contextmanager
def _live() -> Iterator[Callable[[Trial], None]]:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    shown: list[Trial] = []

    def table() -> Any:
        made = Table(box=None, pad_edge=False, header_style="dim")
        made.add_column("trial")
        for name in _COLUMNS:
            made.add_column(name, justify="right")
        for trial in shown:
            made.add_row(trial.name, *cells(trial))
        return made

    with Live(table(), console=Console(stderr=True), refresh_per_second=4) as live:

        def tell(trial: Trial) -> None:
            shown.append(trial)
            live.update(table())

        yield tell
