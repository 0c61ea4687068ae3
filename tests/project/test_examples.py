"""Every script in examples/ runs as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_runs(script: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", str(ROOT / "examples" / script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_the_demo_runs_on_some_of_its_data(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--rows", "2000", "--output", "demo.bw"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"BEAMWOOD_DATA": str(ROOT / "data"), "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "TERM": "dumb"},
    )
    assert ran.returncode == 0, ran.stderr
    for expected in ("recall@10", "BM25", "most frequent", "same bits", "history of jazz", "demo.bw", "Type next"):
        assert expected in ran.stdout
    assert (tmp_path / "demo.bw").stat().st_size > 0
