"""report.py — what a training did in, a frozen `Report` out: seconds a stage, non-zeros, peak memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from beamwood.show.answers import report_html
from beamwood.training.progress import Progress, Update


@dataclass(frozen=True)
class Report:
    """How a training went. It describes one run on one machine, so it is never written into a model file.

    seconds:   (stage, seconds) in the order they ran.
    nonzeros:  for each tree the weights kept in each layer, from the top.
    lexical:   whether words of labels rank beside the trees (kept), why not, what held-out rows say; None: not asked.
    calibration: how far scores and probabilities are from the truth, in points (see `Calibration`); None: not asked.
    """

    version: str
    seed: int
    threads: int
    rows: int
    features: int
    labels: int
    labels_without_rows: int
    seconds: tuple[tuple[str, float], ...]
    nonzeros: tuple[tuple[int, ...], ...]
    estimated_bytes: int
    peak_bytes: int
    settings: dict[str, Any] = field(default_factory=dict)
    lexical: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None

    @property
    def total_seconds(self) -> float:
        return sum(seconds for _, seconds in self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        plain = asdict(self)
        plain["seconds"] = [list(stage) for stage in self.seconds]
        plain["nonzeros"] = [list(layers) for layers in self.nonzeros]
        return {**plain, "total_seconds": self.total_seconds}

    def _repr_html_(self) -> str:
        return report_html(self)


class Stopwatch:
    """Times stages and shows them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.seconds: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, name: str, rows: int) -> Iterator[Update]:
        begun = time.perf_counter()
        with self._progress.stage(name, rows) as update:
            yield update
        self.seconds.append((name, time.perf_counter() - begun))


def peak_bytes() -> int:
    """The most memory this program has held so far."""
    try:  # getrusage also counts the process that a program was started from
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, ValueError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
