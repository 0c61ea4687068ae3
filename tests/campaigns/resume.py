"""resume.py — trainings killed at random moments in, byte-equal model files out: `make test-resume`.

    python tests/campaigns/resume.py [--kills 100] [--data FOLDER] [--rows N] [--preset NAME] [--overhead ROUNDS]

A training is left alone once. Then, for each kill, one with --checkpoint gets SIGKILL at a random moment (and half of
the time once more while it goes on), is given again until it ends by itself, and its file is compared byte for byte.
--overhead: compares processor seconds with and without --checkpoint, in turns, instead.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What came of some kills: how many hit a running training, how many files differ."""

    hits: int
    different: int


def command(train: Sequence[str], output: Path, checkpoint: Path | None) -> list[str]:
    words = [sys.executable, "-m", "beamwood", "train", *train, "-q", "-o", str(output)]
    return words if checkpoint is None else [*words, "--checkpoint", str(checkpoint)]


def finished(words: list[str]) -> tuple[float, float]:
    """Runs to the end: seconds, processor seconds."""
    begun = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with {status}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime


def killed_after(words: list[str], seconds: float) -> bool:
    """Kills a run after so long; whether it was still going."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() < 0


def campaign(train: Sequence[str], folder: Path, kills: int, dice: random.Random) -> Outcome:
    """Kills, goes on, compares; kills times."""
    whole, model, checkpoint = folder / "whole.bw", folder / "model.bw", folder / "checkpoint"
    finished(command(train, whole, None))  # the first run also warms the disk's cache
    whole.unlink()
    took, _ = finished(command(train, whole, None))
    hits = different = 0
    for number in range(kills):
        words = command(train, model, checkpoint)
        for _ in range(dice.choice((1, 2))):
            if not model.exists():
                hits += killed_after(words, dice.uniform(0.1, 1.1) * took)
        if not model.exists():
            finished(words)
        if model.read_bytes() != whole.read_bytes():
            different += 1
            print(f"  kill {number}: the file differs", flush=True)
        if checkpoint.exists() and not _only_lock(checkpoint):
            print(f"  kill {number}: {sorted(os.listdir(checkpoint))} stayed behind", flush=True)
        model.unlink()
        for name in os.listdir(checkpoint) if checkpoint.exists() else []:
            (checkpoint / name).unlink()
    return Outcome(hits, different)


def _only_lock(checkpoint: Path) -> bool:
    """A training that was killed after it had written its model leaves what it had no time to remove."""
    return not list(checkpoint.glob("layer-*.stage"))


def overhead(train: Sequence[str], folder: Path, rounds: int) -> list[float]:
    """Processor seconds with a checkpoint over those without, once per round."""
    ratios = []
    for number in range(rounds):
        seconds = {}
        for kept in (None, folder / f"c{number}") if number % 2 else (folder / f"c{number}", None):
            output = folder / f"{number}-{kept is not None}.bw"
            seconds[kept is not None] = finished(command(train, output, kept))[1]
            output.unlink()
        ratios.append(seconds[True] / seconds[False])
    return ratios


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parents[2]
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--data", type=Path, default=here / "data" / "library-subjects")
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--preset", default="balanced")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options.add_argument("--overhead", type=int, default=0, metavar="ROUNDS")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with gzip.open(given.data / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
            some = [line for line, _ in zip(lines, range(given.rows), strict=False)]
        (folder / "rows.jsonl").write_text("".join(some), encoding="utf-8")
        train = (str(folder / "rows.jsonl"), "--preset", given.preset)
        if given.overhead:
            ratios = overhead(train, folder, given.overhead)
            shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"processor time with a checkpoint: {statistics.median(ratios):.3f} of that without ({shown})")
            return
        print(f"{len(some):,} rows of {given.data.name}, {given.preset}, seed {given.seed}", flush=True)
        found = campaign(train, folder, given.kills, random.Random(given.seed))
        print(f"{given.kills} trainings, {found.hits} kills that hit one; {found.different} files differ")
        sys.exit(1 if found.different or not found.hits else 0)


if __name__ == "__main__":
    main()
