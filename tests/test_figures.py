"""The tables of docs/training.md are what the bench scripts print from the results that are checked in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent


@pytest.mark.parametrize("command", ["train_quality", "train_speed", "train_speed --scaling"])
def test_the_tables_of_the_document_are_those_of_the_results(command):
    script, *options = command.split()
    kept = HOME / "bench" / "results" / f"{script}.json"
    line = [sys.executable, str(HOME / "bench" / f"{script}.py"), "--table", *options, "--results", str(kept)]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [row for row in printed if row.startswith(("| ", "- "))]
    document = (HOME / "docs" / "training.md").read_text().splitlines()
    assert len(rows) > 4
    assert [row for row in rows if row not in document] == []
