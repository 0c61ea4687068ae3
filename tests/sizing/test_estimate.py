"""`beamwood estimate`: within a factor of two of what was measured; counts from data or from options; refusals."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.commands import fails, good

from beamwood.sizing.estimate import Counts, advice, expected

HOME = Path(__file__).parents[2]
RESULTS = HOME / "bench" / "results"
CALCULATOR = HOME / "docs" / "guide" / "calculator.js"
COUNTS = {name: Counts(**counts) for name, counts in json.loads((RESULTS / "set_counts.json").read_text()).items()}
NPM = Counts(rows=2_358_561, labels=1_679_667, words=2.6, labels_per_row=1.0)  # docs/howto/large.md


@pytest.mark.parametrize("name", COUNTS)
def test_estimates_are_within_a_factor_of_two_of_what_was_measured(name: str) -> None:
    measured = json.loads((RESULTS / "train_quality.json").read_text())
    for each in expected(COUNTS[name]):
        found = measured[f"{name}/beamwood-{each.preset}-1"]
        for told, truth in (
            (each.training_s, found["train_cpu_s"]),
            (each.file, found["model_bytes"]),
            (each.query_us, found["query_us"]),
            (each.memory, found["peak_bytes"]),
        ):
            assert 0.5 < told / truth < 2, (name, each.preset, told, truth)


def test_estimates_hold_for_a_million_labels() -> None:
    fast = expected(NPM)[0]
    assert 16 < fast.training_s < 66
    assert 0.35e9 < fast.memory < 1.4e9
    assert 87e6 < fast.file < 348e6
    assert 5.5 < fast.query_us < 22


def test_counts_come_from_the_data(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"text": "red wool socks", "labels": ["socks", "wool"]}\n{"text": "straw hat", "labels": ["hats"]}\n'
    )
    found = json.loads(good("estimate", rows, "--json"))
    assert found["counts"] == {"rows": 2, "labels": 3, "words": 2.5, "labels_per_row": 1.5}
    assert [each["preset"] for each in found["presets"]] == ["fast", "balanced", "best"]
    assert "3 labels" in good("estimate", rows)


def test_counts_come_from_options() -> None:
    out = good("estimate", "--rows", "199560", "--labels", "19913", "--words", "10", "--labels-per-row", "2.9")
    assert "balanced  22 s" in out


def test_what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a hat", "labels": []}\n')
    assert "--labels" in fails("estimate", "--rows", "5")
    assert "counts" in fails("estimate", tmp_path / "rows.jsonl", "--rows", "5")
    assert "no labels" in fails("estimate", tmp_path / "rows.jsonl")
    for rows, labels in (("-1", "5"), ("nan", "5"), ("inf", "5"), ("3", "5")):
        said = fails("estimate", f"--rows={rows}", "--labels", labels, "--words", "3", "--labels-per-row", "1")
        assert "expected" in said


def test_advice_knows_few_rows_long_rows_and_few_labels() -> None:
    assert "--label-texts" in advice(Counts(50_000, 40_000, 8, 1))[0]
    assert "one-vs-rest" in advice(Counts(50_000, 20, 8, 1))[0]
    assert "long" in advice(Counts(500_000, 2_000, 90, 1))[0]
    assert "defaults" in advice(Counts(500_000, 2_000, 9, 1))[0]


def test_the_page_counts_as_the_command_does() -> None:
    """The script of docs/guide/settings.md, run by node; without node its rates only are compared."""
    script = CALCULATOR.read_text(encoding="utf-8")
    told = json.loads(re.search(r"const RATES = (\{.*?\});", script, re.DOTALL)[1])  # type: ignore[index]
    from beamwood.sizing import estimate

    assert told == {name: list(rates) for name, rates in estimate.RATES.items()}
    assert f"const TRAINING = {json.dumps(estimate.TRAINING)}, FILE = {json.dumps(estimate.FILE)}" in script
    try:
        subprocess.run(["node", "--version"], check=True, capture_output=True)
    except OSError:
        return
    for counts in COUNTS.values():
        call = f"{script}\nconsole.log(JSON.stringify(expected({json.dumps(vars(counts))})));"
        ran = subprocess.run(["node", "-e", call], check=True, capture_output=True, text=True)
        for theirs, ours in zip(json.loads(ran.stdout), expected(counts), strict=True):
            assert theirs.pop("preset") == ours.preset
            assert theirs == pytest.approx({name: value for name, value in vars(ours).items() if name != "preset"})
