"""Explanations: their numbers, added in order, are the engine's own, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries, sparse
from support.strategies import Case, random_case

import beamwood as bw
from beamwood import reference
from beamwood.explain import unit_row
from beamwood.storage.activations import Activation

F = np.float32


def bits(value: Any) -> bytes:
    """The bits of a float32; NaN is one value."""
    return F(value).tobytes() if not np.isnan(value) else b"nan"


def score_again(explanation: bw.Explanation) -> np.float32:
    """The score, computed from the products alone, checking each number on the way."""
    form = Activation.parse(explanation.activation, explanation.path, explanation.discount)
    total = F(0)
    for tree in explanation.trees:
        score = F(form.root_score)
        for step in tree.steps:
            z = F(0)
            for share in step.shares:
                assert bits(F(share.value) * F(share.weight)) == bits(share.product)
                z = z + F(share.product)
            z = z + F(step.bias)
            assert bits(z) == bits(step.z)
            assert bits(step.above) in (bits(score), bits(score * F(form.discount)))
            score = F(step.above)
            own = form.scores(np.array([z], F))[0]
            assert bits(own) == bits(step.activation)
            score = {"product": score * own, "last": own}.get(form.path, score + own)
            assert bits(score) == bits(step.score)
            assert [share.feature for share in step.shares] == sorted({share.feature for share in step.shares})
        shown = form.leaf_scores(np.array([score], F))[0]
        assert bits(shown) == bits(tree.score)
        total = total + shown
    mean: np.float32 = shown if explanation.number_of_trees == 1 else total / F(explanation.number_of_trees) + F(0)
    return mean


def check_case(case: Case) -> int:
    """Labels of every row: the score of a beam that drops nothing, and of a narrow one where trees may miss."""
    checked = 0
    model = case.model()
    for engine in ({}, {"layout": "cascade"}, {"layout": "column"}):
        one = model.using(**engine)
        for beam in (None, case.asks[0][1]):
            labels, scores = model.topk(case.X, 3, laws.everything(case) if beam is None else beam)
            for row in range(case.X.shape[0]):
                for label, score in zip(labels[row], scores[row], strict=True):
                    if label < 0:
                        continue
                    explanation = one.explain(case.X[[row]], int(label), beam=beam, words=3)
                    what = (case.seed, engine, beam, row, label)
                    assert bits(explanation.score) == bits(score), what
                    assert bits(score_again(explanation)) == bits(score), what
                    json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
                    checked += 1
    return checked


@pytest.mark.parametrize("seed", range(7000, 7040))
def test_products_add_up_to_the_score_bit_for_bit(seed: int) -> None:
    case = random_case(seed)
    with np.errstate(all="ignore"):
        assert check_case(case) or case.X.shape[0] == 0


def test_the_nodes_of_a_path_are_those_of_layers() -> None:
    model, X = small_model(), small_queries()
    layers = model.layers()
    for label in (0, 17, 39):
        (tree,) = model.explain(X[[0]], label).trees
        assert [step.layer for step in tree.steps] == [0, 1]
        assert tree.steps[1].node == label
        assert tree.steps[0].node == layers[1].parent[label]
        for step in tree.steps:
            assert step.layer is not None
            column = layers[step.layer].weights[:, [step.node]].toarray()[:, 0]
            assert [share.weight for share in step.shares] == [column[share.feature] for share in step.shares]
            assert {share.feature for share in step.shares} == set(X[[0]].indices) & set(np.flatnonzero(column))
            best = sorted(np.flatnonzero(column > 0), key=lambda j: (-column[j], j))[:10]
            assert [telling.feature for telling in step.words] == best
            assert model.words(0, step.layer, step.node) == step.words
            assert model.using(layout="cascade").words(0, step.layer, step.node, n=4) == step.words[:4]


TEXTS = ["red wool socks", "blue cotton socks", "wool hat", "straw hat", "rubber boots", "leather boots"] * 3
LABELS = [["s1", "w1"], ["s1"], ["h1", "w1"], ["h1"], ["b1"], ["b1"]] * 3
NAMES = {"s1": "Socks", "w1": "Made of wool", "h1": "Hats", "b1": "Boots"}


@pytest.fixture(scope="module")
def shop() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, preset="fast", branching=2, max_leaf=2, names=NAMES, progress=False)


def test_an_explanation_speaks_in_words(shop: bw.Model) -> None:
    explanation = shop.explain("warm wool socks", "s1")
    (hit,) = (hit for hit in shop.search("warm wool socks") if hit.key == "s1")
    assert (explanation.label, explanation.key, explanation.name, explanation.score) == hit[:4]
    leaf = explanation.trees[0].steps[-1]
    assert {share.word for share in leaf.shares} <= {"wool", "socks"}
    assert leaf.words[0].word == "socks"
    text = repr(explanation)
    assert text.startswith(f"{hit.score:.6g}  Socks (s1)\n")
    assert "socks +" in text
    assert "about: socks" in text


def test_an_explanation_survives_a_file(shop: bw.Model, tmp_path: Path) -> None:
    shop.save(tmp_path / "shop.bw")
    assert bw.load(tmp_path / "shop.bw").explain("wool", "w1") == shop.explain("wool", "w1")


def test_a_text_without_known_words_is_explained_by_biases_alone(shop: bw.Model) -> None:
    for step in shop.explain("xyzzy", "w1").trees[0].steps:
        assert step.shares == ()
        assert step.z == step.bias


def test_what_cannot_be_explained_is_said(shop: bw.Model) -> None:
    with pytest.raises(bw.DataError, match="'x' is no label's key"):
        shop.explain("wool", "x")
    with pytest.raises(bw.DataError, match="Label 4 does not exist"):
        shop.explain("wool", 4)
    with pytest.raises(bw.DataError, match="2 rows"):
        small_model().explain(small_queries(2), 0)
    with pytest.raises(bw.SettingsError, match="no words"):
        small_model().explain("wool", 0)
    with pytest.raises(bw.SettingsError, match="beam is 0"):
        shop.explain("wool", "w1", beam=0)
    with pytest.raises(bw.SettingsError, match="words"):
        shop.explain("wool", "w1", words=-1)
    with pytest.raises(bw.SettingsError, match="node is 99"):
        shop.words(0, 0, 99)
    unreached = [key for key in NAMES if key not in {hit.key for hit in shop.search("straw hat", beam=1)}]
    with pytest.raises(bw.DataError, match="is not reached with beam=1"):
        shop.explain("straw hat", unreached[0], beam=1)


def test_rows_are_scaled_as_in_the_reference() -> None:
    for seed in range(20):
        row = sparse(1, 400, 0.3, seed)
        row.data *= 10.0 ** (seed - 10)
        assert unit_row(row).data.tobytes() == reference.unit_length(row).data.tobytes()
    empty = sp.csr_array((1, 5), dtype=np.float32)
    assert unit_row(empty).nnz == 0


def test_a_key_that_is_nearly_right_is_offered() -> None:
    model = bw.train_text(["red wool socks", "straw hat"], [["Socks"], ["hats"]], progress=False)
    with pytest.raises(bw.DataError, match="Did you mean 'Socks'"):
        model.explain("wool", "sock")
    with pytest.raises(bw.DataError, match="what search shows"):
        model.explain("wool", "bicycle")
