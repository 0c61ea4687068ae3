"""What is public, in three places that must agree: `beamwood.__all__`, `dir(beamwood)` and docs/api.md."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import beamwood as bw

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^::: (\S+)\n((?:    .*\n)*)", PAGE, re.MULTILINE)
MODULES = {name: re.search(r"members: \[(.*)\]", options) for name, options in ENTRIES if " members:" in options}


def test_the_page_of_the_api_lists_what_is_public_and_nothing_else() -> None:
    listed = {name.removeprefix("beamwood.") for name, _ in ENTRIES if name not in MODULES}
    modules = set(re.findall(r"^### bw\.(\w+)$", PAGE, re.MULTILINE))
    assert listed | modules | {"__version__"} == set(bw.__all__)


def test_the_page_names_things_as_users_type_them() -> None:
    for name, options in ENTRIES:
        if name not in MODULES:
            assert re.fullmatch(r"beamwood\.\w+", name)
            assert f"heading: bw.{name.removeprefix('beamwood.')}\n" in options


@pytest.mark.parametrize("name", MODULES)
def test_what_the_page_says_of_a_module_is_there(name: str) -> None:
    module = importlib.import_module(name)
    found = MODULES[name]
    assert found is not None
    for member in found[1].split(", "):
        assert getattr(module, member).__doc__


def test_dir_shows_what_is_public_and_nothing_else() -> None:
    assert dir(bw) == sorted(bw.__all__)
    assert [name for name in bw.__all__ if not hasattr(bw, name)] == []


def test_importing_beamwood_brings_every_public_name_and_no_extra_package() -> None:
    code = (
        "import sys; from beamwood import *; import beamwood as bw\n"
        "assert set(bw.__all__) - set(dir()) == set(), set(bw.__all__) - set(dir())\n"
        "print([m for m in ('sklearn', 'matplotlib', 'uvicorn', 'httpx', 'pyarrow', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr


def test_the_documentation_uses_public_names_only() -> None:
    """What a page or an example imports is on the page of the API; the demo also prints the table of variants."""
    public = {"beamwood", *MODULES, "beamwood.compat.omikuji", "beamwood.bench.variants"} | {
        f"beamwood.{name}" for name in bw.__all__
    }
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]:
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"^\s*from (beamwood[\w.]*) import (.*)$", text, re.MULTILINE):
            used = {module} if module != "beamwood" else {f"beamwood.{name.strip()}" for name in names.split(",")}
            assert used <= public, (page.name, used - public)


EXAMPLES = {
    name: example
    for name in bw.__all__
    if not inspect.ismodule(getattr(bw, name))
    for example in doctest.DocTestFinder(recurse=False).find(getattr(bw, name), name)
    if example.examples
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(EXAMPLES[name], out=said.append)
    assert (failed, tried > 0) == (0, True), "".join(said)


def test_the_functions_that_people_start_with_have_examples() -> None:
    first = {"LabelTable", "TextFeatures", "diff", "evaluate", "index", "index_text", "load", "read_records"}
    assert first | {"train", "train_text"} <= EXAMPLES.keys()
