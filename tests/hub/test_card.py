"""A model card says what is known of a model, and nothing else; what its maker hands in cannot break it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import small_model
from support.serving import shop

import beamwood as bw
from beamwood.errors import FormatError
from beamwood.hub import cache
from beamwood.hub.card import card

TEXTS = ["red wool socks", "blue wool hat", "leather boots", "rain boots"] * 30
LABELS = [["socks"], ["hat"], ["boots"], ["boots"]] * 30


def test_a_card_of_a_text_model_says_how_to_search_and_what_was_measured() -> None:
    model = bw.train_text(TEXTS, LABELS, preset="fast", progress=False)
    said = card(model, "org/shop", data="Orders.", measures=model.evaluate(TEXTS, LABELS), license="apache-2.0")
    assert 'bw.load("hf://org/shop")' in said
    assert 'model.search("some words", k=10)' in said
    assert 'license: "apache-2.0"' in said
    assert "## Data\n\nOrders." in said
    assert "training rows | 120" in said
    assert "labels with rows | 3" in said
    assert "model-index: " in said
    assert "| precision@1 | 100.00 |" in said
    assert "| preset | `fast` |" in said
    assert "they are no probabilities" in said
    assert "Some of its labels: `boots`, `hat`, `socks`." in said


def test_a_card_of_numbers_says_what_is_not_known() -> None:
    said = card(small_model(), "org/rows", language=["en", "fi"], file="other.bw")
    assert 'language: ["en", "fi"]' in said
    assert 'bw.load("hf://org/rows/other.bw")' in said
    assert "model.topk(X, k=10)" in said
    assert "## Data\n\nNot described." in said
    assert "## Measures\n\nNot measured." in said
    assert "## Settings\n\nNot known." in said
    assert "license" not in said.partition("---\n\n")[0]


def test_a_card_of_an_index_and_of_many_labels() -> None:
    said = card(bw.index(np.eye(12, dtype=np.float32)), language="en")
    assert "an exact index" in said
    assert ", …" in said
    assert "several trees" not in said
    assert "2 trees" in card(bw.Model.from_trees([small_model(), small_model()]))


def test_a_calibrated_model_has_its_probabilities_and_its_cut_on_the_card() -> None:
    model = bw.train_text(TEXTS, LABELS, preset="fast", progress=False).calibrate(TEXTS, LABELS)
    assert "Calibrated on held-out rows" in card(model)
    assert "cut for f1" in card(model.cut(TEXTS, LABELS))


def test_words_of_labels_are_on_the_card() -> None:
    model = bw.train_text(TEXTS, LABELS, lexical=True, progress=False)
    assert "words" in card(model, measures={"P@1": 0.5}).partition("## Use")[0]


def test_a_name_can_do_no_more_than_be_read() -> None:
    model = small_model().with_names([f"a`|<script>\n{number}" for number in range(small_model().n_labels)])
    said = card(model, measures={"a|b": 0.5})
    assert "<script>" not in said
    assert "| a b | 50.00 |" in said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"license": "a b"}, "license is 'a b'; expected a short name"),
        ({"language": ["en", 5]}, "language is .*; expected a short name"),
        ({"measures": [1.0]}, "measures is a list; expected what model.evaluate gives"),
        ({"measures": {"P@1": "high"}}, "measures is a dict; expected what model.evaluate gives"),
    ],
)
def test_what_cannot_stand_on_a_card_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(bw.SettingsError, match=message):
        card(shop(), **given)


def test_the_cache_lets_go_of_what_was_not_used_for_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAMWOOD_CACHE", str(tmp_path))
    monkeypatch.setenv("BEAMWOOD_CACHE_SIZE", "3k")
    web, hub = cache.folder("web"), cache.folder("hub") / "models--org--shop"
    blobs, snapshot = hub / "blobs", hub / "snapshots" / "main"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (snapshot / "README.md").write_text("kept")
    for age, path in enumerate([web / "new.bw", web / "old.bw", blobs / "older", blobs / "oldest"]):
        path.write_bytes(bytes(2000))
        os.utime(path, (10**9 - age, 10**9 - age))
    (snapshot / "older.bw").symlink_to(blobs / "older")
    (snapshot / "oldest.bw").symlink_to(blobs / "oldest")
    cache.trim(blobs / "oldest")
    assert [path.exists() for path in (web / "new.bw", web / "old.bw", blobs / "older", blobs / "oldest")] == [
        False,
        False,
        False,
        True,
    ]
    assert sorted(path.name for path in snapshot.iterdir()) == ["README.md", "oldest.bw"]
    cache.trim(blobs / "oldest")
    assert (blobs / "oldest").exists()


def test_a_cache_that_cannot_be_written_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BEAMWOOD_CACHE", str(tmp_path / "file"))
    with pytest.raises(FormatError, match=r"cannot be made: .*Name another with BEAMWOOD_CACHE"):
        cache.folder("web")
    full = cache.full_disk(OSError(28, "No space left on device"), "It", None)
    assert str(full) == "It does not fit on the disk. Free room or name another folder with BEAMWOOD_CACHE."
    assert "Free 5,000 bytes" in str(cache.full_disk(OSError(28, "No space left on device"), "It", 5000))
    assert "Permission denied" in str(cache.full_disk(PermissionError(13, "Permission denied"), "It", 5))
