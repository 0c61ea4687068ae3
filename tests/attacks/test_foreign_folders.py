"""Hostile folders of every foreign kind: a FormatError or a model that answers, never a crash, never much memory.

BEAMWOOD_FUZZ_FOLDERS=10000 is the long form (`make fuzz-foreign`); BEAMWOOD_FUZZ_KINDS="pecos omikuji" chooses.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from attacks.foreign_campaign import KINDS

FOLDERS = int(os.environ.get("BEAMWOOD_FUZZ_FOLDERS", "120"))
CHOSEN = os.environ.get("BEAMWOOD_FUZZ_KINDS", " ".join(KINDS)).split()
TESTS = Path(__file__).parents[1]


def run_kind(kind: str, folder: Path) -> tuple[int, list[str]]:
    """All copies of one kind: how many loaded, and what went wrong, with the number of the copy."""
    first = 0
    failures: list[Any] = []
    loaded = 0
    while first < FOLDERS and len(failures) < 5:
        progress = folder / f"{kind}-{first}"
        progress.write_bytes(b"%012d" % first)
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import attacks.foreign_campaign as c; c.main(*sys.argv[2:])"
        )
        given = [str(TESTS), kind, str(first), str(FOLDERS - first), str(progress)]
        command = [sys.executable, "-X", "faulthandler", "-c", code, *given]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        at = progress.read_bytes()
        if run.returncode == 0 and at.startswith(b"done"):
            return int(at.split()[1]), failures
        died = signal.Signals(-run.returncode).name if run.returncode < 0 else f"exit code {run.returncode}"
        failures.append(f"{kind}, copy {int(at)}: {died}\n{run.stderr[-1500:]}")
        first = int(at) + 1
    return loaded, failures


@pytest.mark.timeout(max(300, FOLDERS))  # the long form: some ten copies of each kind per second on a busy machine
def test_spoiled_folders_are_refused_or_answer(tmp_path: Path) -> None:
    """Copies 0..n-1 of each kind: `Folder(kind, place).check(number)` brings one back."""
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        found = list(pool.map(lambda kind: run_kind(kind, tmp_path), CHOSEN))
    for kind, (loaded, failures) in zip(CHOSEN, found, strict=True):
        print(f"{kind}: {FOLDERS:,} copies, {loaded:,} loaded, {len(failures)} failures", flush=True)
    failures = [failure for _, bad in found for failure in bad]
    assert not failures, "\n".join(failures[:5])
