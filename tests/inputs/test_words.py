"""Claims about words as people write them: accents, stems, stop words, signs, scripts without spaces, typing errors."""

from __future__ import annotations

import copy
import json
import pickle
import random
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain_words import neighbours, plain_row, plain_words, tables

import beamwood as bw
from beamwood import DataError, FormatError, SettingsError, TextBlock, TextFeatures, _core
from beamwood.inputs.text import FittedText
from beamwood.inputs.words.stop_words import LANGUAGES, stop_words

same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != _core.unicode_version, reason="this Python knows another Unicode"
)
ROWS = [
    ("image viewer for the desktop", ["viewer"]),
    ("an editor of images and photographs", ["editor"]),
    ("Café Müller serves coffee", ["cafe"]),
    ("villaiset sukat ja kengät", ["sukat"]),
    ("C++ compiler", ["c++"]),
    ("C compiler", ["c"]),
    ("日本文学史の入門", ["japan"]),
    ("ประวัติศาสตร์ไทย", ["thai"]),
]
TEXTS, LABELS = [text for text, _ in ROWS], [labels for _, labels in ROWS]


def model_of(**options: Any) -> bw.Model:
    return bw.train_text(TEXTS, LABELS, text=TextFeatures(**options), preset="fast", progress=False, threads=1)


def first(model: bw.Model, text: str) -> str | None:
    hits = model.search(text, k=1)
    return hits[0].key if hits else None


# --- what they are for ----------------------------------------------------------------------------------------------


def test_words_without_accents_find_words_with_them() -> None:
    assert first(model_of(fold_accents=True, typos=False), "cafe muller") == "cafe"
    assert first(model_of(typos=False), "cafe muller") is None


def test_another_form_of_a_word_finds_it() -> None:
    assert first(model_of(stem="finnish"), "sukkia") == "sukat"
    assert first(model_of(), "sukkia") is None
    assert first(model_of(stem="english", typos=False), "photograph") == "editor"


def test_signs_and_single_letters_tell_words_apart() -> None:
    model = model_of(signs=True, single_letters=True)
    assert (first(model, "C++"), first(model, "c")) == ("c++", "c")
    found = TextBlock(signs=True).terms("C++, C# (.NET) F#; g++. a+b x++y c#sharp end.Next ...and notepad++")
    assert found == ["c++", "c#", ".net", "f#", "g++", "sharp", "end", "next", "and", "notepad++"]


def test_texts_without_spaces_are_found_by_part_of_them() -> None:
    model = model_of()
    assert (first(model, "文学史"), first(model, "ไทย")) == ("japan", "thai")
    assert first(model_of(segment=False), "文学史") is None
    assert TextBlock().terms("C言語入門 漢 カタカナ 3版") == [
        "言語",
        "語入",
        "入門",
        "漢",
        "カタ",
        "タカ",
        "カナ",
        "版",
    ]


def test_stop_words_do_not_count() -> None:
    assert TextBlock(stop_words="english").terms("The History of jazz") == ["history", "jazz"]
    assert TextBlock(stop_words=["JAZZ"], stem="english").terms("the histories of jazz") == ["the", "histori", "of"]
    assert TextBlock(stop_words=["été"], fold_accents=True).terms("un ete chaud") == ["un", "chaud"]
    assert all(len(stop_words(language)) > 50 for language in LANGUAGES)


def test_typing_errors_find_what_was_meant() -> None:
    model = model_of()
    assert first(model, "imgae viewr") == "viewer"
    assert first(model_of(typos=False), "imgae viewr") is None
    assert model.search("imgae viewr") == model.search("image viewer")


# --- the core finds what plain Python finds, bit for bit -------------------------------------------------------------

TRICKY = (
    "ΣσςİIıiǅ'’.\u0307\u0301\u00ad_ \u00a0\u200b٣५①ªºßẞæØłŒþΑα1aB+#.(C\ud800\udc00😀\x00\x1f日本の漢ガｶﾞ\u3099ไทยกิ่ﷺ㌀가½"
)
CHARACTERS = st.one_of(st.characters(exclude_categories=["Cn"]), st.sampled_from(TRICKY), st.sampled_from("ab+# .C"))
FLAGS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("lowercase", "single_letters", "fold_accents", "signs", "segment")}
)


