"""An exact index: vectors or documents in, the exact best of them out; the reference is a plain sparse product."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from laws import check_same, forms, isas
from support.indexes import index_case

import beamwood as bw
from beamwood import _core, reference
from beamwood.inputs.matrices import as_csr
from beamwood.lexical.bm25 import bm25_weights
from beamwood.lexical.postings import native_postings, postings_sections

CASES = int(os.environ.get("BEAMWOOD_INDEX_CASES", "150"))
DOCUMENTS = ["red wool socks", "blue cotton hat", "red wool hat and red scarf", "green socks", ""]
KEYS = ["a", "b", "c", "d", "e"]


def rows_of(model: bw.Model) -> Any:
    """The vectors that a model holds, as it reads them."""
    assert model.parts.shape.index is not None
    shape = (model.n_features, model.n_labels)
    lists = native_postings(model.parts.sections, *shape, model.parts.shape.index)
    start, labels, weights = lists.lists()
    return as_csr(sp.csr_array(sp.csr_array((weights, labels, start), shape=shape).T), None, "W", zeros=False)


def test_the_answers_are_the_plain_products(tmp_path: Path) -> None:
    """0 differing bits; BEAMWOOD_INDEX_CASES=2000 is the long form."""
    for seed in range(CASES):
        case = index_case(seed)
        model, expected = case.model(), case.expected()
        filter = None if case.allowed is None else model.filter(allow=case.allowed)
        check_same(model.topk(case.X, case.k, filter=filter), expected, "seed", seed)
        check_same(model.topk(case.X, case.k, threads=3, filter=filter), expected, "seed", seed, "three threads")
        if seed % 10 == 0:
            for name, form in forms(model, tmp_path):
                allow = None if case.allowed is None else form.filter(allow=case.allowed)
                check_same(form.topk(case.X, case.k, filter=allow), expected, "seed", seed, name)


@pytest.mark.parametrize("weights", ["f32", "f16", "u8"])
@pytest.mark.parametrize("labels", [1_024, 3_001, 66_000])
def test_lists_that_most_labels_have_give_the_plain_products_too(labels: int, weights: str) -> None:
    """Such lists have bounds that are added up many labels at once: with ties, filters, tiny and huge values."""
    rng = np.random.default_rng(labels)
    for density, steps, most in ((0.5, 0, 1.0), (0.3, 3, 1.0), (0.15, 40, 1e-30), (0.08, 0, 1e30), (0.9, 1, 3.0)):
        W = sp.csr_array(sp.random_array((labels, 14), density=density, rng=rng, dtype=np.float32))
        W.data = np.ceil(W.data * steps) / np.float32(steps) if steps else W.data
        W = as_csr(sp.csr_array(W * np.float32(most if weights == "f32" else 1)), None, "W", zeros=False)
        X = sp.random_array((6, 14), density=0.6, format="csr", rng=rng, dtype=np.float32)
        model = bw.index(W, matched_only=True, weights=weights)
        assert model.parts.sections["index/codes"].size >= labels
        bare = bw.index(W, np.zeros(labels, np.float32), matched_only=True, weights=weights)  # a bias: all are added up
        allowed = np.flatnonzero(rng.random(labels) < 0.02)
        for k in (1, 10, 100, labels):
            check_same(model.topk(X, k), bare.topk(X, k), labels, density, k)
            some = [which.topk(X, k, filter=which.filter(allow=allowed)) for which in (model, bare)]
            check_same(*some, labels, density, k, "filter")
            if weights == "f32" and labels < 66_000:
                check_same(model.topk(X, k), reference.index_topk(W, None, X, k, matched_only=True), density, k)


@pytest.mark.parametrize("weights", ["f16", "u8"])
def test_answers_of_rounded_weights_are_exact_for_the_rounded_weights(weights: str) -> None:
    tried = 0
    for seed in range(CASES):
        case = index_case(seed)
        if case.W.shape[0] > 1_000 or abs(case.W).max() > 65_000:
            continue
        model = case.model(weights)
        filter = None if case.allowed is None else model.filter(allow=case.allowed)
        check_same(model.topk(case.X, case.k, filter=filter), case.expected(rows_of(model)), "seed", seed)
        tried += 1
    assert tried > CASES // 3


def test_each_instruction_set_gives_the_same_bits() -> None:
    case = index_case(4)
    for isa in isas():
        check_same(case.model().using(isa=isa).topk(case.X, case.k), case.model().topk(case.X, case.k), isa)


def test_scores_of_given_labels_are_those_of_the_answers() -> None:
    for seed in range(CASES):
        case = index_case(seed)
        postings = _native(case.W, case.bias)
        labels = np.random.default_rng(seed).integers(0, case.W.shape[0], 12).astype(np.uint32)
        for i in range(case.X.shape[0]):
            x = case.X[[i]]
            found = np.empty(12, np.float32)
            assert postings.score(x.indptr, x.indices, x.data, np.array([0, 12]), labels, found, 1) == 0
            with np.errstate(all="ignore"):
                expected = reference.index_scores(case.W, case.bias, x)[labels]
            check_same((found, found), (expected, expected), "seed", seed)


def _native(W: Any, bias: Any) -> _core.Postings:
    sections, shape = postings_sections(W, bias)
    return native_postings(sections, W.shape[1], W.shape[0], shape)


def test_the_same_file_for_any_number_of_threads() -> None:
    for seed in range(20):
        case = index_case(seed)
        assert bw.index(case.W, case.bias, threads=1).version == bw.index(case.W, case.bias, threads=4).version


def test_an_explanation_adds_up_to_the_score() -> None:
    for seed in range(40):
        case = index_case(seed)
        if case.allowed is not None or case.W.shape[0] > 5_000:
            continue
        labels, scores = case.model().topk(case.X, 3)
        for i, label in enumerate(labels[:, 0].tolist()):
            if label >= 0:
                told = case.model().explain(case.X[[i]], label)
                assert np.float32(told.score).tobytes() == scores[i, 0].tobytes()


# --- documents ---


def test_documents_are_found_by_their_words(tmp_path: Path) -> None:
    model = bw.index_text(DOCUMENTS, keys=KEYS, names=[text or "(empty)" for text in DOCUMENTS])
    for _, form in forms(model, tmp_path):
        assert [hit.key for hit in form.search("red socks")] == ["a", "d", "c"]
        assert [hit.key for hit in form.search("RED")] == ["c", "a"]
        assert form.search("red", filter=form.filter(deny=["c"]))[0].name == "red wool socks"
        assert form.search("unknown words") == []
        assert form.search_many(["red socks", "unknown", "hat"]) == [form.search(t) for t in ("red socks", "?", "hat")]
        assert form.explain("red socks", "a").trees[0].steps[0].shares[0].word == "red"
        assert pickle.loads(pickle.dumps(form)).search("red") == model.search("red")
    assert "exact index" in repr(model)
    assert model.info()["index"] == {"nonzeros": 13, "weights": "f32", "matched_only": True}
    assert model.settings == {"ranking": "bm25", "k1": 1.5, "b": 0.75}


def test_an_explanation_speaks_of_the_label_and_of_no_layer() -> None:
    model = bw.index_text(DOCUMENTS, keys=KEYS)
    told = model.explain("red socks", "a")
    assert "layer" not in repr(told)
    assert "node" not in repr(told)
    assert "  in common: red +" in repr(told)
    assert "  nothing in common\n    sum 0" in repr(model.explain("hat", "a"))
    assert told.to_dict()["trees"][0]["steps"][0]["layer"] is None
    assert told.trees[0].steps[0].score == told.score


def test_scores_are_bm25() -> None:
    model = bw.index_text(DOCUMENTS, k1=1.2, b=0.5)
    lengths = [len(text.split()) for text in DOCUMENTS]
    for word, df in (("red", 2), ("socks", 2), ("cotton", 1)):
        labels, scores = (np.array(x) for x in zip(*((h.label, h.score) for h in model.search(word)), strict=True))
        idf = np.log(1 + (5 - df + 0.5) / (df + 0.5))
        tf = np.array([DOCUMENTS[i].split().count(word) for i in labels])
        norm = 1.2 * (0.5 + 0.5 * np.array(lengths)[labels] / np.mean(lengths))
        assert np.allclose(scores, idf * tf / (tf + norm), rtol=1e-6)


def test_documents_without_any_length_have_weights_of_nothing() -> None:
    assert bm25_weights(sp.csr_array((3, 4), dtype=np.float32)).nnz == 0


@pytest.mark.parametrize("at_once", [1, 40, 1000])
def test_weights_of_some_documents_after_the_other_have_the_bits_of_all_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    counts = sp.csr_array(sp.random_array((300, 80), density=0.1, rng=rng, dtype=np.float32))
    whole, given = bm25_weights(counts), {"idf": rng.random(80), "mean": 3.5}
    other = bm25_weights(counts, 0.5, 0.3, **given)
    monkeypatch.setattr("beamwood.lexical.bm25._AT_ONCE", at_once)
    assert bm25_weights(counts).data.tobytes() == whole.data.tobytes()
    assert bm25_weights(counts, 0.5, 0.3, **given).data.tobytes() == other.data.tobytes()


def test_letters_and_pairs_of_words_can_be_indexed() -> None:
    blocks = (bw.TextBlock(ngram_range=(1, 2)), bw.TextBlock(analyzer="char_wb", ngram_range=(3, 3)))
    model = bw.index_text(DOCUMENTS, keys=KEYS, text=bw.TextFeatures(blocks=blocks))
    assert model.search("red wol scks")[0].key == "a"


# --- what does not fit ---


def test_what_an_index_cannot_do_is_said() -> None:
    model = bw.index(np.eye(3))
    with pytest.raises(bw.SettingsError, match="no layers"):
        model.layers()
    with pytest.raises(bw.SettingsError, match="weights='u8'"):
        model.compress()
    with pytest.raises(bw.SettingsError, match="layout is 'chunk'"):
        model.using(layout="chunk")
    with pytest.raises(bw.DataError, match="no trees"):
        bw.Model.from_trees([model])
    with pytest.raises(bw.SettingsError, match="index without trees"):
        model.plot_tree()
    with pytest.raises(bw.SettingsError, match="another model"):
        model.topk(np.eye(3), 1, filter=bw.index(np.eye(3)[::-1]).filter(allow=[0]))


def test_wrong_vectors_are_refused() -> None:
    for wrong, match in (
        (np.zeros((0, 3)), "0 rows"),
        (np.full((2, 2), np.nan), "nan in row 0"),
        (np.ones(3), "1 dimension"),
        (np.array([["a"]]), "texts"),
    ):
        with pytest.raises(bw.DataError, match=match):
            bw.index(wrong)
    with pytest.raises(bw.DataError, match="bias has shape"):
        bw.index(np.eye(3), [1.0, 2.0])
    with pytest.raises(bw.DataError, match="bias has nan"):
        bw.index(np.eye(2), [1.0, np.nan])
    with pytest.raises(bw.SettingsError, match="weights is 'u4'"):
        bw.index(np.eye(2), weights="u4")
    with pytest.raises(bw.SettingsError, match="at most 65,504"):
        bw.index(np.eye(2) * 1e6, weights="f16")
    with pytest.raises(bw.SettingsError, match="matched_only"):
        bw.index(np.eye(2), matched_only=1)
    with pytest.raises(bw.DataError, match="3 columns; expected 2"):
        bw.index(np.eye(2)).topk(np.eye(3))


def test_wrong_documents_are_refused() -> None:
    with pytest.raises(bw.DataError, match="no texts"):
        bw.index_text([])
    with pytest.raises(bw.DataError, match="no terms"):
        bw.index_text(["", "!"])
    with pytest.raises(bw.DataError, match="text 1 is a int"):
        bw.index_text(["a b", 5])  # type: ignore[list-item]
    with pytest.raises(bw.DataError, match="one string"):
        bw.index_text("red wool")
    with pytest.raises(bw.DataError, match="2 keys; expected 1"):
        bw.index_text(["red wool"], keys=["a", "b"])
    for k1, b in ((-1, 0.5), (1, 2), (np.nan, 0.5), ("1", 0.5), (np.inf, 0.5)):
        with pytest.raises(bw.SettingsError, match="Usual are"):
            bw.index_text(["red wool"], k1=k1, b=b)


def test_an_older_version_refuses_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from beamwood.storage import store

    bw.index(np.eye(3)).save(tmp_path / "index.bw")
    monkeypatch.setattr(store, "KNOWN_FEATURES", store.KNOWN_FEATURES - {"index-1"})
    with pytest.raises(bw.FormatError, match="index-1"):
        bw.load(tmp_path / "index.bw")


def test_text_features_without_idf_come_back_from_a_file(tmp_path: Path) -> None:
    text = bw.TextFeatures(use_idf=False)
    model = bw.train_text(DOCUMENTS[:4], [[k] for k in KEYS[:4]], text, preset="fast", progress=False)
    model.save(tmp_path / "model.bw")
    assert bw.load(tmp_path / "model.bw").search("red socks") == model.search("red socks")
