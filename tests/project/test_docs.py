"""Every code block of README.md and docs/ runs as written, in a temporary folder.

Python blocks of one file share a namespace, as a reader who types them in order has. In blocks marked `console`,
lines that begin with `$ beamwood` are run, and what the page shows below one is what it printed: only times may differ,
and a line `…` stands for any number of lines. A block after `<!-- prints -->` is what the Python block before it
printed. A block is left out when the line before it is `<!-- not run: the reason -->`; one after
`<!-- long: the reason -->` is run only with BEAMWOOD_LONG_PAGES=1 (`make test-pages`).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
LONG = bool(os.environ.get("BEAMWOOD_LONG_PAGES"))
_TIME = re.compile(r"\d[\d,.]*( ?)(µs|ms|s|min)\b")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    kind: str
    code: str
    prints: bool = False


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that are to be run, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        if before.startswith("<!-- not run:") or (before.startswith("<!-- long:") and not LONG):
            continue
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match["kind"], code, before == "<!-- prints -->"))
    return found


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """What the block prints; it has its own file name and line in a traceback."""
    code = "\n" * block.line + block.code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(block.page), "exec"), namespace)
    return printed.getvalue()


def compare(block: Block, shown: list[str], printed: str) -> None:
    """Refuses a page that shows what was not printed."""
    told = [_TIME.sub(r"0\1\2", line.rstrip()) for line in "\n".join(shown).strip().splitlines()]
    found = [_TIME.sub(r"0\1\2", line.rstrip()) for line in printed.strip().splitlines()]
    pattern = "\n".join(".*" if line.strip() == "…" else re.escape(line) for line in told)
    where = f"{block.page.name}, line {block.line}"
    assert re.fullmatch(pattern, "\n".join(found), re.DOTALL), f"{where} shows\n{told}\nprinted was\n{found}"


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    """The lines `$ …` of a block, each with the lines that stand below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.code.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return found


def run_console(block: Block) -> None:
    """The lines `$ beamwood …` of a block; what stands below them is what they print."""
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    for line, shown in commands_of(block):
        if line.startswith("$ beamwood"):
            words = shlex.split(line.removeprefix("$ beamwood"), comments=True)
            ran = subprocess.run(
                [sys.executable, "-m", "beamwood", *words],
                input="",
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
            assert ran.returncode == 0, f"{block.page.name}, line {block.line}: {line}\n{ran.stderr}"
            if any(map(str.strip, shown)):
                compare(block, shown, ran.stdout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEAMWOOD_DATA", str(ROOT / "data"))
    (tmp_path / "data").symlink_to(ROOT / "data")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        if block.prints:
            compare(block, block.code.splitlines(), printed)
        elif block.kind in ("python", "py"):
            printed = run_python(block, namespace)
        elif block.kind == "console":
            run_console(block)


# What people type into the search box of the documentation; the first trials found nothing for most of them.
SEARCHED = """
    tune tuning hyperparameter migrate fasttext onnx incremental partial_fit update stemming accents chinese synonyms
    gpu licence docker kubernetes pandas polars notebook embeddings calibration threshold pickle windows arm
"""


@pytest.mark.parametrize("word", [*SEARCHED.split(), "hugging face"])
def test_what_people_search_for_is_on_a_page(word: str) -> None:
    told = re.compile(rf"(?<![a-z]){word}", re.IGNORECASE)
    pages = [page for page in PAGES if page.parent != ROOT and page.name != "CHANGELOG.md"]
    assert any(told.search(page.read_text(encoding="utf-8")) for page in pages)


def test_blocks_are_found_run_and_left_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n1. a list\n\n    ```python\n    x += 1\n    ```\n\n"
        "<!-- not run: needs a printer -->\n```python\nraise SystemExit\n```\n```\nplain\n```\n"
    )
    found = blocks_of(page)
    assert [(block.line, block.kind, block.code) for block in found] == [
        (1, "python", "x = 1\n"),
        (7, "python", "x += 1\n"),
        (15, "", "plain\n"),
    ]
    namespace: dict[str, Any] = {}
    for block in found[:2]:
        run_python(block, namespace)
    assert namespace["x"] == 2


def test_what_a_page_shows_is_what_was_printed(tmp_path: Path) -> None:
    page = Block(tmp_path / "page.md", 1, "text", "")
    compare(page, ["0.52  bread", "2 labels in 43 µs"], "0.52  bread   \n2 labels in 1,043.5 µs\n")
    compare(page, ["first", "…"], "first\nsecond\nthird\n")
    with pytest.raises(AssertionError, match="shows"):
        compare(page, ["0.52  bread"], "0.53  bread\n")
    with pytest.raises(AssertionError, match="shows"):
        compare(page, ["first"], "first\nsecond\n")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "FORMAT.md", "SECURITY.md"])
def test_the_files_that_documents_name_are_there(page: str) -> None:
    """A file is named from the top of the repository or of the package, or by its last name only."""
    rooms = [ROOT, ROOT / "src" / "beamwood", ROOT / "native" / "include" / "beamwood"]
    known = {
        path.name for room in ("src", "native", "tests", "bench", "tools", "docs") for path in (ROOT / room).rglob("*")
    }
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|hpp|cpp|inc|h|md|toml|ini|json)|(?:[\w.-]+/)+)`", text):
        there = any((room / name).exists() for room in rooms) or ("/" not in name and name in known)
        assert there or name.startswith(("build/", "dist/")), f"{page} names {name}, which is not there"
    for name in re.findall(r"\]\(((?!http)[\w./-]+)[)#]", text):
        assert (ROOT / name).exists(), f"{page} links to {name}, which is not there"


def test_the_catalogue_of_errors_is_nearly_complete() -> None:
    """`python tools/error_catalogue.py` makes it anew; a release does. An eighth may be newer than the page."""
    code = "import error_catalogue as e; print(*e.missing(e.PAGE.read_text(encoding='utf-8')))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "tools")},
    )
    lacking, there = map(int, ran.stdout.split())
    assert there > 400
    assert lacking <= there / 8, "python tools/error_catalogue.py"