@same_unicode
@settings(max_examples=600, deadline=None)
@given(st.text(CHARACTERS, max_size=40), FLAGS, st.lists(st.sampled_from(["a", "ab", "日本", "c", "ss"]), max_size=3))
def test_words_are_those_of_plain_python(text: str, flags: dict[str, bool], stop: list[str]) -> None:
    assert TextBlock(**flags, stop_words=stop).terms(text) == plain_words(text, **flags, stop_words=stop)


@same_unicode
def test_every_character_folds_as_python_takes_it_apart() -> None:
    block = TextBlock(fold_accents=True, lowercase=False, single_letters=True, segment=False)
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char)[0] in "LMN" or tables.fold_of(char) != char:
            expected = plain_words(char, lowercase=False, single_letters=True, fold_accents=True)
            assert block.terms(char) == expected, hex(code)


@settings(max_examples=300, deadline=None)
@given(st.text(CHARACTERS, max_size=30), st.sampled_from(_core.stem_languages), st.booleans())
def test_a_stem_is_that_of_the_word_by_itself(text: str, language: str, fold: bool) -> None:
    words = TextBlock(fold_accents=fold).terms(text)
    stems = TextBlock(fold_accents=fold, stem=language).terms(text)
    assert len(stems) == len(words)
    lone = TextBlock(stem=language, segment=False)
    for word, stem in zip(words, stems, strict=True):
        if TextBlock(segment=False).terms(word) == [word] and not any(tables.script_of(c) for c in word):
            assert lone.terms(word) == [stem]


def test_stems_are_snowball_s() -> None:
    """What snowballstemmer 2.2.0 says; with it installed, the next test asks it."""
    known = {
        "english": "consign consigned consigning consignment knightly knights generously",
        "german": "aufeinanderfolge aufeinanderfolgen kategorischer kategorischen",
        "finnish": "edeltäjien edeltäjiensä innostuivat",
        "russian": "важная важнейшие",
    }
    stems = {
        "english": "consign consign consign consign knight knight generous",
        "german": "aufeinanderfolg aufeinanderfolg kategor kategor",
        "finnish": "edeltäj edeltäjie innostuiv",
        "russian": "важн важн",
    }
    for language, words in known.items():
        assert TextBlock(stem=language).terms(words) == stems[language].split(), language


def test_stems_are_those_of_snowball_s_own_python() -> None:
    """Of the release that is pinned: later ones changed the rules of four languages."""
    theirs = pytest.importorskip("snowballstemmer")
    words = sorted({word for text in TEXTS for word in TextBlock().terms(text)} | set(stop_words("english")))
    words = [word for word in words if TextBlock(segment=False, single_letters=True).terms(word) == [word]]
    for language in set(theirs.algorithms()) & set(_core.stem_languages):
        stemmer = theirs.stemmer(language)
        block = TextBlock(stem=language, segment=False, single_letters=True)
        assert [block.terms(word)[:1] for word in words] == [[stemmer.stemWord(word)] for word in words], language


def test_very_long_words_and_runs_are_taken_as_they_are() -> None:
    long = "running" * 1_000_000
    block = TextBlock(stem="english", fold_accents=True, signs=True, stop_words="english")
    assert block.terms(long) == [long]
    assert block.terms("é" * 100_000) == ["e" * 100_000]
    assert len(block.terms("漢" * 100_000)) == 99_999
    assert block.terms("ก" + "\u0e48" * 100_000) == ["ก" + "\u0e48" * 100_000]
    assert len(block.terms("\ufdfa" * 20_000)) == 80_000 - 19_999


# --- typing errors ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["abc", "abcdeäö", "αβγабв"]))
def test_guesses_are_those_of_plain_python(seed: int, letters: str) -> None:
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choices(letters, k=rng.randint(2, 7)))

    texts = [" ".join(word() for _ in range(rng.randint(1, 6))) for _ in range(30)]
    fitted = TextFeatures().fit(texts)
    columns = {term: i for i, term in enumerate(fitted.vocabulary())}
    known = [chr(code) for code in fitted.arrays()["0/letters"]]
    asked = [" ".join(word() for _ in range(rng.randint(0, 8))) for _ in range(20)]
    rows = fitted.transform(asked)
    for number, text in enumerate(asked):
        expected = plain_row(text.split(), columns, fitted.arrays()["0/idf"], known)
        row = rows[[number]]
        assert dict(zip(row.indices.tolist(), row.data, strict=True)) == expected, text


