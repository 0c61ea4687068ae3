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


def test_the_first_tables_of_the_readme_are_those_of_the_results() -> None:
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
        shown = [row for row in readme if row.startswith(f"| {name} |")]
        sets = ("debian-search", "library-subjects")
        assert len(shown) == len(sets), name
        for row, set_ in zip(shown, sets, strict=True):
            found = results[f"{set_}/{trainer}-1"]
            good = " / ".join(f"{100 * found['measures'][m]:.1f}" for m in ("precision@1", "recall@10"))
            times = [f"{found[field]:,.0f}" for field in ("train_cpu_s", "query_us")]
            expected = [good, *times, f"{found['model_bytes'] / 1e6:,.0f}"]
            assert [cell.strip(" *") for cell in row.split("|")[2:-1]] == expected


def test_the_page_of_benchmarks_is_made_from_its_report() -> None:
    code = "import benchmarks_page as b, json; print(b.page(json.loads(b.FIGURES.read_text())), end='')"
    tools = {"PYTHONPATH": str(HOME / "tools")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=tools)
    assert ran.stdout == (HOME / "docs" / "benchmarks.md").read_text()


def test_what_pages_say_of_rivals_is_what_the_results_say() -> None:
    """Each range, over all sets, of ours beside a rival's."""
    results = json.loads((HOME / "bench" / "results" / "train_quality.json").read_text())
    sets = sorted({name.partition("/")[0] for name in results})

    def beside(ours: str, rival: str, field: str, digits: int) -> str:
        pairs = [(results[f"{s}/{ours}-1"], results[f"{s}/{rival}-1"]) for s in sets]
        ratios = [a[field] / b[field] for a, b in pairs if field in a and field in b]
        return " to ".join(f"{x:.{digits}f}" if digits else f"{100 * x:.0f}" for x in (min(ratios), max(ratios)))

    def lead(ours: str, rivals: list[str], measure: str) -> str:
        found = [
            {r: results[f"{s}/{r}-1"].get("measures", {}).get(measure, 0.0) for r in [ours, *rivals]} for s in sets
        ]
        leads = [100 * (by[ours] - max(by[r] for r in rivals)) for by in found]
        return f"{min(leads):.1f} to {max(leads):.1f}"

    def says(page: str, sentence: str) -> None:
        assert sentence in " ".join((HOME / page).read_text().split()), (page, sentence)

    default, fast = "beamwood-balanced", "beamwood-fast"
    rivals = ["libpecos", "napkinxc", "omikuji", "omikuji-bonsai", "libmultilabel", "bm25s"]
    queries = [results[f"{s}/{default}-1"]["query_us"] for s in sets]
    page = "docs/guide/comparison.md"
    says(page, f"{lead(default, rivals, 'precision@1')} points of precision at 1")
    says(page, f"{beside(default, 'omikuji-bonsai', 'train_cpu_s', 0)} % of that of omikuji's")
    says(page, f"{beside(default, 'libpecos', 'train_cpu_s', 0)} % of libpecos'")
    for where in (page, "docs/migrate/pecos.md"):
        says(where, f"in {beside(fast, 'libpecos', 'train_cpu_s', 0)} % of its")
    says(page, f"{min(queries):.0f} to {max(queries):.0f} µs per query in a batch")
    says(page, f"{beside(default, 'libpecos', 'query_us', 1)} times what libpecos' single tree takes")
    says(page, f"{beside(default, 'libpecos', 'model_bytes', 1)} times as large as one tree of libpecos")
    says(page, f"{beside(default, 'bm25s', 'model_bytes', 1)} times as large as bm25s")
    times = [results[f"{s}/{default}-1"]["query_us"] / results[f"{s}/{fast}-1"]["query_us"] for s in sets]
    for where in ("docs/guide/settings.md", "docs/guide/slow-or-wrong.md"):
        says(where, f"{min(times):.0f} to {max(times):.0f} times as quick")

    same = json.loads((HOME / "bench" / "results" / "against_pecos.json").read_text())["results"]
    for part, sentence in (("python", "times as quickly as by libpecos"), ("batch", "times")):
        ratios = [
            min(found[part][f"libpecos {kind}"]["median"] for kind in ("binary", "hash"))
            / found[part]["ours huge"]["median"]
            for name, found in same.items()
            if ":" not in name
        ]
        for where in (page, "docs/migrate/pecos.md"):
            says(where, f"{min(ratios):.0f} to {max(ratios):.0f} {sentence}")
