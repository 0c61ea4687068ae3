"""Every script in examples/ runs as it is."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def test_the_notebook_gives_the_outputs_that_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells in order; what a cell's last line is worth is compared with the output that is stored, times apart."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEAMWOOD_DATA", str(ROOT / "data"))
    cells = json.loads((ROOT / "examples" / "first_steps.ipynb").read_text(encoding="utf-8"))["cells"]
    space: dict[str, Any] = {}
    compared = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        *body, last = ast.parse("".join(cell["source"])).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(body, []), "first_steps", "exec"), space)
        value = eval(compile(ast.Expression(last.value), "first_steps", "eval"), space)
        shown = cell["outputs"][0]["data"]
        found = {"text/plain": repr(value)}
        if "text/html" in shown:
            found["text/html"] = value._repr_html_()
        for kind, text in found.items():
            assert _without_times(text) == _without_times("".join(shown[kind])), "".join(cell["source"])
            compared += 1
    assert compared > 8


def _without_times(text: str) -> str:
    return re.sub(r"[\d,.]+ (µs|ms|s)\b", r"0 \1", text)