def test_known_words_are_untouched_bit_for_bit() -> None:
    with_typos, without = (TextFeatures(typos=typos, ngram_range=(1, 2)).fit(TEXTS) for typos in (True, False))
    a, b = with_typos.transform(TEXTS), without.transform(TEXTS)
    assert (a.data.tobytes(), a.indices.tobytes()) == (b.data.tobytes(), b.indices.tobytes())
    assert with_typos.vocabulary() == without.vocabulary()


def test_numbers_short_words_and_pairs_of_characters_are_not_guessed_at() -> None:
    fitted = TextFeatures(signs=True).fit(["gtk3 version go c++ 日本 library"])
    assert fitted.transform(["gtk4", "ga", "c#", "日木", "versi0n", "l" * 40]).nnz == 0
    assert fitted.transform(["verzion libary"]).nnz == 2


def test_words_left_out_on_purpose_stay_out_while_learning() -> None:
    fitted = TextFeatures(min_df=2).fit(["image", "image", "imagen"])
    assert fitted.transform(["imagen"], learning=True).nnz == 0
    assert fitted.transform(["imagen"]).nnz == 1


def test_only_some_words_of_a_long_text_are_guessed_at() -> None:
    fitted = TextFeatures(use_idf=False, norm=None).fit(["image"])
    assert fitted.transform([" ".join(["imgae"] * 100)]).data.tolist() == [16.0]


def test_every_neighbour_is_found() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    fitted = TextFeatures(norm=None, use_idf=False).fit(["window", letters])
    for wrong in sorted(neighbours("window", letters)):
        assert fitted.transform([wrong]).data.tolist() == [1.0], wrong


# --- files -----------------------------------------------------------------------------------------------------------

ALL = {"fold_accents": True, "stem": "finnish", "stop_words": "finnish", "signs": True, "single_letters": True}


def test_a_model_keeps_its_options(tmp_path: Path) -> None:
    model = model_of(**ALL)
    model.save(tmp_path / "m.bw")
    again = bw.load(tmp_path / "m.bw", verify=True)
    for text in [*TEXTS, "imgae viewr", "sukkia", "CAFE", "文学", "\ud800 \x00"]:
        assert again.search(text) == model.search(text) == again.search_many([text])[0]
    assert again.text.blocks[0].stop_words == stop_words("finnish")
    again.save(tmp_path / "again.bw")
    assert (tmp_path / "again.bw").read_bytes() == (tmp_path / "m.bw").read_bytes()
    assert "text-2" in _requires(tmp_path / "m.bw")


def test_a_vocabulary_without_letters_is_kept(tmp_path: Path) -> None:
    model = bw.train_text(["2024 17", "2025 18"], [["a"], ["b"]], preset="fast", progress=False)
    model.save(tmp_path / "m.bw")
    assert bw.load(tmp_path / "m.bw").search("2024 words")[0].key == "a"


def test_a_model_without_new_options_is_readable_by_older_versions(tmp_path: Path) -> None:
    model_of(segment=False, typos=False).save(tmp_path / "m.bw")
    assert "text-2" not in _requires(tmp_path / "m.bw")
    again = bw.load(tmp_path / "m.bw")
    assert (again.text.blocks[0].segment, again.text.blocks[0].typos) == (False, False)
    assert "segment" not in again.text.settings()["blocks"][0]


def _requires(path: Path) -> list[str]:
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    requires: list[str] = json.loads(header["__metadata__"]["beamwood"])["requires"]
    return requires


def test_damaged_settings_and_letters_are_format_errors() -> None:
    fitted = TextFeatures(stem="english").fit(TEXTS)
    settings_, arrays = fitted.settings(), fitted.arrays()
    for change in (
        {"stem": "klingon"},
        {"stem": 3},
        {"stop_words": "the"},
        {"stop_words": [1]},
        {"fold_accents": 1},
        {"tokenizer": "os:system"},
        {"tokenizer": {"name": 1, "fingerprint": ""}},
        {"unknown": True},
    ):
        with pytest.raises(FormatError):
            FittedText.from_arrays({"blocks": [{**settings_["blocks"][0], **change}]}, arrays)
    for letters in (np.zeros(65, np.uint32), np.zeros(3, np.int32)):
        with pytest.raises(FormatError, match="letters"):
            FittedText.from_arrays(settings_, {**arrays, "0/letters": letters})
    odd = np.array([0, 31, 0xD800, 0x10FFFF, 0x110000, 0xFFFFFFFF], np.uint32)
    assert FittedText.from_arrays(settings_, {**arrays, "0/letters": odd}).transform(["imgae"]).nnz == 1


