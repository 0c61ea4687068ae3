"""The exact bound: what it leaves out, that it changes no bit, and where it would lose a label and must not be used."""

from __future__ import annotations

from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.models import large_model, large_queries, small_model, small_queries
from support.strategies import random_case

import beamwood as bw
from beamwood import reference
from beamwood.storage.activations import Activation

ENGINES: list[dict[str, str]] = [
    {},
    {"layout": "chunk"},
    *({"layout": layout, "matcher": matcher} for layout in ("chunk", "column") for matcher in ("binary", "hash")),
]


def decided_model() -> bw.Model:
    """The nodes of the beam differ in their scores, and each has labels that fit: the best node alone has enough."""
    top, leaves = large_model().layers()
    calm = bw.Layer(top.weights * 0.05, top.parent, top.bias, top.label)
    return bw.Model.from_layers([calm, leaves], activation="hinge-3")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_bound_opens_fewer_nodes_and_changes_no_bit(engine: dict[str, str]) -> None:
    model, X = decided_model().using(**engine), large_queries(200)
    for threads in (1, 2):
        *bounded, few = model.topk(X, threads=threads, stats=True)
        *plain, all_of_them = model.using(bound=False).topk(X, threads=threads, stats=True)
        laws.check_same(tuple(bounded), tuple(plain), engine)
        assert all_of_them.blocks == 200 * (1 + 10)
        assert few.blocks < 0.8 * all_of_them.blocks


@pytest.mark.parametrize("seed", range(40))
def test_no_bit_changes_on_random_models(seed: int) -> None:
    case = random_case(seed)
    model = case.model()
    for engine in ENGINES:
        one = model.using(**engine)
        for k, beam in case.asks:
            laws.check_same(one.topk(case.X, k, beam), one.using(bound=False).topk(case.X, k, beam), seed, engine)


def naive_beam(layers: list[bw.Layer], x: Any, activation: Activation, k: int, beam: int) -> list[int]:
    """Beam search of one dense row that stops as the bound does, whether or not scores can rise."""
    open_nodes = [(activation.root_score, 0)]
    for depth, layer in enumerate(layers):
        keep = k if depth == len(layers) - 1 else beam
        found: list[tuple[float, int]] = []
        for score, node in open_nodes:
            if len(found) >= keep and sorted(found, reverse=True)[keep - 1][0] > score:
                break
            for child in np.flatnonzero(np.asarray(layer.parent) == node):
                z = np.float32(x @ layer.weights[:, [child]].toarray()[:, 0])
                own = activation.scores(np.array([z], np.float32))[0]
                found.append((float(own), int(child)))
        open_nodes = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:keep]
    return [node for _, node in open_nodes]


def test_with_identity_a_naive_bound_loses_the_best_label() -> None:
    """Two nodes in the beam; all labels of the first stand above the second, below which the best label lies."""
    top = bw.Layer(sp.csc_array(np.array([[3.0, 1.0]], np.float32)), np.zeros(2, int))
    below = bw.Layer(sp.csc_array(np.array([[2.0, 2.5, 9.0, 0.5]], np.float32)), np.array([0, 0, 1, 1]))
    layers, x = [top, below], np.ones(1, np.float32)
    model = bw.Model.from_layers(layers, activation="identity")
    expected = reference.topk([layers], sp.csr_array(x[None]), Activation.parse("identity", None), 2, 2)
    assert expected[0].tolist() == [[2, 1]]
    assert naive_beam(layers, x, Activation.parse("identity", None), 2, 2) == [1, 0], "the naive bound loses label 2"
    for engine in laws.engines():
        laws.check_same(model.using(**engine).topk(x[None], 2, 2), expected, engine)


def test_every_label_of_several_trees_counts() -> None:
    """In the last layer of several trees nothing may be left out: a low score in one tree may win by the others."""
    trees = []
    for low, high in (([0.9, 0.8], [0.1, 0.7]), ([0.1, 0.1], [0.1, 5.0])):
        top = bw.Layer(sp.csc_array(np.array([[2.0, -0.5]], np.float32)), np.zeros(2, int))
        leaves = bw.Layer(sp.csc_array(np.array([[*low, *high]], np.float32)), np.array([0, 0, 1, 1]))
        trees.append([top, leaves])
    model = bw.Model.from_trees([bw.Model.from_layers(tree, activation="hinge-1") for tree in trees])
    x = sp.csr_array(np.ones((1, 1), np.float32))
    for k in (1, 2, 4):
        expected = reference.topk(trees, x, Activation.parse("hinge-1", None), k, 2)
        for engine in laws.engines():
            laws.check_same(model.using(**engine).topk(x, k, 2), expected, engine)


def test_the_bound_is_a_switch() -> None:
    model = small_model()
    assert model.info()["engine"]["bound"] is True
    assert model.using(bound=False).info()["engine"]["bound"] is False
    laws.check_same(model.using(bound=False).topk(small_queries()), model.topk(small_queries()))
    wrong: Any = "no"
    with pytest.raises(bw.SettingsError, match=r"bound='no'. Use True, or False"):
        model.using(bound=wrong)
