"""Claims about metrics: hand-computed cases, scikit-learn, and the one order of ties and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beamwood.errors import DataError, SettingsError
from beamwood.metrics import evaluate

Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
P = sp.csr_matrix(np.array([[0.9, 0.8, 0.7, 0.0], [0.1, 0.0, 0.2, 0.3]]))


def test_by_hand() -> None:
    got = evaluate(P, Y, at=(1, 3))
    assert got.precision == {1: 0.5, 3: 1 / 3}
    assert got.recall == {1: 0.25, 3: 0.5}
    ideal = 1 + 1 / np.log2(3)
    assert got.ndcg == pytest.approx({1: 0.5, 3: 0.5 * (1 + 1 / 2) / ideal}, rel=1e-12)
    assert got.coverage == {1: 1 / 3, 3: 2 / 3}
    assert got.psp == {}
    assert got.rows == 2


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.float32])
def test_the_type_of_y_does_not_matter(dtype: Any) -> None:
    assert evaluate(P, Y.astype(dtype), at=(1, 3)) == evaluate(P, Y, at=(1, 3))
    if dtype is not bool:
        graded = sp.csr_matrix(np.array([[3, 0, 1, 0], [0, 2, 0, 0]]))
        assert evaluate(P, graded.astype(dtype)) == evaluate(P, graded)


def test_propensity_scored_precision_by_hand() -> None:
    train = sp.csr_matrix(np.array([[1, 1, 0, 0]] * 7 + [[0, 1, 1, 0]] * 3))
    scale = (np.log(10) - 1) * 2.5**0.55
    inverse = [1 + scale * (n + 1.5) ** -0.55 for n in (7, 10, 3, 0)]
    got = evaluate(P, Y, at=(1, 3), train_labels=train)
    assert got.psp[1] == pytest.approx(inverse[0] / (inverse[2] + inverse[1]), rel=1e-12)
    assert got.psp[3] == pytest.approx((inverse[0] + inverse[2]) / (inverse[0] + inverse[2] + inverse[1]), rel=1e-12)


def test_ties_go_to_the_lower_label_and_nan_comes_last() -> None:
    scores = sp.csr_matrix(np.array([[np.nan, 5.0, 5.0, -np.inf]]))
    for label, rank in ((1, 1), (2, 2), (3, 3), (0, 4)):
        truth = sp.csr_matrix((np.ones(1), ([0], [label])), shape=(1, 4))
        recall = evaluate(scores, truth, at=(1, 2, 3, 4)).recall
        assert recall == {k: float(k >= rank) for k in (1, 2, 3, 4)}


def test_a_stored_zero_is_a_candidate_above_negative_scores() -> None:
    scores = sp.csr_matrix((np.array([-1.0, 0.0]), ([0, 0], [0, 1])), shape=(1, 3))
    truth = sp.csr_matrix(np.array([[0, 1, 0]]))
    assert evaluate(scores, truth, at=(1,)).precision == {1: 1.0}


def test_a_pair_of_arrays_says_the_same_as_a_matrix() -> None:
    labels = np.array([[0, 1, 2], [3, 2, 0]])
    scores = np.array([[0.9, 0.8, 0.7], [0.3, 0.2, 0.1]], dtype=np.float32)
    assert evaluate((labels, scores), Y).as_dict() == evaluate(P, Y).as_dict()


def test_padding_and_short_rows_are_misses() -> None:
    labels, scores = np.array([[0, -1], [-1, -1]]), np.array([[0.5, -np.inf], [-np.inf, -np.inf]])
    got = evaluate((labels, scores), Y, at=(1, 5))
    assert got.precision == {1: 0.5, 5: 0.1}


def test_rows_without_labels_count_as_zero() -> None:
    got = evaluate(P, sp.csr_matrix((2, 4)), at=(1,), train_labels=Y)
    assert set(got.as_dict().values()) == {0.0}


def test_no_rows() -> None:
    empty = sp.csr_matrix((0, 4))
    assert set(evaluate(empty, empty).as_dict().values()) == {0.0}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 20), labels=st.integers(2, 15), k=st.integers(1, 15))
def test_equals_scikit_learn(seed: int, rows: int, labels: int, k: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    k = min(k, labels)
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(1.0, labels + 1), (rows, 1)), axis=1)
    truth = (rng.random((rows, labels)) < 0.3).astype(float)
    got = evaluate(sp.csr_matrix(scores), sp.csr_matrix(truth), at=(k,))
    chosen = (scores > labels - k).astype(int)
    assert got.ndcg[k] == pytest.approx(sklearn.ndcg_score(truth, scores, k=k), rel=1e-9)
    assert got.precision[k] == pytest.approx(
        sklearn.precision_score(truth, chosen, average="samples", zero_division=0), rel=1e-9
    )
    assert got.recall[k] == pytest.approx(
        sklearn.recall_score(truth, chosen, average="samples", zero_division=0), rel=1e-9
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_graded_ndcg_equals_scikit_learn(seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    scores, truth = rng.random((5, 8)), rng.integers(0, 4, (5, 8)).astype(float)
    got = evaluate(sp.csr_matrix(scores), sp.csr_matrix(truth), at=(4,))
    assert got.ndcg[4] == pytest.approx(sklearn.ndcg_score(truth, scores, k=4), rel=1e-9)


def test_the_table_shows_percent() -> None:
    table = str(evaluate(P, Y, at=(1, 3)))
    assert table.splitlines()[1].split() == ["precision", "50.00", "33.33"]
    assert "over 2 rows" in table


@pytest.mark.parametrize(
    ("p", "y", "words"),
    [
        (P[:1], Y, "same rows"),
        (P.toarray(), Y, "expected a scipy sparse matrix of scores"),
        (P, [0, 1], "1 dimension; expected 2. For one label per row"),
        (P, -Y, "expected 0 or more"),
        ((np.array([[4], [0]]), np.zeros((2, 1))), Y, "P has the label 4; expected 0 to 3"),
        ((np.array([[-2], [0]]), np.zeros((2, 1))), Y, "P has the label -2"),
        ((np.array([[1, 1], [0, 2]]), np.zeros((2, 2))), Y, "label 1 twice in row 0"),
        ((np.zeros((2, 1)), np.zeros((2, 1))), Y, "whole numbers"),
        ((np.zeros((3, 1), dtype=int), np.zeros((3, 1))), Y, "3 rows and Y is 2 x 4"),
    ],
)
def test_bad_data_is_refused(p: Any, y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        evaluate(p, y)


def test_bad_settings_are_refused() -> None:
    for at in ((), (0,), (1.5,)):
        with pytest.raises(SettingsError, match="at is"):
            evaluate(P, Y, at=at)
    with pytest.raises(SettingsError, match="propensity_a"):
        evaluate(P, Y, propensity_a=float("nan"), train_labels=Y)
    with pytest.raises(DataError, match="train_labels has 3"):
        evaluate(P, Y, train_labels=Y[:, :3])


def test_standard_errors_are_those_of_the_mean_over_rows() -> None:
    rng = np.random.default_rng(0)
    truth = sp.csr_matrix((rng.random((50, 8)) < 0.3).astype(float))
    scores = sp.csr_matrix(rng.random((50, 8)))
    got = evaluate(scores, truth, at=(1, 3))
    hits = [[truth[row, label] > 0 for label in np.argsort(-scores[row].toarray()[0])] for row in range(50)]
    first = np.array([row[0] for row in hits], float)
    assert got.errors["precision"][1] == pytest.approx(first.std(ddof=1) / np.sqrt(50))
    third = np.array([sum(row[:3]) / 3 for row in hits])
    assert got.errors["precision"][3] == pytest.approx(third.std(ddof=1) / np.sqrt(50))
    assert "standard errors at 1: precision" in str(got)
    assert evaluate(P[:1], Y[:1]).errors["recall"][1] == 0


def test_recall_of_frequent_and_rare_labels_apart() -> None:
    truth = sp.csr_matrix(np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]))
    scores = sp.csr_matrix(np.array([[0.9, 0.1, 0.2, 0.0, 0.3], [0.9, 0.8, 0.1, 0.2, 0.0]]))
    got = evaluate(scores, truth, at=(1, 3), rows_of_label=[30, 15, 15, 15])  # nothing is known of label 4: it is rare
    assert {name: group.labels for name, group in got.by_rows.items()} == {"head": 1, "middle": 2, "tail": 2}
    assert got.by_rows["head"].recall == {1: 1.0, 3: 1.0}
    assert got.by_rows["middle"].recall == {1: 0.0, 3: 1.0}
    assert got.by_rows["tail"].recall == {1: 0.0, 3: 1.0}
    assert "head 1, middle 2, tail 2 labels" in str(got)
    with pytest.raises(DataError, match="rows_of_label has shape"):
        evaluate(scores, truth, rows_of_label=[1.5])
