"""The command line as a whole, inspect and bench: help, versions, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import VERBS, fails, good

import beamwood as bw


def test_import_of_the_library_does_not_import_the_command_line() -> None:
    code = "import sys, beamwood; print([m for m in ('typer', 'rich', 'sklearn', 'beamwood.cli') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_version() -> None:
    assert good("--version").strip() == f"beamwood {bw.__version__}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    help = good(verb, "--help")
    assert "Example" in help
    assert "beamwood" in help
    assert "<bool>" not in help, "flags take no value"


def test_the_help_lists_every_verb() -> None:
    listed = good("--help")
    assert all(verb in listed for verb in VERBS)


def test_the_tables_of_readme_and_manual_name_every_verb() -> None:
    root = Path(__file__).parents[2]
    rows = [line for line in (root / "docs" / "cli.md").read_text().splitlines() if line.startswith("| `")]
    verbs = {
        match.group(1) for match in re.finditer(r"^│ (\w+) ", good("--help").partition("Commands")[2], re.MULTILINE)
    }
    assert verbs == set(VERBS)
    assert {row.split("`")[1] for row in rows} == verbs
    readme = (root / "README.md").read_text()
    assert [verb for verb in verbs if f"`{verb}`" not in readme and f"beamwood {verb} " not in readme] == []


@pytest.mark.parametrize("words", [("grow",), ("train", "--nonsense"), ("search", "m.bw", "-k", "0", "x")])
def test_wrong_usage_is_exit_code_two(words: tuple[str, ...]) -> None:
    fails(*words, code=2)


# --- inspect and bench ----------------------------------------------------------------------------------------------


def test_inspect_shows_shape_sizes_and_weights(shop: Path) -> None:
    out = good("inspect", shop / "shop.bw", "--data", shop / "rows.jsonl", "--top", 2, "--verify")
    for expected in ("5 labels", "Nodes per layer", "Bytes by section", "Weights by size", "Most frequent labels"):
        assert expected in out


def test_inspect_shows_the_most_frequent_labels_of_the_training(shop: Path) -> None:
    found = json.loads(good("inspect", shop / "shop.bw", "--json", "--top", 3))["most_frequent"]
    assert found == [
        {"key": "boots", "name": "boots", "rows": 2},
        {"key": "cotton", "name": "cotton", "rows": 2},
        {"key": "shirts", "name": "shirts", "rows": 2},
    ]
    assert "Most frequent labels" in good("inspect", shop / "numbers.bw")
    bw.Model.from_layers(bw.load(shop / "shop.bw").layers(), activation="hinge-3").save("bare.bw")
    assert "Most frequent labels" not in good("inspect", "bare.bw")


def test_inspect_as_json_counts_every_weight(shop: Path) -> None:
    said = json.loads(good("inspect", shop / "numbers.bw", "--json"))
    assert sum(entry["count"] for entry in said["weights"]) == said["nonzeros"]
    assert said["text"] is None
    assert said["file_bytes"] == (shop / "numbers.bw").stat().st_size


def test_inspect_finds_damage(shop: Path) -> None:
    data = bytearray((shop / "shop.bw").read_bytes())
    data[-1] ^= 1
    data[-200] ^= 1
    Path("bad.bw").write_bytes(data)
    assert "damaged" in fails("inspect", "bad.bw", "--verify")


def test_bench_times_all_variants(shop: Path) -> None:
    words = ("bench", shop / "numbers.bw", "--x", shop / "X.npz", "-n", 20, "--rounds", 1)
    said = json.loads(good(*words, "--json"))
    assert said["same_bits"]
    assert len(said["variants"]) == 9
    assert all(time["batch"] >= 0 and time["online"] > 0 for time in said["variants"])
    out = good(*words, "-q")
    assert all(word in out for word in ("march", "binary", "hash", "dense", "cascade"))


def test_bench_on_texts_and_on_nothing(shop: Path) -> None:
    good("bench", shop / "shop.bw", shop / "rows.jsonl", "--rounds", 1, "-q")
    Path("empty.jsonl").write_text("")
    fails("bench", shop / "shop.bw", "empty.jsonl", code=2)
