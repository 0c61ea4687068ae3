"""The options of `beamwood train` that say what a word is, and what becomes of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import fails, good

import beamwood as bw

ROWS = [
    ("Café Müller, coffee", "coffee"),
    ("villaiset sukat", "socks"),
    ("the C++ compiler", "c++"),
    ("a C compiler", "c"),
]


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": text, "labels": [label]}) + "\n" for text, label in ROWS]
    Path("rows.jsonl").write_text("".join(lines))


TRAIN = ("train", "rows.jsonl", "-o", "m.bw", "--preset", "fast", "-q")


def test_options_are_those_of_the_library() -> None:
    Path("stop.txt").write_text("the\n\nvillaiset\n")
    words = ("--fold-accents", "--stem", "finnish", "--signs", "--single-letters", "--max-df", "0.9")
    good(*TRAIN, *words, "--stop-words", "stop.txt", "--no-segment", "--no-typos")
    text = bw.TextFeatures(
        **{"fold_accents": True, "stem": "finnish", "signs": True, "single_letters": True, "max_df": 0.9},
        **{"stop_words": ["the", "villaiset"], "segment": False, "typos": False},
    )
    texts, labels = [text for text, _ in ROWS], [[label] for _, label in ROWS]
    bw.train_text(texts, labels, text=text, preset="fast", progress=False).save("same.bw")
    assert Path("m.bw").read_bytes() == Path("same.bw").read_bytes()


def test_what_people_type_finds_what_they_mean() -> None:
    good(*TRAIN, "--fold-accents", "--stem", "finnish", "--signs", "--single-letters", "--chars", "3-3")
    model = bw.load("m.bw")
    assert [model.search(text)[0].key for text in ("cafe muller", "sukkia", "C++", "C")] == [
        "coffee",
        "socks",
        "c++",
        "c",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stem", "klingon"), "stem is 'klingon'; expected one of arabic,"),
        (("--stop-words", "klingon"), "--stop-words is klingon; expected one of danish,"),
        (("--max-df", "most"), "--max-df is most; expected a number of texts or a share"),
        (("--max-df", "1.5"), "max_df is 1.5; expected"),
    ],
)
def test_wrong_values_are_named(words: tuple[str, ...], said: str) -> None:
    assert said in fails(*TRAIN, *words)


def test_a_tokenizer_of_one_s_own_is_asked_for() -> None:
    own = bw.TextFeatures(tokenizer=str.split)
    texts, labels = [text for text, _ in ROWS], [[label] for _, label in ROWS]
    bw.train_text(texts, labels, text=own, preset="fast", progress=False).save("own.bw")
    assert "expected that function" in fails("search", "own.bw", "coffee")
