"""What readers copy from README and first pages passes the strict type checker: our own types must let them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from project.test_docs import PAGES, ROOT, blocks_of

NAMES = ("README.md", "docs/index.md", "docs/guide/slow-or-wrong.md", "docs/howto/filter.md")
SETTINGS = "[mypy]\nstrict = True\nignore_missing_imports = True\n"


def test_python_of_the_pages_is_strictly_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    pages = [page for page in PAGES if str(page.relative_to(ROOT)) in NAMES]
    assert len(pages) == len(NAMES)
    for page in pages:
        code = "\n".join(block.code for block in blocks_of(page) if block.kind == "python")
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(code, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
