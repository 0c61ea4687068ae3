"""Rows that reach a parent: positives, ancestors, matcher-aware and own negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from support.problems import SMALL, even_tree, precision_at_1

from beamwood.training.settings import settings_for
from beamwood.training.train import train, train_layers
from beamwood.training.weights import Columns, ancestors


def test_every_row_reaches_a_parent_that_has_one_of_its_labels() -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 2]], dtype=np.float32))
    columns = Columns.below(Y, np.array([0, 0, 1, 1]), 2)
    assert columns.row.tolist() == [0, 1, 0, 1, 2]
    assert columns.start.tolist() == [0, 2, 5]
    assert columns.value.tolist() == [1, 1, 1, 1, 2]


def test_a_row_with_two_labels_below_a_node_counts_the_larger() -> None:
    Y = sp.csr_matrix(np.array([[1, 3, 0], [2, 0, 5]], dtype=np.float32))
    assert Columns.below(Y, np.array([0, 0, 1]), 2).value.tolist() == [3, 2, 5]


def test_ancestors_of_leaves_at_different_depths() -> None:
    shape = [(np.array([0, 0, 0]), np.array([2, -1, -1])), (np.array([1, 2, 2]), np.array([0, 1, 3]))]
    top, last = ancestors(shape, 4)
    assert top.tolist() == [1, 2, 0, 2]
    assert last.tolist() == [0, 1, -1, 2]


def test_union_of_columns_holds_each_row_once() -> None:
    a = Columns(np.array([0, 2, 2]), np.array([0, 2], np.int32), np.empty(0, np.float32), 3)
    b = Columns(np.array([0, 2, 3]), np.array([1, 2, 0], np.int32), np.empty(0, np.float32), 3)
    assert (a | b).row.tolist() == [0, 1, 2, 0]
    assert (a | b).start.tolist() == [0, 3, 4]


def test_matcher_aware_negatives_are_rows_whose_beam_reaches_the_parent(problem: Any) -> None:
    """A matcher that sends every row everywhere makes every node learn from all rows."""
    X, Y = problem
    tree = even_tree(30, 6)
    everywhere = train_layers(
        X, Y, tree, settings_for("fast", negatives="man"), match=lambda t: np.tile(np.arange(5), (300, 1))
    )
    flat = train_layers(X, Y, even_tree(30, 30), settings_for("fast", eps=1e-9, max_iter=10000))
    assert np.abs(everywhere[-1].weights - flat[0].weights).max() < 0.3
    nowhere = train_layers(X, Y, tree, settings_for("fast", negatives="man"), match=lambda t: np.full((300, 5), -1))
    assert (nowhere[-1].bias >= 0).all()  # only positives were seen


def test_matcher_aware_negatives_through_the_engine(problem: Any) -> None:
    X, Y = problem
    for negatives in ("man", "tfn+man"):
        assert precision_at_1(train(X, Y, **SMALL, negatives=negatives, C=10.0), X, Y) > 0.7


def test_user_negatives_are_learned_from(problem: Any) -> None:
    X, Y = problem
    tree = even_tree(30, 6)
    all_labels = sp.csr_matrix(np.ones(Y.shape))
    settings = settings_for("fast", negatives="user", eps=1e-9, max_iter=10000)
    wide = train_layers(X, Y, tree, settings, negatives_matrix=all_labels)
    flat = train_layers(X, Y, even_tree(30, 30), settings_for("fast", eps=1e-9, max_iter=10000))
    assert np.abs(wide[-1].weights - flat[0].weights).max() < 1e-5
