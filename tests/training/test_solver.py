"""The dual solver: optima, same bits, parity with PECOS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import best_objective, even_tree, objective, random_problem, scores

from beamwood.training.settings import settings_for
from beamwood.training.train import train_layers

TOY = Path(__file__).parents[1] / "golden" / "pecos-training-toy"
TIGHT = Path(__file__).parents[1] / "golden" / "pecos-tight"
# The tree that PECOS grows for the toy: ten labels under node 0 and ten under node 1.
TWO_HALVES = [(np.zeros(2, dtype=np.int64), None), (np.arange(20) // 10, None)]
LOSSES = ["squared-hinge", "hinge", "logistic"]


def relative_gaps(
    X: Any,
    Y: Any,
    tree: str,
    *,
    C: Any = 1.0,
    bias: Any = 1.0,
    loss: str = "squared-hinge",
    row_weights: Any = None,
    rare_weight: Any = 0.0,
    seed: int = 0,
) -> Any:
    """How far every node of a one-layer tree is above the brute-force optimum of its problem."""
    settings = settings_for(
        "fast", C=C, rare_weight=rare_weight, bias=bias, loss=loss, eps=1e-6, max_iter=20000, prune=0.0
    )
    (layer,) = train_layers(X, Y, tree, settings, seed=seed, row_weights=row_weights)
    dense = np.hstack([X.toarray(), np.full((X.shape[0], 1), bias)]).astype(np.float64)
    cost = np.full(X.shape[0], C) * (1 if row_weights is None else row_weights)
    gaps = []
    for node in range(Y.shape[1]):
        relevance = Y[:, [node]].toarray().ravel()
        y = np.where(relevance > 0, 1.0, -1.0)
        of_positives = 1 + rare_weight / np.count_nonzero(relevance)
        per_row = cost * np.where(relevance > 0, of_positives * relevance, 1.0)
        w = np.append(layer.weights[:, [node]].toarray().ravel(), layer.bias[node] / bias if bias else 0.0)
        best = best_objective(dense, y, per_row, loss)
        gaps.append((objective(w.astype(np.float64), dense, y, per_row, loss) - best) / best)
    return np.array(gaps)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_reaches_the_optimum_of_brute_force(loss: str, C: Any) -> None:
    X, Y = random_problem(40, 8, 9, seed=1)
    assert relative_gaps(X, Y, even_tree(9, 9), C=C, loss=loss).max() < 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_without_bias(loss: str) -> None:
    X, Y = random_problem(50, 8, 3, seed=2)
    assert relative_gaps(X, Y, even_tree(3, 3), bias=0.0, loss=loss).max() < 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_with_row_weights_and_relevance(loss: str) -> None:
    X, Y = random_problem(40, 8, 9, seed=3)
    rng = np.random.default_rng(0)
    Y.data = rng.uniform(0.5, 3, Y.nnz).astype(np.float32)
    weights = rng.uniform(0.2, 2, X.shape[0])
    assert relative_gaps(X, Y, even_tree(9, 9), loss=loss, row_weights=weights).max() < 1e-4
    assert relative_gaps(X, Y, even_tree(9, 9), loss=loss, row_weights=weights, rare_weight=3.0).max() < 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_with_more_weight_on_rare_labels(loss: str) -> None:
    X, Y = random_problem(40, 8, 9, seed=11)
    assert relative_gaps(X, Y, even_tree(9, 9), loss=loss, rare_weight=5.0).max() < 1e-4


def test_default_eps_is_near_the_optimum() -> None:
    X, Y = random_problem(80, 20, 8, seed=4)
    coarse = train_layers(X, Y, even_tree(8, 8), settings_for("fast", prune=0.0))[0]
    fine = train_layers(X, Y, even_tree(8, 8), settings_for("fast", prune=0.0, eps=1e-8, max_iter=10000))[0]
    assert np.abs(coarse.weights - fine.weights).max() < 0.2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("branching", [2, 5, 64])
def test_same_bits_for_any_thread_count(loss: str, branching: Any) -> None:
    X, Y = random_problem(400, 60, 100, seed=5, density=0.1)
    settings = settings_for("fast", loss=loss)
    one, two, five = (train_layers(X, Y, even_tree(100, branching), settings, seed=7, threads=t) for t in (1, 2, 5))
    for a, b, c in zip(one, two, five, strict=True):
        for other in (b, c):
            assert a.weights.indptr.tobytes() == other.weights.indptr.tobytes()
            assert a.weights.indices.tobytes() == other.weights.indices.tobytes()
            assert a.weights.data.tobytes() == other.weights.data.tobytes()
            assert a.bias.tobytes() == other.bias.tobytes()


def test_weights_of_a_node_do_not_depend_on_its_siblings_lanes() -> None:
    """At a fine eps the optimum is unique: a node learns the same alone as beside others."""
    X, Y = random_problem(60, 10, 9, seed=6)
    settings = settings_for("fast", eps=1e-9, max_iter=20000, prune=0.0)
    together = train_layers(X, Y, even_tree(9, 9), settings)[0]
    order = np.random.default_rng(0).permutation(9)
    shuffled = train_layers(X, Y[:, order], even_tree(9, 9), settings)[0]
    assert np.abs(together.weights[:, order] - shuffled.weights).max() < 1e-5


def test_prune_drops_small_weights_and_bias() -> None:
    X, Y = random_problem(60, 12, 4, seed=7)
    full = train_layers(X, Y, even_tree(4, 4), settings_for("fast", prune=0.0))[0]
    pruned = train_layers(X, Y, even_tree(4, 4), settings_for("fast", prune=0.5))[0]
    expected = full.weights.copy()
    expected.data[np.abs(expected.data) < 0.5] = 0
    expected.eliminate_zeros()
    assert (expected != pruned.weights).nnz == 0
    assert np.array_equal(pruned.bias, np.where(np.abs(full.bias) >= 0.5, full.bias, 0))


def test_top_weights_keeps_the_largest() -> None:
    X, Y = random_problem(60, 12, 4, seed=8)
    full = train_layers(X, Y, even_tree(4, 4), settings_for("fast", prune=0.0))[0]
    top = train_layers(X, Y, even_tree(4, 4), settings_for("fast", prune=0.0, top_weights=3))[0]
    for node in range(4):
        column = full.weights[:, [node]].toarray().ravel()
        largest = np.sort(np.argsort(-np.abs(column), kind="stable")[:3])
        assert np.array_equal(top.weights[:, [node]].tocsc().indices, largest)
        assert np.array_equal(top.weights[:, [node]].tocsc().data, column[largest])


def test_relevance_of_two_equals_the_row_twice() -> None:
    X, Y = random_problem(30, 8, 3, seed=9)
    settings = settings_for("fast", eps=1e-9, max_iter=50000, prune=0.0)
    weights = np.ones(30)
    weights[4] = 2
    twice = train_layers(sp.vstack([X, X[[4]]]), sp.vstack([Y, Y[[4]]]), even_tree(3, 3), settings)[0]
    weighted = train_layers(X, Y, even_tree(3, 3), settings, row_weights=weights)[0]
    assert np.abs(twice.weights - weighted.weights).max() < 1e-5


def test_pecos_own_training_test_within_1e6() -> None:
    assert nearest_to_pecos("Yt_pred.npz", TWO_HALVES) < 1e-6


def test_pecos_own_training_test_with_four_splits_within_1e6() -> None:
    leaf_parent = np.array([0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 11, 12, 13, 14, 15, 15])
    tree = [(np.zeros(4, dtype=np.int64), None), (np.arange(16) // 4, None), (leaf_parent, None)]
    assert nearest_to_pecos("P_nr_splits=4.npz", tree) < 1e-6


def test_pecos_own_training_test_with_matcher_aware_negatives_within_1e6() -> None:
    """Its answers to this one are sigmoids. Both rows lie under node 0, so each is the other's negative anyway."""
    assert nearest_to_pecos("Yt_pred_with_tfn+man.npz", TWO_HALVES, "sigmoid", negatives="tfn+man") < 1e-6


