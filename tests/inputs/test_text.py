"""Claims about text features; scikit-learn is the oracle."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
import threading
import unicodedata
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beamwood import DataError, FormatError, SettingsError, _core
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.inputs.text_block import TextBlock

sklearn_text = pytest.importorskip("sklearn.feature_extraction.text")
CountVectorizer, TfidfVectorizer = sklearn_text.CountVectorizer, sklearn_text.TfidfVectorizer

TEXTS = [
    "History of jazz in New Orleans: swing, dixieland & the blues of the 1920s",
    "Suomen kansan vanhat runot : Pohjois-Häme. Äänne- ja muoto-opin pääkohdat",
    "Women's health in general practice; women's rights, C++ and R",
    "Ο ΟΔΥΣΣΕΥΣ ΚΑΙ Ο ΣΟΦΟΣ. ΤΑΞΙΔΙΑ ΣΤΗΝ ΙΘΑΚΗ Σ ΑΣ' ΑΣ'Β Ὀδυσσεύς",
    "İSTANBUL'da ılık IŞIK: Şiir ve İLİŞKİ üzerine",
    "مقدمة ابن خلدون في التاريخ والعمران البشري ١٢٣",
    "תולדות הספרות העברית החדשה וְהָאָרֶץ",
    "日本文学史 入門編 東京の歴史 ひらがな カタカナ",
    "中国古代文学研究 第二版 ①②",
    "हिन्दी साहित्य का इतिहास और भाषा विज्ञान",
    "emoji 😀 👩‍👩‍👧 flags 🇫🇮 and math 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ½ x² ⅷ Ⅷ",
    "Straße STRASSE ẞ ǅ ǆ Ǆ ﬁnd Ǿ Ⱥ K Å DŽ",
    "under_score __init__ a\x00b tab\tnew\nline\x0bvt\x1cfs\u2028ls\u00a0nbsp\u3000ideographic",
    "zero\u200bwidth soft\u00adhyphen combining e\u0301 \ufeffbom",
    "",
    "   \t ",
    "a b c d",
    "the the the swing swing blues",
]
LONE = "lone \ud800 surrogates \udfff\ud83dpair x\udc00y"


def plain(**options: Any) -> TextFeatures:
    """What scikit-learn does, and no more."""
    return TextFeatures(segment=False, typos=False, **options)


def assert_same_features(ours: FittedText, theirs: Any, texts: list[str]) -> None:
    """Exact vocabulary, exact columns, values to 1e-6."""
    assert ours.vocabulary() == list(theirs.get_feature_names_out())
    assert_same_rows(ours, theirs, texts)


def assert_same_rows(ours: FittedText, theirs: Any, texts: list[str]) -> None:
    rows, expected = ours.transform(texts, threads=2), theirs.transform(texts)
    expected.sort_indices()
    assert rows.shape == expected.shape
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows.indptr, expected.indptr)
    np.testing.assert_array_equal(rows.indices, expected.indices)
    np.testing.assert_allclose(rows.data, expected.data, rtol=1e-6, atol=1e-6)


OPTIONS = [
    {},
    {"ngram_range": (1, 3)},
    {"ngram_range": (2, 2)},
    {"lowercase": False},
    {"sublinear_tf": True, "min_df": 2},
    {"binary": True, "norm": "l1"},
    {"norm": None, "use_idf": False},
    {"smooth_idf": False, "max_df": 0.5},
    {"min_df": 0.1, "max_df": 3},
    {"max_features": 7},
    {"max_features": 40, "ngram_range": (1, 2), "binary": True},
    {"max_features": 10_000},
    {"analyzer": "char_wb", "ngram_range": (2, 4)},
    {"analyzer": "char_wb", "ngram_range": (1, 1), "lowercase": False},
    {"analyzer": "char_wb", "ngram_range": (3, 9), "sublinear_tf": True, "max_features": 100},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS, LONE]], ids=["clean", "surrogates"])
@pytest.mark.parametrize("threads", [1, 3])
def test_features_equal_scikit_learn(options: dict[str, Any], texts: list[str], threads: int) -> None:
    ours = plain(**options).fit(texts, threads=threads)
    assert_same_features(ours, TfidfVectorizer(**options).fit(texts), texts)


def test_single_letter_words_equal_scikit_learn() -> None:
    for ngram_range in ((1, 1), (1, 2)):
        ours = plain(single_letters=True, ngram_range=ngram_range).fit(TEXTS)
        theirs = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", ngram_range=ngram_range).fit(TEXTS)
        assert_same_features(ours, theirs, TEXTS)


def test_ties_of_max_features_fall_as_in_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i:04d}" for i in range(3_000)]
    texts = [" ".join(rng.choice(words, 9)) for _ in range(2_000)]
    for limit in (1, 10, 500, 2_000):
        ours = plain(max_features=limit, min_df=2).fit(texts)
        assert_same_features(ours, TfidfVectorizer(max_features=limit, min_df=2).fit(texts), texts)


def test_many_texts_in_many_calls_and_threads_give_the_same_bytes() -> None:
    texts = [f"{text} {i % 911} {i % 97}" for i, text in enumerate(TEXTS * 2_500)]
    one = TextFeatures(ngram_range=(1, 2)).fit(texts, threads=1)
    four = TextFeatures(ngram_range=(1, 2)).fit(iter(texts), threads=4)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, four.arrays()[name])
    a, b = one.transform(texts, threads=1), four.transform(iter(texts), threads=4)
    assert a.data.tobytes() == b.data.tobytes()
    assert a.indices.tobytes() == b.indices.tobytes()
    np.testing.assert_array_equal(a.indptr, b.indptr)


KNOWN = st.characters(exclude_categories=["Cn"])
TRICKY = st.sampled_from("ΣσςİIıiǅ'’.\u0307\u00ad_ \u00a0\u1680\u200b٣५①ªºßẞΑα1a\ud800😀")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.one_of(KNOWN, TRICKY), max_size=30), min_size=1, max_size=4), st.booleans())
def test_random_unicode_equals_scikit_learn(texts: list[str], lowercase: bool) -> None:
    if unicodedata.unidata_version != _core.unicode_version:
        texts = ["".join(c for c in text if same_character(ord(c))) for text in texts]
    for options in ({"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (1, 3)}):
        try:
            theirs = TfidfVectorizer(lowercase=lowercase, **options).fit(texts)
        except ValueError:
            with pytest.raises(DataError):
                plain(lowercase=lowercase, **options).fit(texts)
        else:
            assert_same_features(plain(lowercase=lowercase, **options).fit(texts), theirs, texts)


def same_character(code: int) -> bool:
    """Whether our table and this Python's agree on a character by itself."""
    char = chr(code)
    flags, lowered = _core.character(code)
    word, space = char.isalnum() or char == "_", char.isspace()
    return (flags & 1, flags & 2) == (word, 2 * space) and (chr(lowered) == char.lower() or char in "İ")


