"""What a user writes on a model goes with it, changes no answer, and is never written by itself."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import laws
import pytest
from support.commands import fails, good
from support.models import small_model, small_queries
from support.serving import shop

import beamwood as bw
from beamwood.storage import notes

WRITTEN = {"data": "orders of May", "date": "2026-11-18", "who": "Zoë"}


def test_notes_go_wherever_the_model_goes(tmp_path: Path) -> None:
    model = small_model().with_notes(WRITTEN)
    path = tmp_path / "model.bw"
    model.save(path)
    carried = [bw.load(path), bw.load(path, memory="read"), pickle.loads(pickle.dumps(model)), model.with_beam(3)]
    carried += [model.using(layout="chunk"), model.compress(weights="f16"), model.with_unit_rows()]
    carried += [model.remove_labels([0]), bw.load(path, verify=True)]
    for other in carried:
        assert other.notes == other.info()["notes"] == WRITTEN


def test_notes_change_the_version_and_no_answer() -> None:
    plain, noted = small_model(), small_model().with_notes(WRITTEN)
    assert plain.notes == {}
    assert plain.version == small_model().version != noted.version
    laws.check_same(plain.topk(small_queries()), noted.topk(small_queries()))


def test_a_note_replaces_its_like_and_an_empty_one_takes_it_away(tmp_path: Path) -> None:
    model = small_model().with_notes(WRITTEN).with_notes({"data": "orders of June", "who": ""})
    assert model.notes == {"data": "orders of June", "date": "2026-11-18"}
    bare = model.with_notes(dict.fromkeys(model.notes, ""))
    assert bare.version == small_model().version


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("May", "notes is a str; expected a mapping of names to texts"),
        ({"date": 18}, "the note 'date' is a int; expected a str"),
        ({5: "five"}, "the name of a note is a int; expected a str"),
        ({"": "nothing"}, "the name of a note is empty; expected a word"),
        ({"long": "x" * 1001}, "the note 'long' has 1,001 characters; expected at most 1,000"),
        ({"n" * 61: "x"}, "the name of a note has 61 characters; expected at most 60"),
        ({"half": "\ud800"}, "the note 'half' has a lone surrogate; expected text"),
        ({str(number): "x" for number in range(33)}, "there are 33 notes; expected at most 32"),
    ],
)
def test_what_is_no_note_is_refused(given: object, message: str) -> None:
    with pytest.raises(bw.SettingsError, match=message):
        small_model().with_notes(given)


def test_damaged_notes_are_a_damaged_file() -> None:
    assert notes.read(None) == {}
    with pytest.raises(ValueError, match="notes is a list"):
        notes.read(["data"])


def test_the_command_line_writes_and_shows_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text('{"text": "red wool socks", "labels": ["socks"]}\n' * 3)
    good("train", "rows.jsonl", "-o", "model.bw", "-q", "--note", "data=orders = 7", "--note", "date=2026-11-18\x1b[2J")
    assert bw.load("model.bw").notes == {"data": "orders = 7", "date": "2026-11-18\x1b[2J"}
    shown = good("inspect", "model.bw")
    assert "data: orders = 7\n" in shown
    assert "date: 2026-11-18\\x1b[2J\n" in shown
    assert json.loads(good("inspect", "model.bw", "--json"))["notes"]["data"] == "orders = 7"
    assert "expected NAME=TEXT" in fails("train", "rows.jsonl", "-o", "other.bw", "--note", "May", code=2)


def test_most_notes_fit_the_room_of_a_streamed_file() -> None:
    most = {f"{number:02}" + "n" * 58: "x" * 1000 for number in range(notes.MOST_NOTES)}
    assert shop().with_notes(most).notes == most
