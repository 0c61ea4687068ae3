"""under_way.py — pieces on their way in; out, which of them are to be sent once more, for their machine fell silent.

A machine whose processes die is noticed by Ray at once, and it tries their pieces again. One that is cut off from the
network says nothing: Ray gives it up after a minute, but waits for answers from it for many minutes more. A piece that
was sent before a machine was given up, and takes far longer than others took, is therefore sent once more; whichever
copy ends first counts, for all learn the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LOOK = 2.0  # seconds between two looks at which machines are left
_PATIENCE = 5.0  # seconds that a piece may take at least
_LONGER = 2.0  # times the longest that was learned, which it may take at most


@dataclass(eq=False)
class _Copy:
    """One piece that was sent."""

    number: int
    sent: float
    again: bool = False  # another one was sent in its place


class UnderWay:
    """The pieces of a layer that were sent and are not there yet."""

    def __init__(self, ray: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._ray, self._clock = ray, clock
        self._copies: dict[Any, _Copy] = {}  # by what will be their result
        self._longest = 0.0
        self._looked, self._alive = clock(), self._machines()
        self._lost: float | None = None  # when a machine was given up

    def _machines(self) -> set[str]:
        return {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}

    def __len__(self) -> int:
        return len({copy.number for copy in self._copies.values()})

    @property
    def results(self) -> list[Any]:
        """What to wait for."""
        return list(self._copies)

    def add(self, result: Any, number: int) -> None:
        """A piece was sent."""
        self._copies[result] = _Copy(number, self._clock())

    def arrived(self, result: Any) -> int | None:
        """The number of a piece that is there; None where another copy of it was there before."""
        copy = self._copies.pop(result, None)
        if copy is None:
            return None
        self._longest = max(self._longest, self._clock() - copy.sent)
        for other in [one for one, its in self._copies.items() if its.number == copy.number]:
            del self._copies[other]
            self._ray.cancel(other, force=True)
        return copy.number

    def silent(self) -> list[int]:
        """Pieces that are to be sent once more."""
        now = self._clock()
        if now - self._looked >= _LOOK:
            self._looked, before, self._alive = now, self._alive, self._machines()
            if before - self._alive:
                self._lost = now
        if self._lost is None:
            return []
        patience = max(_PATIENCE, _LONGER * self._longest)
        found = []
        for copy in self._copies.values():
            if not copy.again and copy.sent < self._lost < now - patience:
                copy.again = True
                found.append(copy.number)
        return found

    def close(self) -> None:
        """Nobody waits for these any more: an error, or Ctrl-C."""
        for result in self._copies:
            self._ray.cancel(result, force=True)
        self._copies.clear()