def test_every_character_is_python_s_unless_one_of_the_two_does_not_know_it() -> None:
    different = [code for code in range(sys.maxunicode + 1) if not same_character(code)]
    if unicodedata.unidata_version == _core.unicode_version:
        assert different == []
    newer = tuple(map(int, unicodedata.unidata_version.split("."))) > tuple(map(int, _core.unicode_version.split(".")))
    old = unicodedata.ucd_3_2_0
    # A newer Python knows more characters; of those known for long, only a handful ever changed class.
    changed = [code for code in different if old.category(chr(code)) != "Cn"]
    assert len(changed) < 20
    if not newer:
        assert len(different) < 10_000


def test_several_blocks_stand_side_by_side() -> None:
    words = TextBlock(segment=False, typos=False)
    blocks = (words, TextBlock(analyzer="char_wb", ngram_range=(2, 3), norm="l1"))
    both = TextFeatures(blocks=blocks).fit(TEXTS)
    union = pytest.importorskip("sklearn.pipeline").FeatureUnion(
        [
            ("words", TfidfVectorizer()),
            ("letters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), norm="l1")),
        ]
    )
    union.fit(TEXTS)
    assert both.blocks == blocks
    assert_same_rows(both, union, TEXTS)
    assert_same_rows(TextFeatures.from_sklearn(union), union, TEXTS)


@pytest.mark.filterwarnings("ignore:Upper case characters")
def test_a_fitted_scikit_learn_vectorizer_can_be_brought_in() -> None:
    for theirs in (
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\b\w+\b"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), dtype=np.float32),
        TfidfVectorizer(vocabulary=["swing", "jazz", "new orleans", "Äänne"], ngram_range=(1, 2)),
        TfidfVectorizer(stop_words=["the", "of"]),
        CountVectorizer(binary=True),
        TfidfVectorizer(use_idf=False, norm="l1"),
    ):
        theirs.fit(TEXTS)
        assert_same_features(TextFeatures.from_sklearn(theirs), theirs, TEXTS)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"analyzer": "char"}, "analyzer"),
        ({"analyzer": str.split}, "analyzer"),
        ({"tokenizer": str.split, "token_pattern": None}, "tokenizer"),
        ({"preprocessor": str.upper}, "preprocessor"),
        ({"strip_accents": "unicode"}, "strip_accents"),
        ({"token_pattern": r"[a-z]+"}, "token_pattern"),
        ({"stop_words": "english", "ngram_range": (1, 2)}, "stop_words"),
    ],
)
def test_what_cannot_be_repeated_is_refused(options: dict[str, Any], word: str) -> None:
    theirs = TfidfVectorizer(**options).fit(TEXTS)
    with pytest.raises(SettingsError, match=word):
        TextFeatures.from_sklearn(theirs)


