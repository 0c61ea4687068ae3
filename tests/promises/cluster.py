"""cluster.py — Ray nodes that die while a model is served and while one is trained in, wrong answers and files out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from promises import silence
from promises.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "ray" / "bin" / "python"  # what `make test-ray` installs
SERVE_KILLS, TRAIN_KILLS = 50, 20


def deaths(folder: Path, size: float, seed: int, case: int | None) -> Outcome:
    """Shards that do not answer; kills in serving under load, and kills in trainings, where Ray is installed."""
    outcome = silence.silent(folder, size, seed, case)
    told = [f"{outcome.cases:,} questions to shards of which some do not answer"]
    outcome.full += SERVE_KILLS + TRAIN_KILLS
    if case is not None:
        return outcome
    if not PYTHON.exists():
        told.append(f"no kills: {PYTHON.parent.parent.name} is not installed here, `make build/ray/.ready` does")
    for name, full in (("serve_kills", SERVE_KILLS), ("training", TRAIN_KILLS)) if PYTHON.exists() else ():
        kills = max(3, int(full * size))
        command = [str(PYTHON), str(ROOT / "tests" / "campaigns" / "cluster" / f"{name}.py")]
        found = subprocess.run(
            [*command, "--kills", str(kills), "--seed", str(seed)], capture_output=True, text=True, check=False
        )
        outcome.cases += kills
        told.append((found.stdout.strip().splitlines() or [""])[-1])
        if found.returncode:
            outcome.failures.append(f"{name}, seed {seed}: {found.stdout[-1200:]} {found.stderr[-600:]}")
    outcome.told = "; ".join(told)
    return outcome
