"""Objects of the form that LibMultiLabel's train_tree returns: the same scores, or an error that says what is missing.

The real library is compared in tests/rivals.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood import interop

WEIGHTS = np.array([[1.0, -1.0, 2.0, 0.5, -0.5], [0.5, 1.0, -1.0, 1.0, 0.0], [0.25, 0.5, 0.0, -0.25, 1.0]])


def node(index: int, children: list[Any], labels: list[int]) -> Any:
    return SimpleNamespace(index=index, children=children, label_map=np.array(labels))


def tree(bias: float = -1.0, scaled: bool = True, **other: Any) -> Any:
    """A root with two leaves, of two labels and of one; columns 0 and 1 are the root's."""
    root = node(0, [node(1, [], [2, 0]), node(2, [], [1])], [0, 1, 2])
    flat = SimpleNamespace(weights=sp.csc_matrix(WEIGHTS), bias=bias)

    def newer(x: Any, beam_width: int = 10, prob_A: float = 3.0) -> None: ...
    def older(x: Any, beam_width: int = 10) -> None: ...

    made = {"root": root, "flat_model": flat, "node_ptr": [0, 2, 4, 5], "predict_values": newer if scaled else older}
    return SimpleNamespace(**{**made, **other})


def log_sigmoid(z: Any) -> Any:
    return -np.log1p(np.exp(-z))


def test_scores_are_products_of_sigmoids_along_the_path() -> None:
    x = np.array([[1.0, 0.5, 2.0]])
    z = log_sigmoid(3.0 * (x @ WEIGHTS))[0]
    expected = np.exp([z[0] + z[3], z[1] + z[4], z[0] + z[2]])
    found = interop.from_libmultilabel(tree()).predict(x, k=3).toarray()[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_bias_is_the_last_row_and_a_factor_may_be_given() -> None:
    x = np.array([[1.0, 0.5]])
    z = log_sigmoid(2.0 * (np.hstack([x, [[0.5]]]) @ WEIGHTS))[0]
    found = interop.from_libmultilabel(tree(bias=0.5), prob_A=2.0).predict(x, k=3).toarray()[0]
    np.testing.assert_allclose(found, np.exp([z[0] + z[3], z[1] + z[4], z[0] + z[2]]), rtol=1e-5)


def test_older_releases_have_a_squared_hinge_and_several_trees_are_a_mean() -> None:
    x = np.array([[1.0, 0.5, 2.0]])
    z = -np.square(np.maximum(0.0, 1.0 - x @ WEIGHTS))[0]
    expected = np.exp([z[0] + z[3], z[1] + z[4], z[0] + z[2]])
    several = SimpleNamespace(tree_models=[tree(scaled=False), tree(scaled=False)])
    for given in (tree(scaled=False), several):
        np.testing.assert_allclose(interop.from_libmultilabel(given).predict(x, k=3).toarray()[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (tree(node_ptr=[0, 2, 4]), "node 2 has no weights; expected nodes below 2"),
        (tree(node_ptr=[0, 2, 3, 5]), "node 2 has 2 columns; expected 1, one per child"),
        (tree(root=node(1, [], [0, 1])), "column 0 of the weights belongs to no node"),
        (SimpleNamespace(root=None), "tree is a SimpleNamespace without flat_model"),
    ],
)
def test_trees_that_do_not_fit_their_weights_are_refused(given: Any, message: str) -> None:
    with pytest.raises(bw.DataError, match=message):
        interop.from_libmultilabel(given)


def test_a_factor_that_the_release_does_not_have_is_refused() -> None:
    with pytest.raises(bw.DataError, match=r"prob_A is 2.0; expected None"):
        interop.from_libmultilabel(tree(scaled=False), prob_A=2.0)
