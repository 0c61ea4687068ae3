"""The pages for who comes from another program: what they show of it runs in its own environment (make test-rivals)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from bench.rivals.install import python_of
from rivals.homes import nltk_data

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs" / "migrate").glob("*.md"))
_THEIRS = re.compile(r"<!-- not run: in the environment of (\w+) -->\n```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FIRST = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def theirs(page: str) -> list[tuple[str, str, str]]:
    """(environment, kind, code) of each block of the other program; the page's first block makes its data."""
    text = (ROOT / "docs" / "migrate" / f"{page}.md").read_text(encoding="utf-8")
    data = _FIRST.search(text)
    assert data is not None, f"{page}.md has no block that makes data"
    return [(name, kind, data[1] + code if kind == "python" else code) for name, kind, code in _THEIRS.findall(text)]


def python_for(name: str) -> Path:
    """Where this program is installed: build/rivals, or below BEAMWOOD_RIVAL_HOMES."""
    homes = os.environ.get("BEAMWOOD_RIVAL_HOMES")
    return Path(homes) / name / "bin" / "python" if homes else python_of(name)


@pytest.mark.skipif("BEAMWOOD_RIVALS" not in os.environ, reason="make test-rivals installs the other programs")
@pytest.mark.parametrize("page", [page for page in PAGES if page != "one-vs-rest"])
def test_what_the_page_shows_of_the_other_program_runs(page: str, tmp_path: Path) -> None:
    found = theirs(page)
    assert found, page
    for name, kind, code in found:
        python = python_for(name)
        environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
        environment["NLTK_DATA"] = str(nltk_data(tmp_path))
        if kind == "python":
            command = [str(python), "-c", code]
        else:  # data first, then lines of a shell
            text = (ROOT / "docs" / "migrate" / f"{page}.md").read_text(encoding="utf-8")
            made = [str(python), "-c", _FIRST.search(text)[1]]  # type: ignore[index]
            subprocess.run(made, cwd=tmp_path, check=True, env=environment)
            command = ["bash", "-ec", code]
        ran = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment, timeout=600
        )
        assert ran.returncode == 0, f"{page}\n{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}"
        print(f"{page}: {ran.stdout.strip()[-300:]}")
        assert ran.stdout.strip()