def test_objects_that_are_no_fitted_vectorizers_are_refused() -> None:
    for wrong in (TfidfVectorizer(), "tfidf", object(), []):
        with pytest.raises(SettingsError):
            TextFeatures.from_sklearn(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"analyzer": "char"},
        {"ngram_range": (2, 1)},
        {"ngram_range": (0, 1)},
        {"ngram_range": 3},
        {"min_df": 0},
        {"min_df": 1.5},
        {"max_df": -1},
        {"max_features": 0},
        {"norm": "max"},
        {"lowercase": "yes"},
        {"blocks": ("word",)},
        {"blocks": (TextBlock(),), "min_df": 2},
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        TextFeatures(**wrong)


def test_numpy_numbers_in_settings_are_kept_as_plain_ones() -> None:
    given = TextFeatures(min_df=np.int64(1), max_df=np.float32(1), max_features=np.int32(9), binary=np.bool_(True))
    settings_ = given.fit(TEXTS).settings()
    assert json.loads(json.dumps(settings_)) == {
        **settings_,
        "blocks": [{**settings_["blocks"][0], "ngram_range": [1, 1]}],
    }


def test_bad_texts_are_named() -> None:
    with pytest.raises(DataError, match="text 2 is a float"):
        TextFeatures().fit(cast("Any", ["some words", "more words", float("nan")]))
    with pytest.raises(DataError, match="text 1 is a bytes"):
        TextFeatures().fit(["some words"]).transform(cast("Any", ["words", b"bytes"]))
    with pytest.raises(DataError, match="one string"):
        TextFeatures().fit("words")
    with pytest.raises(DataError, match="no texts"):
        TextFeatures().fit([])
    with pytest.raises(DataError, match="no terms are left"):
        TextFeatures().fit(["a b c", ""])
    with pytest.raises(SettingsError, match="max_df"):
        TextFeatures(min_df=3, max_df=2).fit(["some words"])
    with pytest.raises(SettingsError, match="threads"):
        TextFeatures().fit(["some words"], threads=0)


def test_texts_without_known_words_give_empty_rows() -> None:
    fitted = TextFeatures().fit(["red wool socks"])
    rows = fitted.transform(["", "unknown words only", "\x00\x01", "red"])
    assert np.diff(rows.indptr).tolist() == [0, 0, 0, 1]
    assert fitted.transform([]).shape == (0, 3)


def test_ten_megabytes_of_text_are_one_row() -> None:
    fitted = plain(ngram_range=(1, 2)).fit(TEXTS)
    long = " ".join(TEXTS) * 12_000
    assert len(long.encode()) > 10_000_000
    theirs = TfidfVectorizer(ngram_range=(1, 2)).fit(TEXTS)
    rows, expected = fitted.transform([long]), theirs.transform([long])
    np.testing.assert_allclose(rows.toarray(), expected.toarray(), atol=1e-6)
    one_word = "x" * 10_000_000
    assert TextFeatures().fit([one_word, "short"]).transform([one_word]).nnz == 1
    assert TextFeatures(analyzer="char_wb", ngram_range=(3, 3)).fit([one_word]).columns == 3


