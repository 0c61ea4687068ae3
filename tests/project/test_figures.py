"""The tables of README and docs/training.md are what the bench scripts found, from the results that are checked in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["train_quality", "train_speed", "train_speed --scaling"])
def test_the_tables_of_the_document_are_those_of_the_results(command: Any) -> None:
    script, *options = command.split()
    kept = HOME / "bench" / "results" / f"{script}.json"
    line = [sys.executable, str(HOME / "bench" / f"{script}.py"), "--table", *options, "--results", str(kept)]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [row for row in printed if row.startswith(("| ", "- "))]
    document = (HOME / "docs" / "training.md").read_text().splitlines()
    assert len(rows) > 4
    assert [row for row in rows if row not in document] == []


def test_the_speeds_in_the_readme_are_those_of_the_results() -> None:
    results = json.loads((HOME / "bench" / "results" / "against_pecos.json").read_text())["results"]
    readme = (HOME / "README.md").read_text().splitlines()
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in readme if row.endswith("x |")]
    shown = {name: cells for name, *cells in table if len(cells) == 8}
    assert set(shown) == {name for name in results if ":" not in name}
    for name, cells in shown.items():
        found = results[name]
        expected = [f"{found['info']['labels']:,}", f"{found['nnz']:.0f}"]
        for part, digits in (("python", 0), ("batch", 1)):
            ours = found[part]["ours huge"]["median"]
            theirs = min(found[part][f"libpecos {kind}"]["median"] for kind in ("binary", "hash"))
            expected += [
                *(f"{t:,.0f}" if t >= 100 else f"{t:.1f}" for t in (theirs, ours)),
                f"{theirs / ours:.{digits}f}x",
            ]
        assert cells == expected, name


def test_the_first_table_of_the_readme_is_that_of_the_results() -> None:
    results = json.loads((HOME / "bench" / "results" / "train_quality.json").read_text())
    trainers = {
        "**beamwood**, nothing set": "beamwood-balanced",
        "beamwood, preset `fast`": "beamwood-fast",
        "libpecos": "libpecos",
        "napkinXC": "napkinxc",
        "omikuji, like Bonsai": "omikuji-bonsai",
        "LibMultiLabel": "libmultilabel",
        "bm25s": "bm25s",
    }
    readme = (HOME / "README.md").read_text().splitlines()
    for name, trainer in trainers.items():
        expected: list[str] = []
        for found in (results[f"{set_}/{trainer}-1"] for set_ in ("debian-search", "library-subjects")):
            good = " / ".join(f"{100 * found['measures'][m]:.1f}" for m in ("precision@1", "recall@10"))
            times = [f"{found[field]:,.0f}" for field in ("train_cpu_s", "query_us")]
            expected += [good, *times, f"{found['model_bytes'] / 1e6:,.0f}"]
        shown = next(row for row in readme if row.startswith(f"| {name} |"))
        assert [cell.strip(" *") for cell in shown.split("|")[2:-1]] == expected


def test_the_page_of_benchmarks_is_made_from_its_report() -> None:
    code = "import benchmarks_page as b, json; print(b.page(json.loads(b.FIGURES.read_text())), end='')"
    tools = {"PYTHONPATH": str(HOME / "tools")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=tools)
    assert ran.stdout == (HOME / "docs" / "benchmarks.md").read_text()
