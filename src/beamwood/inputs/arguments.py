"""arguments.py — what a caller gave for a number or a text in, one that can be used out; or an error."""

from __future__ import annotations

import operator
import os
from typing import Any

from beamwood.errors import SettingsError

MOST = 2**31 - 1  # of k, beam and threads
MOST_WORKERS = 4096


def positive(value: Any, name: str) -> int:
    """A whole number from 1 on that the core can count with."""
    if type(value) is int and 1 <= value <= MOST:
        return value
    wrong = SettingsError(f"{name} is {value!r:.80}; expected a whole number from 1 to {MOST:,}.")
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong from None
    if not 1 <= number <= MOST or isinstance(value, bool):
        raise wrong
    return number


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers(threads: int | None) -> int:
    """A number of threads for long work, each with memory of its own; None means all cores."""
    if threads is None:
        return cores()
    if positive(threads, "threads") > MOST_WORKERS:
        raise SettingsError(f"threads is {threads}; expected at most {MOST_WORKERS:,}, or None for all cores.")
    return int(threads)
