"""`beamwood convert`, and the list of kinds behind it: what a folder is, what was found, what a shell sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.foreign import GOLDEN, golden_rows
from support.models import small_model

import beamwood as bw
from beamwood.interop.convert import kind_of, read

FOLDERS = {"pecos": "pecos", "napkin_l2": "napkinxc", "omikuji_LOG": "omikuji", "vec": "pecos-text"}


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "beamwood", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_kind_of_a_folder_is_guessed(folder: str) -> None:
    assert kind_of(GOLDEN / "small" / folder) == FOLDERS[folder]


def test_the_verb_brings_a_model_in_and_takes_it_out_again(tmp_path: Path) -> None:
    model = tmp_path / "m.bw"
    said = run("convert", GOLDEN / "small" / "omikuji_HINGE", model)
    assert "omikuji, 45 labels, 80 features, 2 trees of up to 5 layers, log-hinge-2" in said.stdout
    assert "note: the largest leaf has 5 labels" in said.stderr
    again = json.loads(run("convert", GOLDEN / "small" / "omikuji_HINGE", model, "--force", "--json").stdout)
    assert again["kind"] == "omikuji"
    assert again["unit_rows"] is True
    assert again["found"]["largest_leaf"] == 5
    run("convert", model, tmp_path / "out", "--to", "omikuji")
    back = read(tmp_path / "out").model
    X = golden_rows("small")
    for one, other in zip(bw.load(model).topk(X), back.topk(X), strict=True):
        assert one.tobytes() == other.tobytes()


def test_pecos_to_napkinxc_is_two_steps(tmp_path: Path) -> None:
    """The stand-in for a converter between two other programs; hinge-2 is what both know."""
    small_model(activation="hinge-2").save(tmp_path / "a.bw")
    run("convert", tmp_path / "a.bw", tmp_path / "pecos", "--to", "pecos")
    run("convert", tmp_path / "pecos", tmp_path / "b.bw")
    run("convert", tmp_path / "b.bw", tmp_path / "napkin", "--to", "napkinxc")
    run("convert", tmp_path / "napkin", tmp_path / "c.bw", "--features", 50)
    one, other = bw.load(tmp_path / "a.bw"), bw.load(tmp_path / "c.bw")
    X = golden_rows("small")[:, :50]
    for left, right in zip(one.topk(X, exact=True), other.topk(X, exact=True), strict=True):
        assert left.tobytes() == right.tobytes()


def test_text_features_and_names_come_with_the_model(tmp_path: Path) -> None:
    text = read_columns()
    layer = bw.Layer(np_weights(text, 3), np.zeros(3, np.int64))
    bw.Model.from_layers([layer], activation="hinge-3").save(tmp_path / "a.bw")
    run("convert", tmp_path / "a.bw", tmp_path / "pecos", "--to", "pecos")
    (tmp_path / "labels.tsv").write_text("k0\tfirst\nk1\tsecond\nk2\tthird\n")
    more = ("--text", GOLDEN / "small" / "vec", "--labels-file", tmp_path / "labels.tsv")
    run("convert", tmp_path / "pecos", tmp_path / "b.bw", *more)
    hits = bw.load(tmp_path / "b.bw").search("Red apple", k=3)
    assert {hit.name for hit in hits} == {"first", "second", "third"}
    (tmp_path / "labels.tsv").write_text("k0\tfirst\n")
    failed = run("convert", tmp_path / "pecos", tmp_path / "c.bw", *more, code=1)
    assert "1 lines; expected 3" in failed.stderr
    assert not (tmp_path / "c.bw").exists()


def read_columns() -> int:
    from beamwood.interop.convert import read_text

    return read_text(GOLDEN / "small" / "vec").text.columns


def np_weights(features: int, nodes: int) -> object:
    from support.models import sparse

    return sparse(features, nodes, 0.9, 4)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nothing-here", "m.bw"), 1, "nothing is there; expected a folder"),
        ((GOLDEN, "m.bw"), 1, "looks like no known folder"),
        ((GOLDEN / "small" / "vec", "m.bw"), 1, "holds text features; expected a model"),
        ((GOLDEN / "small" / "pecos", "m.bw", "--from", "omikuji"), 1, "settings.json: the file is not there"),
        ((GOLDEN / "small" / "pecos", "m.bw", "--from", "word2vec"), 1, "kind is 'word2vec'; expected one of"),
        ((GOLDEN / "small" / "pecos", "m.bw", "--tree", "0"), 2, "--tree is given without --to"),
        ((GOLDEN / "small" / "pecos", "there.bw"), 1, "is there already. Give another name"),
        (("there.bw", "out", "--to", "tensorflow"), 1, "kind is 'tensorflow', which models cannot be written as"),
        (("there.bw", "folder", "--to", "pecos"), 1, "is there already. Give another name"),
        (("there.bw", "no/folder", "--to", "pecos"), 1, "does not exist. Make it first"),
        (("there.bw", "out", "--to", "napkinxc"), 1, "cannot be written for it"),
    ],
)
def test_what_cannot_be_converted_is_one_line(
    words: tuple[object, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_model(activation="hinge-3").save("there.bw")
    Path("folder").mkdir()
    before = sorted(Path().iterdir())
    failed = run("convert", *words, code=code)
    assert message in " ".join(failed.stderr.split())
    assert sorted(Path().iterdir()) == before
