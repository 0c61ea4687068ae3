"""`beamwood index`: documents or vectors in, a model file out; and what the other verbs make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import beamwood as bw
from beamwood.cli.app import app

ROWS = [
    {"id": "A1", "text": "red wool socks"},
    {"id": "A2", "text": "blue cotton hat"},
    {"id": "A1", "text": "for cold feet"},
]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def run(*words: str, code: int = 0) -> Any:
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == code, ran.output
    return ran


def test_rows_of_one_key_are_one_document() -> None:
    Path("names.tsv").write_text("A1\tSocks\n")
    run("index", "rows.jsonl", "-o", "m.bw", "--key-column", "id", "--labels-file", "names.tsv")
    model = bw.load("m.bw")
    assert [(hit.key, hit.name) for hit in model.search("cold socks")] == [("A1", "Socks")]
    assert json.loads(run("search", "m.bw", "hat", "--json").stdout)["hits"][0]["key"] == "A2"
    assert "exact index" in run("inspect", "m.bw").stdout
    assert json.loads(run("inspect", "m.bw", "--json").stdout)["index"]["nonzeros"] == model.info()["nonzeros"]
    shown = run("explain", "m.bw", "wool", "--label", "A1").stdout
    assert "the label's own words: " in shown
    assert "layer" not in shown


def test_rows_without_a_key_are_numbered() -> None:
    found = json.loads(run("index", "rows.jsonl", "-o", "m.bw", "--json", "--weights", "u8").stdout)
    assert (found["labels"], found["output"]) == (3, "m.bw")
    assert bw.load("m.bw").search("feet")[0].key == "2"


def test_rows_of_a_matrix_are_labels() -> None:
    sp.save_npz("W.npz", sp.csr_array(np.eye(4)))
    run("index", "--x", "W.npz", "-o", "m.bw")
    assert bw.load("m.bw").topk(np.eye(4), 1)[0].tolist() == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("rows.jsonl",), 2, "-o model.bw"),
        (("rows.jsonl", "-o", "m.bw", "--weights", "u4"), 1, "weights is 'u4'"),
        (("rows.jsonl", "-o", "m.bw", "--key-column", "text2"), 1, "text2"),
        (("empty.jsonl", "-o", "m.bw"), 1, "no rows"),
        (("rows.jsonl", "-o", "m.bw", "--b", "2"), 2, "--b"),
    ],
)
def test_mistakes_are_said_in_a_line(words: tuple[str, ...], code: int, said: str) -> None:
    Path("empty.jsonl").touch()
    assert said in run("index", *words, code=code).output
    assert not Path("m.bw").exists()