# --- a tokenizer of one's own ----------------------------------------------------------------------------------------


def by_hyphens(text: str) -> list[str]:
    return text.split("-")


def test_a_tokenizer_is_given_again_by_whoever_loads(tmp_path: Path) -> None:
    text = TextFeatures(tokenizer=by_hyphens, ngram_range=(1, 2))
    model = bw.train_text(["Red wool-socks", "blue hat-wool"], [["a"], ["b"]], text=text, preset="fast", progress=False)
    assert model.text.vocabulary() == ["blue hat", "blue hat wool", "red wool", "red wool socks", "socks", "wool"]
    model.save(tmp_path / "m.bw")
    bare = bw.load(tmp_path / "m.bw")
    with pytest.raises(SettingsError, match=r"test_words:by_hyphens.*load\(path, tokenizer=f\)"):
        bare.search("red wool-socks")
    with pytest.raises(SettingsError, match="with_tokenizer"):
        bare.search_many(["red wool-socks"])
    assert bare.topk(model.text.transform(["socks"]), k=1)[0].tolist() == [[0]]
    for whole in (
        bw.load(tmp_path / "m.bw", tokenizer=by_hyphens),
        bare.with_tokenizer(by_hyphens).with_names(["x", "y"]),
    ):
        assert whole.search("RED WOOL-socks")[0].label == 0
        assert whole.search("RED WOOL-socks")[0].score == model.search("red wool-socks")[0].score
    assert bare.with_tokenizer(by_hyphens).version == bare.version
    with pytest.raises(SettingsError, match="fingerprint"):
        bw.load(tmp_path / "m.bw", tokenizer=str.split)
    with pytest.raises(SettingsError, match="split words themselves"):
        model_of().with_tokenizer(by_hyphens).search("x")
    with pytest.raises(SettingsError, match="tokenizer"):
        pickle.loads(pickle.dumps(model)).search("x")
    assert copy.deepcopy(model.text).transform(["socks"]).nnz == 1


def test_tokens_go_through_the_other_options() -> None:
    block = TextBlock(tokenizer=by_hyphens, fold_accents=True, stem="english", stop_words=["the"])
    assert block.terms("The-Café Running-connections--x") == ["cafe run", "connect", "x"]


@pytest.mark.parametrize(
    "wrong", [3, "split", lambda text: text, lambda text: [1], lambda text: ["a\x1fb"], lambda text: iter(["a"])]
)
def test_functions_that_are_no_tokenizers_are_refused(wrong: object) -> None:
    with pytest.raises((SettingsError, DataError), match="tokenizer"):
        TextBlock(tokenizer=wrong)


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["a"]])
def test_only_a_text_has_terms(wrong: Any) -> None:
    with pytest.raises(DataError, match="text"):
        TextBlock().terms(wrong)


def test_blocks_share_their_tokenizer() -> None:
    with pytest.raises(SettingsError, match="tokenizers"):
        TextFeatures(blocks=(TextBlock(tokenizer=by_hyphens), TextBlock()))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stem": "klingon"}, "finnish.*yiddish"),
        ({"stem": ["english"]}, "stem"),
        ({"stop_words": "klingon"}, "danish.*swedish"),
        ({"stop_words": 3}, "stop_words"),
        ({"stop_words": ["new york"]}, "single words"),
        ({"stop_words": [""]}, "stop_words"),
        ({"signs": 1}, "signs"),
        ({"analyzer": "char_wb", "stem": "english"}, "analyzer"),
        ({"analyzer": "space", "lowercase": False, "fold_accents": True}, "fold_accents"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        TextBlock(**options)


def test_texts_in_many_threads_give_the_same_rows() -> None:
    fitted = TextFeatures(**ALL).fit(TEXTS)
    texts = [*TEXTS, "imgae viewr", "sukkia kenkiä"] * 300
    one, four = fitted.transform(texts, threads=1), fitted.transform(texts, threads=4)
    assert one.data.tobytes() == four.data.tobytes()
    assert one.indices.tobytes() == four.indices.tobytes()