def test_pecos_own_primal_solver_within_1e6() -> None:
    """Its primal solver goes to the optimum, which is unique: so must we at a fine eps, in any order of visits."""
    assert nearest_to_pecos("Yt_primal_pred.npz", TWO_HALVES, eps=1e-9, max_iter=100_000, seeds=1) < 1e-6


def nearest_to_pecos(name: Any, tree: str, activation: Any = "hinge-3", seeds: Any = 64, **settings: Any) -> Any:
    """The distance of PECOS' predictions from the nearest of ours.

    Its dual solver stops at eps = 0.1, so its numbers depend on the order in which std::shuffle happens to visit the
    two rows. Ours is another order for every seed; among them there is PECOS' own. Labels without a row are
    constant nodes here and score zero, where PECOS learns a bias from negatives alone: only labels with rows
    are compared.
    """
    X, Y, Xt = cast("Iterator[Any]", (sp.load_npz(TOY / name).tocsr() for name in ("X.npz", "Y.npz", "Xt.npz")))
    expected = sp.load_npz(TOY / name).toarray()
    learned = np.unique(Y.indices)
    chosen = settings_for("fast", activation=activation, **settings)
    distances = []
    for seed in range(seeds):
        ours = scores(train_layers(X, Y, tree, chosen, seed=seed), Xt, activation)
        distances.append(float(np.abs(ours - expected)[:, learned].max()))
    return min(distances)


@pytest.mark.parametrize(("loss", "bias"), [("squared-hinge", 1.0), ("logistic", 0.0)])
def test_same_predictions_as_pecos_when_eps_is_fine(loss: str, bias: Any) -> None:
    X, Y, expected = cast("Iterator[Any]", (sp.load_npz(TIGHT / f"{name}.npz").tocsr() for name in ("X", "Y", loss)))
    tree = [(np.zeros(4, dtype=np.int64), None), (np.arange(45) * 4 // 45, None)]
    settings = settings_for("fast", loss=loss, bias=bias, eps=1e-9, max_iter=100_000)
    distance = np.abs(scores(train_layers(X, Y, tree, settings), X) - expected.toarray()).max()
    assert distance < 3e-6  # the weights are the same; PECOS sums the float32 products in another order
