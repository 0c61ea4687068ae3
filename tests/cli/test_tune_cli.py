"""Searching settings, folds and probabilities from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import beamwood as bw
from beamwood.cli.app import app


@pytest.fixture(name="rows")
def made_rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.jsonl"
    with path.open("w") as out:
        for _ in range(700):
            a, b = rng.choice(12, 2, replace=False)
            line = {"text": f"word{a} word{b} noise{rng.integers(30)}", "labels": [f"label{a}", f"label{b}"]}
            print(json.dumps(line), file=out)
    return path


def run(*words: str | Path) -> tuple[int, str]:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    return ran.exit_code, ran.output


def test_tune_writes_a_model_a_plot_and_what_it_tried(rows: Path, tmp_path: Path) -> None:
    model, plot = tmp_path / "m.bw", tmp_path / "p.svg"
    code, said = run("tune", rows, "--budget", "8s", "--preset", "fast", "-o", model, "--plot", plot, "--json")
    assert code == 0, said
    told = json.loads(said)
    assert told["trials"][0]["name"] == "as given"
    assert told["held_rows"] == 70
    assert bw.load(model).n_labels == 12
    assert plot.read_text().lstrip().startswith("<?xml")
    assert run("tune", rows, "-o", model)[0] == 1  # it is there already


def test_ctrl_c_still_writes_a_model(rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.bw"
    words = ["tune", str(rows), "--budget", "10m", "--preset", "best", "-o", str(model)]
    command = [sys.executable, "-m", "beamwood", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("as given"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait() == 0, rest
    assert bw.load(model).n_labels == 12


def test_train_with_folds_and_probabilities(rows: Path, tmp_path: Path) -> None:
    model, report = tmp_path / "m.bw", tmp_path / "r.json"
    words = ("--preset", "fast", "--folds", "3", "--calibrate", "30%", "--report", report)
    code, said = run("train", rows, "-o", model, *words)
    assert code == 0, said
    assert "3 folds of 700 rows" in said
    assert "calibration error at 1" in said
    told = json.loads(report.read_text())
    assert told["folds"]["precision@1"] > 0.5
    assert told["calibration"]["rows"] == 210
    assert bw.load(model).threshold is not None
    code, said = run("inspect", model)
    assert "calibration error at 5" in said
    assert "unknown terms" in said
    assert run("train", rows, "-o", tmp_path / "n.bw", "--calibrate", "lots")[0] == 2


def test_quiet_hides_progress_and_no_result(rows: Path, tmp_path: Path) -> None:
    code, said = run("train", rows, "-o", tmp_path / "m.bw", "--preset", "fast", "--folds", "2", "--valid", "10%", "-q")
    assert code == 0, said
    assert "2 folds of" in said
    assert "held back" in said
    assert "done in" not in said


def test_predict_writes_probabilities_in_every_format(rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.bw"
    run("train", rows, "-o", model, "--preset", "fast", "--calibrate", "30%", "--quiet")
    loaded, texts = bw.load(model), [json.loads(line)["text"] for line in rows.read_text().splitlines()]
    expected = [[hit.probability for hit in hits] for hits in loaded.search_many(texts, k=3)]
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        code, said = run("predict", model, rows, "-k", "3", "-o", tmp_path / name, "--quiet")
        assert code == 0, said
    lines = [json.loads(line)["probabilities"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(np.array(lines), np.array(expected), rtol=1e-6)
    head, *cells = (tmp_path / "a.csv").read_text().splitlines()
    assert head == "row,rank,key,score,probability"
    np.testing.assert_allclose([float(cell.split(",")[-1]) for cell in cells], np.ravel(expected), rtol=1e-6)
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "a.parquet")
    np.testing.assert_allclose(np.array(table["probabilities"].to_pylist()), np.array(expected), rtol=1e-6)
