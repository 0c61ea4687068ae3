"""A model file and labelled rows in, a calibrated model file out, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import beamwood as bw
from beamwood.cli.app import app

TEXTS = ["red wool socks", "blue cotton hat", "red wool hat", "green socks"] * 40
KEYS = [["socks", "wool"], ["hat"], ["hat", "wool"], ["socks"]] * 40


@pytest.fixture(name="folder")
def made_folder(tmp_path: Path) -> Path:
    bw.train_text(TEXTS, KEYS, preset="fast", progress=False).save(tmp_path / "shop.bw")
    rows = [json.dumps({"text": text, "labels": labels}) for text, labels in zip(TEXTS, KEYS, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    return tmp_path


def run(*words: str | Path) -> tuple[int, str]:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    return ran.exit_code, ran.output


def test_calibrate_writes_a_model_that_knows_probabilities_and_its_cut(folder: Path) -> None:
    code, said = run("calibrate", folder / "shop.bw", folder / "rows.jsonl", "-o", folder / "sure.bw", "--per", "label")
    assert code == 0, said
    assert "cut for f1" in said
    model = bw.load(folder / "sure.bw", verify=True)
    assert model.is_calibrated
    assert model.threshold is not None
    code, said = run("search", folder / "sure.bw", "green socks", "--threshold", "cut", "--json")
    hits = json.loads(said)["hits"]
    assert [hit["key"] for hit in hits] == ["socks"]
    assert hits[0]["probability"] > 0.5
    assert " %" in run("search", folder / "sure.bw", "green socks", "--threshold", "0.5")[1]


def test_predict_writes_as_many_labels_as_apply(folder: Path) -> None:
    run("calibrate", folder / "shop.bw", folder / "rows.jsonl", "-o", folder / "sure.bw", "--json")
    code, said = run(
        "predict", folder / "sure.bw", folder / "rows.jsonl", "-o", folder / "a.jsonl", "--threshold", "cut"
    )
    assert code == 0, said
    answers = [json.loads(line)["keys"] for line in (folder / "a.jsonl").read_text().splitlines()]
    assert [sorted(keys) for keys in answers] == KEYS


def test_mistakes_are_told_in_one_line(folder: Path) -> None:
    shop, rows = folder / "shop.bw", folder / "rows.jsonl"
    for words, said in (
        (("calibrate", shop, rows), "Give -o"),
        (("calibrate", shop, rows, "-o", shop), "is there already"),
        (("calibrate", shop, rows, "-o", folder / "n.bw", "--cut", "f3"), "for_ is 'f3'"),
        (("calibrate", shop, rows, "-o", folder / "n.bw", "--per", "row"), "per is 'row'"),
        (("search", shop, "socks", "--threshold", "much"), "--threshold is much"),
        (("search", shop, "socks", "--threshold", "cut"), "has no cut"),
        (("search", shop, "socks", "--threshold", "0.5"), "not calibrated"),
    ):
        code, output = run(*words)
        assert code in (1, 2)
        assert said in " ".join(output.replace("│", " ").split())
    assert not (folder / "n.bw").exists()
