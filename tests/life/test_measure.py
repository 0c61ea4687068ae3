"""`Model.evaluate` says what `evaluate` says of its answers; `train --valid` measures on rows that were held back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw

TEXTS = [f"word{i % 7} word{i % 11} common" for i in range(80)]
LABELS = [[f"l{i % 7}", f"m{i % 11}"] for i in range(80)]


def test_matrices_and_texts_in_one_call() -> None:
    X, Y = random_problem(200, 40, 15, seed=4)
    model = bw.train(X[:150], Y[:150], preset="fast", progress=False)
    found = model.evaluate(X[150:], Y[150:], at=(1, 5))
    counts = model.rows_of_label
    assert found == bw.evaluate(model.topk(X[150:], k=5), Y[150:], at=(1, 5), rows_of_label=counts)
    assert found.by_rows.keys() == {"head", "middle", "tail"}
    words = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    measured = words.evaluate([*TEXTS[:10], "zeppelin"], [*LABELS[:10], ["l1"]], at=1)
    assert measured.rows == 11
    hits = [words.search(text, k=1) for text in TEXTS[:10]]
    right = sum(hit[0].key in keys for hit, keys in zip(hits, LABELS, strict=False))
    assert measured.precision[1] == right / 11  # nothing is found for the text without a known word


def test_labels_that_the_model_lacks_are_missed() -> None:
    model = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    known, unknown = model.evaluate(TEXTS[:5], LABELS[:5]), model.evaluate(TEXTS[:5], [[*k, "new"] for k in LABELS[:5]])
    assert unknown.recall[10] == pytest.approx(known.recall[10] * 2 / 3)
    with pytest.raises(bw.DataError, match="4 rows and X 5"):
        model.evaluate(TEXTS[:5], LABELS[:4])


def command(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "beamwood", "train", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_train_holds_rows_back_and_measures_on_them(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": t, "labels": k}) + "\n" for t, k in zip(TEXTS, LABELS, strict=True))
    (tmp_path / "rows.jsonl").write_text(rows)
    how = (tmp_path / "rows.jsonl", "--preset", "fast", "--valid")
    said = command(*how, "25%", "-o", tmp_path / "a.bw", "--json", "--report", tmp_path / "report.json")
    found = json.loads(said.stdout)
    assert found["valid"]["rows"] == 20
    assert found["report"]["rows"] == 60
    assert json.loads((tmp_path / "report.json").read_text())["valid"] == found["valid"]
    held = np.zeros(80, bool)
    held[np.random.default_rng(0).permutation(80)[:20]] = True
    again = bw.load(tmp_path / "a.bw").evaluate(
        [t for t, h in zip(TEXTS, held, strict=True) if h], [k for k, h in zip(LABELS, held, strict=True) if h]
    )
    assert found["valid"]["precision@1"] == again.precision[1]
    shown = command(*how, "0.25", "-o", tmp_path / "b.bw", "-q")
    assert "20 rows that were held back" in shown.stdout
    assert (tmp_path / "a.bw").read_bytes() == (tmp_path / "b.bw").read_bytes()
    for share in ("0", "100%", "many"):
        assert "--valid is" in command(*how, share, "-o", tmp_path / "c.bw").stderr
    assert "holds back 0 of 80 rows" in command(*how, "0.1%", "-o", tmp_path / "c.bw").stderr


def test_train_holds_rows_of_matrices_back(tmp_path: Path) -> None:
    X, Y = random_problem(100, 40, 15, seed=4)
    sp.save_npz(tmp_path / "X.npz", X)
    sp.save_npz(tmp_path / "Y.npz", Y)
    said = command(
        "--x", tmp_path / "X.npz", "--y", tmp_path / "Y.npz", "-o", tmp_path / "m.bw", "--valid", "10%", "--json"
    )
    assert json.loads(said.stdout)["valid"]["rows"] == 10