def test_arrays_go_round_and_are_not_copied(tmp_path: Path) -> None:
    texts = [*TEXTS, LONE]
    blocks = (TextBlock(ngram_range=(1, 2)), TextBlock(analyzer="char_wb", ngram_range=(2, 3), use_idf=False))
    fitted = TextFeatures(blocks=blocks).fit(texts)
    mapped = {}
    for name, array in fitted.arrays().items():
        path = tmp_path / name.replace("/", "-")
        array.tofile(path)
        mapped[name] = np.memmap(path, dtype=array.dtype, mode="r") if array.size else array
    again = FittedText.from_arrays(json.loads(json.dumps(fitted.settings())), mapped)
    assert again.blocks == blocks
    assert again.vocabulary() == fitted.vocabulary()
    expected = fitted.transform(texts)
    vectorizer = again.vectorizer
    del again, mapped, fitted
    gc.collect()
    lengths, ids, values = vectorizer.transform(texts, 1)
    np.testing.assert_array_equal(ids, expected.indices)
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(np.cumsum(lengths), expected.indptr[1:])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_arrays_end_in_a_format_error_or_a_row(data: st.DataObject) -> None:
    fitted = TextFeatures(ngram_range=(1, 2)).fit(TEXTS)
    arrays = {name: array.copy() for name, array in fitted.arrays().items()}
    for _ in range(data.draw(st.integers(1, 20))):
        raw = arrays[data.draw(st.sampled_from(sorted(arrays)))].view(np.uint8)
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = FittedText.from_arrays(fitted.settings(), arrays)
    try:
        damaged.vocabulary()
        rows = damaged.transform(TEXTS)
    except FormatError:
        return
    assert rows.nnz == 0 or rows.indices.max() < damaged.columns


def test_wholly_wrong_arrays_are_format_errors() -> None:
    fitted = TextFeatures().fit(TEXTS)
    arrays, settings_ = fitted.arrays(), fitted.settings()
    full = np.full_like(arrays["0/slots"], 0xFFFFFFFFFFFFFFFF)
    for name, wrong in (
        ("0/slots", arrays["0/slots"][:-1]),
        ("0/slots", arrays["0/slots"][:2]),
        ("0/slots", arrays["0/slots"].astype(np.int32)),
        ("0/offsets", arrays["0/offsets"][:0]),
        ("0/idf", arrays["0/idf"][1:]),
        ("0/terms", None),
    ):
        with pytest.raises(FormatError):
            FittedText.from_arrays(settings_, {**arrays, name: cast("Any", wrong)})
    for wrong_settings in (
        {},
        {"blocks": [{"analyzer": "word"}]},
        {"blocks": [{"ngram_range": [1, 1], "x": 1}]},
    ):
        with pytest.raises(FormatError):
            FittedText.from_arrays(wrong_settings, arrays)
    unknown = FittedText.from_arrays(settings_, {**arrays, "0/slots": full}).transform(["jazz"])
    assert unknown.nnz == 0
    for name, value in (("0/idf", np.nan), ("0/offsets", 2**40)):
        with pytest.raises(FormatError, match="damaged"):
            FittedText.from_arrays(settings_, {**arrays, name: np.full_like(arrays[name], value)}).transform(TEXTS)


def test_copies_and_pickles_give_the_same_rows() -> None:
    fitted = TextFeatures().fit(TEXTS)
    for again in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert (again.transform(TEXTS) != fitted.transform(TEXTS)).nnz == 0


def test_a_fitted_text_serves_many_threads_at_once() -> None:
    fitted = TextFeatures(ngram_range=(1, 2)).fit(TEXTS)
    expected = fitted.transform(TEXTS * 50, threads=1)
    answers: list[Any] = []
    workers = [
        threading.Thread(target=lambda: answers.append(fitted.transform(TEXTS * 50, threads=2))) for _ in range(6)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 6
    assert all((answer != expected).nnz == 0 for answer in answers)
