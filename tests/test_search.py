"""Text in, names out: search answers as the matrix path does, with names, through save and load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import beamwood as bw

TEXTS = [
    "red wool socks for winter",
    "blue cotton socks",
    "wool hat with ear flaps",
    "straw hat for the summer",
    "rubber boots for rain",
    "leather boots with wool lining",
    "summer sandals of leather",
    "красные шерстяные носки",
    "帽子 wool 冬",
] * 3
LABELS = [
    ["socks", "wool"],
    ["socks"],
    ["hats", "wool"],
    ["hats", "summer"],
    ["boots"],
    ["boots", "wool"],
    ["sandals", "summer"],
    ["socks", "wool"],
    ["hats", "wool"],
] * 3
NAMES = {"socks": "Socks & stockings", "hats": "Hats\tand caps 🎩\n", "wool": "Made of wool"}


@pytest.fixture(scope="module")
def model() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, preset="fast", names=NAMES, branching=2, max_leaf=2, progress=False)


def test_search_finds_labels_by_words_and_shows_their_names(model: bw.Model) -> None:
    hits = model.search("warm wool socks", k=3)
    assert {hit.key for hit in hits[:2]} == {"socks", "wool"}
    assert {hit.key: hit.name for hit in hits}["socks"] == NAMES["socks"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(model.key(hit.label) == hit.key and model.name(hit.label) == hit.name for hit in hits)


@pytest.mark.parametrize("layout", ["chunk", "column", "cascade"])
def test_search_gives_the_bits_of_topk_on_the_transformed_text(model: bw.Model, layout: str) -> None:
    engine = model.using(layout=layout)
    labels, scores = model.topk(engine.transform(TEXTS[:9]), k=4, beam=3)
    for i, text in enumerate(TEXTS[:9]):
        hits = engine.search(text, k=4, beam=3)
        found = labels[i] >= 0
        assert [hit.label for hit in hits] == labels[i][found].tolist()
        assert np.array([hit.score for hit in hits], np.float32).tobytes() == scores[i][found].tobytes()


def test_many_texts_get_the_answers_of_one(model: bw.Model) -> None:
    texts = [*TEXTS[:9], "", "xyzzy"]
    assert model.search_many(texts, k=3, threads=2) == [model.search(text, k=3) for text in texts]


@pytest.mark.parametrize("text", ["", "   ", "xyzzy plugh", "\x00\x01", "\ud800", "🎩"])
def test_a_text_without_known_words_gives_an_empty_answer_that_says_so(model: bw.Model, text: str) -> None:
    hits = model.search(text)
    assert hits == []
    assert hits.known_terms == 0
    assert "no known words" in repr(hits)


def test_lone_surrogates_control_characters_and_long_texts_do_no_harm(model: bw.Model) -> None:
    expected = [hit.label for hit in model.search("wool")]
    assert [hit.label for hit in model.search("wool \ud83d \x07")] == expected
    assert [hit.label for hit in model.search("wool " * 2_000_000)] == expected


def test_min_score_leaves_out_weaker_hits(model: bw.Model) -> None:
    every = model.search("wool socks", k=6)
    bar = every[1].score
    assert model.search("wool socks", k=6, min_score=bar) == every[:2]
    assert model.search("wool socks", k=6, min_score=2.0) == []


def test_a_saved_model_searches_the_same(model: bw.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "shop.bw")
    for memory in ("map", "read", "huge"):
        again = bw.load(tmp_path / "shop.bw", memory=memory, verify=True)
        for text in TEXTS[:9]:
            assert again.search(text) == model.search(text)
    again.save(tmp_path / "again.bw")
    assert (tmp_path / "again.bw").read_bytes() == (tmp_path / "shop.bw").read_bytes()


def test_a_model_of_numbers_says_what_to_do_instead(model: bw.Model) -> None:
    bare = bw.Model.from_layers(model.layers(), activation="hinge-3")
    with pytest.raises(bw.SettingsError, match="with_text"):
        bare.search("socks")
    assert model.text is not None
    assert [hit.label for hit in bare.with_text(model.text).search("socks")] == [
        hit.label for hit in model.search("socks")
    ]


def test_what_is_not_a_text_is_refused(model: bw.Model) -> None:
    with pytest.raises(bw.DataError, match="search_many"):
        model.search(["socks", "hats"])
    with pytest.raises(bw.SettingsError, match="k is 0"):
        model.search("socks", k=0)


def test_texts_and_labels_must_fit_each_other() -> None:
    with pytest.raises(bw.DataError, match="2 texts and 1 lists"):
        bw.train_text(["a text", "another"], [["label"]], progress=False)
    with pytest.raises(bw.DataError, match="one string"):
        bw.train_text(["a text"], ["label"], progress=False)


def test_text_features_of_another_model_are_refused(model: bw.Model) -> None:
    with pytest.raises(bw.DataError, match="columns"):
        model.with_text(bw.TextFeatures().fit(["just two words"]))


def test_a_model_says_whether_it_takes_texts_and_makes_their_rows(model: bw.Model) -> None:
    assert model.has_text
    assert model.text is not None
    for texts in (TEXTS[:3], tuple(TEXTS[:3]), iter(TEXTS[:3])):
        assert np.array_equal(model.transform(texts, threads=1).toarray(), model.text.transform(TEXTS[:3]).toarray())
    numbers = bw.train(model.transform(TEXTS), np.eye(len(TEXTS), dtype=np.float32), preset="fast", progress=False)
    assert not numbers.has_text
    with pytest.raises(bw.SettingsError, match=r"trained from numbers and knows no words\. Use topk with a matrix"):
        numbers.transform(TEXTS)
    assert numbers.with_text(model.text).has_text
