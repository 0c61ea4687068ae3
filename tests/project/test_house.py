"""The sources in, the house rules out: sizes that a reader can hold, first lines that say what goes in and comes out.

What breaks a rule today stands in a list below. The lists only shrink: strike what no longer needs its entry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("src", "native", "tests", "bench", "tools", "examples", "docs", "deploy")
CODE = (".py", ".hpp", ".cpp", ".inc", ".js", ".css", ".html")
NOT_SOURCES = (".so", ".pyc", ".pyi")  # what a build leaves beside them

MOST_FILES, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 16, 400, 60
GENERATED = {f"native/include/beamwood/text/{name}_tables.hpp" for name in ("unicode", "fold")}
VENDORED = "native/third_party/"

FULL_FOLDERS: set[str] = set()
LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()


def folders() -> Iterator[Path]:
    yield ROOT
    for room in ROOMS:
        yield ROOT / room
        made = {"__pycache__", ".mypy_cache"}
        below = (path for path in (ROOT / room).rglob("*") if path.is_dir() and not made.intersection(path.parts))
        yield from (path for path in below if VENDORED not in f"{path.as_posix()}/")


def sources(*endings: str, under: tuple[str, ...] = ROOMS) -> Iterator[tuple[str, Path]]:
    """Files that people write, by their name from the top."""
    for room in under:
        for path in sorted((ROOT / room).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in endings and "__pycache__" not in name and not name.startswith(VENDORED):
                yield name, path


def test_no_folder_holds_more_files_than_a_reader_can_hold() -> None:
    counts = {
        str(folder.relative_to(ROOT)): sum(
            path.is_file() and path.suffix not in NOT_SOURCES and path.name != ".git" for path in folder.iterdir()
        )
        for folder in folders()
    }
    assert {name for name, count in counts.items() if count > MOST_FILES} <= FULL_FOLDERS


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    found = {name for name, path in sources(*CODE) if path.read_text(encoding="utf-8").count("\n") > MOST_LINES}
    assert found <= GENERATED | LONG_FILES


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of statements: neither the signature (of a verb: its options) nor the docstring counts."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def test_no_function_is_longer_than_a_screen() -> None:
    found = {
        f"{name}:{node.name}"
        for name, path in sources(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines_of(node) > MOST_LINES_OF_A_FUNCTION
    }
    assert found <= LONG_FUNCTIONS


def test_a_module_says_first_what_goes_in_and_what_comes_out() -> None:
    """Its first line begins with its name: `name.py — … in, … out.`; a package's says what its rooms are for."""
    silent = []
    for name, path in sources(".py", under=("src",)):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if not said.startswith("" if path.name.startswith("_") else f"{path.name} — ") or not said:
            silent.append(name)
    assert silent == []
