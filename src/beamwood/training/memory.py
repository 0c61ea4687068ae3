"""memory.py — a problem and settings in, the bytes a training needs out; a refusal if they are not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beamwood.errors import SettingsError
from beamwood.training.problem import Problem
from beamwood.training.settings import Settings

_LANES = 8  # siblings solved side by side
_ENTRY = 8  # bytes of one non-zero: an id and a float


def estimated_bytes(problem: Problem, settings: Settings, threads: int) -> int:
    """What a training adds, at its peak, to the memory its data already takes; errs on the large side."""
    number = 8 if settings.eps < 1e-3 or settings.loss == "logistic" else 4
    state = 2 * _LANES * number + (_LANES * number if settings.loss == "logistic" else 0)  # of a row
    gathered = problem.X.nnz * _ENTRY + problem.rows * 32
    solver = threads * (problem.rows * (state + 16) + problem.features * _LANES * number)
    positives = 4 * problem.Y.nnz * 16
    per_row = np.diff(problem.X.indptr)
    vectors = min(
        int(np.diff(problem.Y.indptr) @ per_row), problem.labels * problem.features
    )  # non-zeros of label vectors before they are merged
    weights = vectors * _ENTRY if not settings.top_weights else problem.labels * settings.top_weights * _ENTRY
    layers = 2 * weights * settings.trees
    return int(max(gathered + solver, 2 * vectors * _ENTRY) + positives + layers)


def available_bytes() -> int | None:
    """Memory that is free for this process, as far as the system tells; None: unknown."""
    limits: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    except (OSError, ValueError):
        pass
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        limits.append(limit - int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass
    return min(limits) if limits else None


def refuse_if_too_big(needed: int, limit: int | None, settings: Settings) -> None:
    """Stops before the work starts rather than an hour into it."""
    if limit is None or needed <= limit:
        return
    advice = ["raise prune", "set top_weights (200, say)", "train on fewer rows"]
    if settings.trees > 1:
        advice.insert(0, f"lower trees (now {settings.trees})")
    raise SettingsError(
        f"this training would need about {needed / 2**30:.2f} GiB and {limit / 2**30:.2f} GiB are free: "
        f"{', '.join(advice)}, set threads=1, or pass max_memory (in bytes) if you know better"
    )
