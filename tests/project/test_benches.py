"""Every script of bench/ in, its help out: none may rot unseen between the runs that take minutes or hours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
SCRIPTS = sorted(path.name for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_says_what_it_takes(script: str) -> None:
    ran = subprocess.run([sys.executable, BENCH / script, "--help"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.startswith("usage:")
