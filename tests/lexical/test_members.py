"""Trees and words in one model: the bits of the plain reference, whoever listed a label, however it is asked for."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw
from beamwood import _core, reference
from beamwood.errors import DataError, SettingsError
from beamwood.lexical.head import Head
from beamwood.storage.activations import Activation

ROWS, FEATURES, LABELS = 400, 60, 90


@cache
def model(trees: int = 2, unit_rows: bool = True, preset: str = "balanced") -> bw.Model:
    X, Y = random_problem(ROWS, FEATURES, LABELS, 7, density=0.1)
    more = {} if preset == "fast" else {"branching": 6, "max_leaf": 8, "trees": trees}
    return bw.train(X, Y, preset, lexical=True, unit_rows=unit_rows, progress=False, threads=1, **more)


def queries(count: int = 12, seed: int = 3) -> Any:
    """Rows as people ask them; the first is empty."""
    X = sp.random(count, FEATURES, density=0.15, random_state=np.random.default_rng(seed), dtype=np.float32).tolil()
    X[0] = 0
    return sp.csr_array(X.tocsr())


def words_of(which: bw.Model) -> Any:
    """Labels x features as the inverted lists hold them."""
    shape = which.parts.shape
    lists = which._forests.postings
    made = sp.lil_array((shape.labels, shape.features), dtype=np.float32)
    for label in range(shape.labels):
        feature, weight = lists.row(label)
        for f, w in zip(feature.tolist(), weight.tolist(), strict=True):
            made[label, f] = w
    return sp.csr_array(made)


def expected(which: bw.Model, X: Any, k: int, beam: int, allowed: Any = None) -> tuple[Any, Any, Any]:
    shape = which.parts.shape
    assert shape.head is not None
    return reference.members_topk(
        [which.layers(tree) for tree in range(len(shape.trees))],
        words_of(which),
        shape.head,
        X,
        shape.activation,
        k,
        beam,
        allowed,
        shape.unit_rows,
        which.rows_of_label,
    )


def same(got: tuple[Any, ...], want: tuple[Any, ...]) -> None:
    assert np.array_equal(got[0], want[0])
    assert np.array_equal(got[1].view(np.uint32), want[1].view(np.uint32))


@pytest.mark.parametrize(("k", "beam"), [(1, 1), (5, 3), (10, 10), (40, 2), (LABELS, 100)])
@pytest.mark.parametrize("kind", [{}, {"trees": 1}, {"unit_rows": False}, {"preset": "fast"}])
def test_answers_have_the_bits_of_the_reference(k: int, beam: int, kind: dict[str, Any]) -> None:
    which, X = model(**kind), queries()
    labels, scores, found = expected(which, X, k, beam)
    same(which.topk(X, k, beam), (labels, scores))
    assert np.array_equal(which.found(X, k, beam)[2], found)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_filters_change_who_may_be_found_and_no_score(share: float) -> None:
    which, X = model(), queries()
    allowed = np.random.default_rng(5).random(LABELS) < share
    got = which.topk(X, 7, 4, filter=which.filter(allow=allowed))
    same(got, expected(which, X, 7, 4, allowed)[:2])
    everything = which.topk(X, LABELS, LABELS)
    for row in range(X.shape[0]):
        whole = dict(zip(everything[0][row].tolist(), everything[1][row].tolist(), strict=True))
        narrow = which.topk(X[[row]], 7, LABELS, filter=which.filter(allow=allowed))
        for label, score in zip(narrow[0][0].tolist(), narrow[1][0].tolist(), strict=True):
            assert label < 0 or score == whole[label] or label not in whole


@pytest.mark.parametrize("layout", ["chunk", "column"])
@pytest.mark.parametrize("matcher", ["march", "hash"])
def test_every_engine_gives_the_same_bits(layout: str, matcher: str) -> None:
    which, X = model(), queries(200)
    plain = which.topk(X, 9, 4)
    same(which.using(layout=layout, matcher=matcher).topk(X, 9, 4), plain)
    same(which.using(isa="scalar").topk(X, 9, 4, threads=3), plain)
    one_by_one = [which.topk(X[[row]], 9, 4) for row in range(X.shape[0])]
    same((np.vstack([a for a, _ in one_by_one]), np.vstack([b for _, b in one_by_one])), plain)


def test_files_pickles_and_smaller_trees_keep_words(tmp_path: Path) -> None:
    which, X = model(), queries()
    path = tmp_path / "model.bw"
    which.save(path)
    for other in (bw.load(path), bw.load(path, memory="read", verify=True), pickle.loads(pickle.dumps(which))):
        same(other.topk(X, 9, 4), which.topk(X, 9, 4))
        assert other.version == which.version
    small = which.compress("u8")
    assert small.parts.shape.head == which.parts.shape.head
    same(small.topk(X, 9, 4), expected(small, X, 9, 4)[:2])


def test_a_file_with_words_says_so(tmp_path: Path) -> None:
    assert {"index-1", "head-2"} <= set(model().parts.shape.requires())
    X, Y = random_problem(40, 8, 6, 1)
    plain = bw.train(X, Y, "fast", lexical="auto", progress=False, threads=1)
    assert not {"index-1", "head-2"} & set(plain.parts.shape.requires())
    assert plain.info()["lexical"]["kept"] is False
    assert "too few rows" in plain.info()["lexical"]["why"]


@pytest.mark.parametrize("kind", [{}, {"trees": 1}, {"preset": "fast"}])
def test_scores_of_given_labels_are_those_of_a_search_that_drops_nothing(kind: dict[str, Any]) -> None:
    which, X = model(**kind), queries()
    labels, scores = which.topk(X, LABELS, LABELS)
    assert np.array_equal(which.score(X, labels).view(np.uint32), scores.view(np.uint32))
    few = which.score(X, [3, "5", 3])
    assert few.shape == (X.shape[0], 3)
    assert np.array_equal(few[:, 0], few[:, 2])


def test_scores_of_a_model_of_trees_only_are_those_of_their_paths() -> None:
    X, Y = random_problem(ROWS, FEATURES, LABELS, 7, density=0.1)
    for trees in (1, 3):
        which = bw.train(X, Y, branching=6, max_leaf=8, trees=trees, lexical=False, progress=False, threads=1)
        Q, shape = queries(), which.parts.shape
        got = which.score(Q, list(range(LABELS)), threads=2)
        for row in range(Q.shape[0]):
            query = reference.unit_length(Q[[row]]) if shape.unit_rows else Q[[row]]
            layers = [which.layers(tree) for tree in range(trees)]
            want = reference.label_scores(layers, query, shape.activation, range(LABELS))
            assert np.array_equal(got[row].view(np.uint32), want.view(np.uint32))


def test_scores_refuse_labels_that_there_are_not() -> None:
    which, X = model(), queries()
    for labels in ([LABELS], ["nobody"], "3", None, np.full((2, 2), 1), np.full((12, 1), LABELS), np.zeros((12, 1))):
        with pytest.raises(DataError):
            which.score(X, labels)
    assert which.score(X, np.full((12, 1), -1)).tolist() == [[-np.inf]] * 12
    assert which.score(X, []).shape == (12, 0)


def test_explanations_end_in_the_score() -> None:
    which, X = model(), queries()
    labels, scores = which.topk(X, 8, 3)
    for row in range(1, X.shape[0]):
        for label, score in zip(labels[row].tolist(), scores[row].tolist(), strict=True):
            found = which.explain(X[[row]], label, beam=3)
            assert found.score == score
            assert found.words is not None
            assert found.head is not None
            total = np.float32(0)
            for share in found.words.shares:
                total = total + np.float32(share.product)
            assert float(total) == found.head.word_sum
            assert "head:" in repr(found)
            exact = which.explain(X[[row]], label)
            assert exact.score == which.score(X[[row]], [label])[0, 0]


def test_scores_rise_with_those_of_each_member() -> None:
    head = Head(-2.0, 0.5, 3.0, -8.0, -5.0, 4.0, 20)
    rising = np.linspace(0, 1, 400).astype(np.float32)
    one = np.ones(400, np.float32)
    for name in ("identity", "hinge-3", "log-sigmoid"):
        activation = Activation.parse(name).native
        for trees, words in ((rising, one), (one, rising)):
            scores = head.scores(activation, trees, words, one, np.zeros(400))
            assert (np.diff(scores) >= 0).all()
            assert (scores > 0).all()
            assert (scores < 1).all()


def test_the_logarithm_is_close_to_the_true_one() -> None:
    for score in np.float32([1e-44, 1e-38, 1e-7, 0.1, 0.5, 0.999, 1.0]):
        ours = _core.evidence([0, 0, 0, -1e9, 0], Activation.parse("sigmoid").native, score)
        assert ours == pytest.approx(np.log(np.float64(score)), rel=1e-14, abs=1e-15)


def test_an_empty_query_has_an_answer_or_none_but_no_fault() -> None:
    which = model()
    labels, scores = which.topk(sp.csr_array((1, FEATURES), dtype=np.float32), 5)
    same((labels, scores), expected(which, sp.csr_array((1, FEATURES), dtype=np.float32), 5, 10)[:2])


def test_lexical_is_a_setting_with_three_values() -> None:
    X, Y = random_problem(40, 8, 6, 1)
    for wrong in ("yes", None, 1, 0.5):
        with pytest.raises(SettingsError, match="lexical"):
            bw.train(X, Y, "fast", lexical=wrong, progress=False)
    assert bw.train(X, Y, "fast", lexical=False, progress=False, threads=1).info()["lexical"] is None


def test_the_same_file_for_any_number_of_threads() -> None:
    X, Y = random_problem(3000, 60, 90, 5, density=0.1)
    one, two = (bw.train(X, Y, "fast", lexical="auto", progress=False, threads=n) for n in (1, 2))
    assert one.version == two.version
    assert one.info()["lexical"]["rows"] >= 100
    told = one.report.lexical
    assert told is not None
    assert set(told["trees"]) == {"precision@1", "precision@5", "recall@10"}
