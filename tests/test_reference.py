"""The plain reference does what the design says, on cases small enough to check by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood import reference
from beamwood.storage.activations import Activation

F = np.float32


def layer(columns: list[list[float]], parent: list[int], **more: Any) -> bw.Layer:
    """A layer from one list of weights a node; every weight is stored, zeros too."""
    dense = np.array(columns, np.float32).T
    rows, nodes = np.divmod(np.arange(dense.size), dense.shape[1])
    weights = sp.coo_array((dense.ravel(), (rows, nodes)), shape=dense.shape)
    return bw.Layer(weights.tocsc(), np.array(parent), **more)


def ask(
    trees: list[list[bw.Layer]], x: list[float], activation: str = "identity", **how: Any
) -> list[tuple[int, float]]:
    """The reference's answer to one dense query."""
    parsed = Activation.parse(activation, how.pop("path", None), how.pop("discount", 1.0))
    with np.errstate(all="ignore"):
        labels, scores = reference.topk(trees, sp.csr_array([x]), parsed, **how)
    return list(zip(labels[0].tolist(), scores[0].tolist(), strict=True))


def test_the_sum_is_taken_in_rising_feature_order_with_the_bias_last() -> None:
    big = [[1e8, 1.0, -1e8]]
    one = layer(big, [0], bias=np.array([1.0], np.float32))
    assert ask([[one]], [1, 1, 1], k=1) == [(0, 1.0)]  # (1e8 + 1) is 1e8 in float32, then 0, then the bias
    swapped = layer([[1e8, -1e8, 1.0]], [0], bias=np.array([1.0], np.float32))
    assert ask([[swapped]], [1, 1, 1], k=1) == [(0, 2.0)]


