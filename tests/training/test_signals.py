"""Claims about Ctrl-C in native training code: a signal ends the call before its work is done."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from beamwood import _core

ROWS, FEATURES, ENTRIES = 60_000, 20_000, 40


class Stopped(Exception):
    """Raised by the handler of the signal, as KeyboardInterrupt is by that of Ctrl-C."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], Any]]:
    """A function that sends this process a signal one millisecond from now."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.001)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def rows(seed: int) -> tuple[Any, Any, Any, int]:
    """Sparse rows whose clustering takes far longer than it takes to hear a signal."""
    rng = np.random.default_rng(seed)
    feature = np.sort(rng.integers(0, FEATURES, (ROWS, ENTRIES)), axis=1).astype(np.int32).ravel()
    return np.arange(0, ROWS * ENTRIES + 1, ENTRIES), feature, rng.random(len(feature), dtype=np.float32), FEATURES


@pytest.mark.parametrize("threads", [1, 2])
def test_balanced_clustering_stops(alarm: Callable[[], Any], threads: int) -> None:
    given, order = rows(1), np.full(ROWS, -1, dtype=np.int64)
    alarm()
    with pytest.raises(Stopped):
        _core.balanced_order(*given, ROWS, 1, threads, order)
    assert (order == -1).all()  # written when all is done


@pytest.mark.parametrize("threads", [1, 2])
def test_wide_clustering_stops(alarm: Callable[[], Any], threads: int) -> None:
    given, group = rows(2), np.full(ROWS, -1, dtype=np.int32)
    members, bounds = np.arange(ROWS, dtype=np.uint32), np.arange(0, ROWS + 1, 1000)
    alarm()
    with pytest.raises(Stopped):
        _core.wide_groups(*given, members, bounds, 100, 1, 0, threads, group)
    assert (group == -1).any()


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_of_label_vectors_stop(alarm: Callable[[], Any], threads: int) -> None:
    labels = 2_000
    offset = np.arange(0, labels * 500 + 1, 500)
    row = np.sort(np.random.default_rng(3).integers(0, ROWS, (labels, 500)), axis=1).astype(np.int32).ravel()
    given, ones, filled = rows(3), np.ones(len(row), dtype=np.float32), np.zeros(labels + 1, dtype=np.int64)
    arrays: list[Any] = []

    def allocate(entries: int) -> tuple[Any, Any]:
        arrays.extend((np.zeros(entries, np.int32), np.full(entries, np.nan, np.float32)))
        return arrays[0], arrays[1]

    alarm()
    with pytest.raises(Stopped):
        _core.pifa(*given, offset, row, ones, threads, filled, allocate)
    assert not arrays or np.isnan(arrays[1]).any()
