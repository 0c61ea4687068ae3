"""meter.py — rows that are done in, lines for people out: how many, how fast, and how long it will still take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_WIDTH = 78  # of a line on a terminal that is written over


class Meter:
    """Tells how far a run is: on a terminal in one line that changes, elsewhere a line every few seconds."""

    def __init__(
        self, out: TextIO | None, before: int = 0, every: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """out: where to write, None: nowhere. before: rows that an earlier run has done, which say nothing of speed."""
        self._out, self._clock = out, clock
        self._changes = out is not None and out.isatty()
        self._every = 0.2 if self._changes else every
        self._begun = self._last = clock()
        self._before, self._share = before, 0.0

    def resumed(self, rows: int, share: float | None) -> None:
        """Says that so many rows need not be done again."""
        self._before, self._share, self._begun = rows, share or 0.0, self._clock()
        self._say(f"resume: {rows:,} rows are there already", True)

    def update(self, rows: int, share: float | None) -> None:
        """rows: how many are done; share: of all, where that is known."""
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last = now
        spent = max(now - self._begun, 1e-9)
        line = f"predict: {rows:,} rows, {(rows - self._before) / spent:,.0f} rows/s"
        if share is not None and share > self._share:
            seconds = round(spent * max(0.0, 1 - share) / (share - self._share))
            line = f"{line}, {share:.0%}, {seconds // 60}:{seconds % 60:02d} left"
        self._say(line, False)

    def done(self, rows: int) -> None:
        """Says how it went."""
        spent = max(self._clock() - self._begun, 1e-9)
        self._say(f"predict: {rows:,} rows in {spent:.1f} s, {(rows - self._before) / spent:,.0f} rows/s", True)

    def _say(self, line: str, stays: bool) -> None:
        if self._out is None:
            return
        if self._changes:
            print(f"\r{line:<{_WIDTH}}", end="\n" if stays else "", file=self._out, flush=True)
        else:
            print(line, file=self._out, flush=True)


def meter_for(shown: bool, to_standard_output: bool) -> Meter:
    """Nothing beside answers that go to the same terminal or into a pipe whose other end wants to be quiet."""
    if not shown:
        return Meter(None)
    if to_standard_output and (sys.stdout.isatty() or not sys.stderr.isatty()):
        return Meter(None)
    return Meter(sys.stderr)
