"""Texts of labels: words for labels that have rows, and a way to be found for labels that have none."""

from __future__ import annotations

from typing import Any

import pytest

import beamwood as bw
from beamwood.errors import BeamwoodWarning, DataError
from beamwood.lexical.label_texts import in_words

TEXTS = ["red wool socks", "blue cotton hat", "red wool hat", "green socks", "blue wool", "cotton socks"]
KEYS = [["socks", "wool"], ["hat"], ["hat", "wool"], ["socks"], ["wool"], ["socks"]]


def trained(**more: Any) -> bw.Model:
    return bw.train_text(TEXTS, KEYS, preset="fast", progress=False, threads=1, **more)


def test_a_label_without_rows_is_found_by_its_text() -> None:
    model = trained(label_texts={"kayak": "a narrow boat with a paddle", "hat": "for the head"})
    assert model.n_labels == 4
    hits = model.search("paddle boat")
    assert hits[0].key == "kayak"
    assert hits[0].found_by in ("words", "both")
    assert model.search("red wool socks")[0].key in ("socks", "wool")
    assert model.search("head")[0].key == "hat"


def test_words_of_another_language_find_nothing() -> None:
    assert trained(label_texts={"kayak": "a narrow boat"}).search("пример текста") == []


def test_an_empty_text_is_no_error_but_says_nothing() -> None:
    with pytest.warns(BeamwoodWarning, match="1 of 4 labels have no row and no word"):
        model = trained(label_texts={"kayak": "", "hat": "head"})
    assert model.n_labels == 4
    assert model.search("kayak") == []


def test_a_text_that_nothing_reads_is_told() -> None:
    """Without words a label that has only a text is never found."""
    with pytest.warns(BeamwoodWarning, match="1 of 4 labels have no row: they stay and rank last"):
        trained(label_texts={"kayak": "a narrow boat", "hat": "head"}, lexical=False)


@pytest.mark.parametrize(
    "wrong", ["kayak", ["kayak"], [("kayak", "boat")], 3, {"kayak": None}, {"kayak": 3}, {3: "a"}, {"": "a"}]
)
def test_texts_of_the_wrong_type_are_refused(wrong: Any) -> None:
    with pytest.raises(DataError, match="expected"):
        trained(label_texts=wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lexical": True}, "kept as asked for; too few rows to tell what words gain"),
        (
            {"label_texts": {"kayak": "boat"}},
            "kept for labels that have only a text; too few rows to tell what words gain",
        ),
        ({"lexical": "auto"}, "left out; too few rows to tell what words gain"),
    ],
)
def test_people_are_told_why_words_stay_or_go(given: Any, said: str) -> None:
    assert in_words(trained(**given).info()["lexical"]) == f"words of labels: {said}"