def test_rows_that_are_not_sorted_are_summed_in_rising_order_all_the_same() -> None:
    one = layer([[1e8, 1.0, -1e8]], [0])
    X = sp.csr_array((np.ones(3, np.float32), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    _, scores = reference.topk([[one]], X, Activation.parse("identity"), k=1)
    assert scores.tolist() == [[0.0]]
    assert X.indices.tolist() == [2, 0, 1]


def test_no_product_is_fused_into_the_sum() -> None:
    a = float(F(1) + F(2**-12))
    one = layer([[-1.0, a]], [0])
    square = float(F(a) * F(a))  # rounded before it is added
    assert ask([[one]], [square, a], k=1) == [(0, 0.0)]


def test_equal_scores_rank_by_label_and_nan_comes_last() -> None:
    labels = np.array([2, 0, 3, 1])
    one = layer([[1], [1], [2], [1]], [0] * 4, label=labels, bias=np.array([0, 0, 0, np.inf], np.float32))
    assert [label for label, _ in ask([[one]], [1], k=4)] == [1, 3, 0, 2]
    overflow = layer([[3e38, -3e38], [0, 0]], [0, 0])  # inf - inf
    found = ask([[overflow]], [10, 10], k=2)
    assert found[0] == (1, 0.0)
    assert found[1][0] == 0
    assert np.isnan(found[1][1])


def test_the_beam_breaks_ties_by_place_in_the_tree() -> None:
    top = layer([[1], [1]], [0, 0])
    middle = layer([[1], [1]], [1, 0])  # node 0 stands behind node 1 once siblings lie together
    leaves = layer([[5], [6]], [0, 1])
    assert ask([[top, middle, leaves]], [1], k=2, beam=1) == [(1, 6.0), (-1, -np.inf)]


def test_an_early_leaf_takes_no_place_in_the_beam() -> None:
    top = layer([[9], [1]], [0, 0], label=np.array([1, -1]))
    leaves = layer([[2]], [1], label=np.array([0]))
    assert ask([[top, leaves]], [1], k=2, beam=1) == [(1, 9.0), (0, 2.0)]


def test_the_last_layer_keeps_k_of_all_children_of_the_beam() -> None:
    top = layer([[1], [2]], [0, 0])
    leaves = layer([[1], [2], [3], [4]], [0, 0, 1, 1])
    assert ask([[top, leaves]], [1], k=2, beam=1) == [(3, 4.0), (2, 3.0)]
    assert ask([[top, leaves]], [1], k=3, beam=1)[2] == (-1, -np.inf)


def test_a_score_of_zero_is_a_candidate_like_any_other() -> None:
    one = layer([[0], [-1], [1]], [0, 0, 0], bias=np.array([-np.inf, 0, 0], np.float32))
    found = ask([[one]], [1], activation="sigmoid", k=3)
    assert [label for label, _ in found] == [2, 1, 0]
    assert found[2] == (0, 0.0)
    log = ask([[one]], [1], activation="log-sigmoid", k=3)
    assert log[2] == (0, -np.inf)


def test_an_ensemble_sums_what_each_tree_reached_and_divides_once() -> None:
    first = [layer([[1], [3]], [0, 0]), layer([[1], [2], [6]], [0, 1, 1])]
    second = [layer([[4], [1]], [0, 0]), layer([[5], [1], [1]], [0, 1, 1])]
    # With beam 1 the first tree reaches labels 1 and 2, the second label 0 alone.
    assert ask([first, second], [1], k=3, beam=1) == [(2, 3.0), (0, 2.5), (1, 1.0)]


def test_a_mean_that_vanishes_is_zero_and_not_minus_zero() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    trees = [[layer([[-tiny], [0], [-tiny]], [0, 0, 0])], [layer([[0], [0], [0]], [0, 0, 0])]]
    found = ask(trees, [1], k=3)
    assert [label for label, _ in found] == [0, 1, 2]
    assert not np.signbit([score for _, score in found]).any()


@pytest.mark.parametrize("z", [-np.inf, -300.0, -8.5, -1.0, -1e-7, 0.0, 1e-30, 0.5, 1.0, 2.0, 40.0, np.inf])
def test_activations_are_what_the_design_says(z: float) -> None:
    m = float(F(max(0.0, 1.0 - float(F(z)))))
    with np.errstate(over="ignore"):
        exact = {
            "identity": z,
            "sigmoid": 1 / (1 + np.exp(-float(F(z)))),
            "log-sigmoid": -np.logaddexp(0, -float(F(z))),
            **{f"hinge-{p}": np.exp(-(m**p)) for p in range(1, 6)},
            **{f"log-hinge-{p}": -(m**p) for p in range(1, 6)},
        }
    for name, expected in exact.items():
        found = Activation.parse(name).scores(np.array([z], np.float32))[0]
        with np.errstate(over="ignore"):
            np.testing.assert_array_max_ulp(found, F(expected), maxulp=1)
        assert not np.signbit(found) or found < 0, (name, z)


def test_a_path_multiplies_adds_or_takes_exp_at_the_leaf() -> None:
    tree = [layer([[0.5]], [0]), layer([[0.25]], [0])]
    half, quarter = (1 / (1 + np.exp(-v)) for v in (0.5, 0.25))
    assert ask([tree], [1], activation="sigmoid", k=1)[0][1] == F(F(half) * F(quarter))
    logs = F(np.log(half)) + F(np.log(quarter))
    assert ask([tree], [1], activation="log-sigmoid", k=1)[0][1] == pytest.approx(float(logs), rel=1e-6)
    shown = ask([tree], [1], activation="log-sigmoid", path="log-exp", k=1)[0][1]
    assert shown == pytest.approx(half * quarter, rel=1e-6)


def test_a_discount_shrinks_what_a_node_hands_down() -> None:
    tree = [layer([[-1.0]], [0]), layer([[0.5]], [0])]  # log-hinge-2: -4, then -0.25
    plain = ask([tree], [1], activation="log-hinge-2", path="log-exp", k=1)[0][1]
    assert plain == pytest.approx(np.exp(-4.25), rel=1e-6)
    shown = ask([tree], [1], activation="log-hinge-2", path="log-exp", discount=0.5, k=1)[0][1]
    assert shown == pytest.approx(np.exp(-2.25), rel=1e-6)


def test_a_certain_only_child_stands_for_its_parent() -> None:
    """A chain of certain nodes changes no score, whatever the discount."""
    how: dict[str, Any] = {"activation": "log-hinge-2", "path": "log-exp", "discount": 0.5, "k": 1}
    plain = [layer([[-1.0]], [0]), layer([[0.5]], [0])]
    link = layer([[0.0]], [0], bias=np.array([np.inf], np.float32))
    assert ask([[plain[0], link, link, plain[1]]], [1], **how) == ask([plain], [1], **how)


def test_unit_rows_are_divided_by_their_length_and_zeros_stay() -> None:
    one = layer([[1, 0], [0, 1]], [0, 0])
    assert ask([[one]], [3, 4], k=2, unit_rows=True) == [(1, float(F(0.8))), (0, float(F(0.6)))]
    assert ask([[one]], [0, 0], k=2, unit_rows=True) == [(0, 0.0), (1, 0.0)]
    assert ask([[one]], [3e38, 0], k=1, unit_rows=True) == [(0, 1.0)]
