"""Bad and odd input to training: trained or refused with a clear error, never a crash."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import SMALL, even_tree, random_problem, scores

from beamwood.errors import DataError, SettingsError
from beamwood.training.problem import checked_problem
from beamwood.training.train import train, train_layers


def both(rows: Any = 6, features: Any = 5, labels: Any = 4) -> Any:
    return random_problem(rows, features, labels, seed=1, density=0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, sp.csr_matrix(Y.shape)), "Y is empty"),
        (lambda X, Y: (X[:0], Y[:0]), "X has no rows"),
        (lambda X, Y: (X[:3], Y), "X has 3 rows and Y has 6"),
        (lambda X, Y: (X, -Y), "expected 0 or more"),
        (lambda X, Y: (sp.csr_matrix((6, 0)), Y), "X has no columns"),
        (lambda X, Y: (X, sp.csr_matrix((6, 0))), "Y has no columns"),
        (lambda X, Y: (X * np.nan, Y), "finite"),
        (lambda X, Y: (X * np.inf, Y), "finite"),
        (lambda X, Y: (X.astype(np.float64) * 1e39, Y), "float32 can hold"),
        (lambda X, Y: (X, Y * np.nan), "finite"),
        (lambda X, Y: (X.astype(np.complex64), Y), "dtype complex64"),
        (lambda X, Y: (np.array([["a"]]), Y), "texts; expected"),
        (lambda X, Y: (X.toarray()[0], Y), "1 dimension; expected 2"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        train(*change(*both()), **SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row_weights": [1.0]}, "row_weights has shape"),
        ({"row_weights": [-1.0] * 6}, "row_weights"),
        ({"row_weights": [0.0] * 6}, "0 for every row"),
        ({"row_weights": ["a"] * 6}, "dtype"),
        ({"label_features": np.ones((3, 2))}, "label_features has 3 rows"),
        ({"negatives_matrix": np.ones((6, 3)), "negatives": "user"}, "negatives_matrix has the shape"),
    ],
)
def test_extras_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        train(*both(), **SMALL, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"seed": -1}, "seed is -1; expected"),
        ({"seed": "x"}, "seed is 'x'; expected"),
        ({"negatives": "user"}, "Pass negatives_matrix"),
        ({"negatives_matrix": np.ones((6, 4))}, "set negatives='user'"),
        ({"vectors": "features"}, "label_features"),
        ({"label_features": np.ones((4, 2)), "vectors": "pifa"}, "label_features"),
        ({"tree": "given"}, "parent list"),
        ({"branchin": 3}, "did you mean 'branching'"),
        ({"max_memory": 100}, "this training would need about"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        train(*both(), **{**SMALL, **change})


def finite_answers(model: Any, X: Any) -> Any:
    found, score = model.topk(X, k=3)
    assert not np.isnan(score).any()
    return found


def test_one_label() -> None:
    X, Y = both(labels=1)
    assert finite_answers(train(X, Y, **SMALL), X)[:, 0].tolist() == [0] * 6


def test_fewer_labels_than_branching() -> None:
    X, Y = both(labels=3)
    assert len(train(X, Y, preset="fast", progress=False).layers()) == 1


def test_one_row() -> None:
    X, Y = both(rows=1, labels=2)
    finite_answers(train(X, Y, **SMALL), X)


def test_rows_without_labels_are_left_out_with_a_warning() -> None:
    X, Y = both()
    Y = sp.vstack([Y, sp.csr_matrix((2, 4))])
    X2 = sp.vstack([X, X[:2]])
    with pytest.warns(UserWarning, match="2 rows have no label"):
        model = train(X2, Y, **SMALL)
    same = train(X, Y[:6], **SMALL)
    for a, b in zip(model.layers(), same.layers(), strict=True):
        assert np.array_equal(a.weights.toarray(), b.weights.toarray())


def test_labels_without_rows_rank_last_with_one_warning(tmp_path: Path) -> None:
    X, Y = random_problem(60, 20, 12, seed=2)
    Y = sp.csr_matrix(sp.hstack([Y[:, :5], sp.csr_matrix((60, 3)), Y[:, 5:]]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = train(X, Y, **SMALL)
    assert [str(w.message) for w in caught if "no row" in str(w.message)] == [
        "3 of 15 labels have no row: they stay and rank last"
    ]
    assert model.report.labels_without_rows == 3
    found, score = model.topk(X, k=15, beam=15)
    for row, row_score in zip(found, score, strict=True):
        assert sorted(row.tolist()) == list(range(15))
        assert (row_score[np.isin(row, [5, 6, 7])] == 0).all()
        assert (row_score[:-3] >= row_score[-1]).all()


def test_a_cluster_of_labels_without_rows() -> None:
    X, Y = both(labels=2)
    Y = sp.csr_matrix(sp.hstack([Y, sp.csr_matrix((6, 40))]))
    with pytest.warns(UserWarning, match="40 of 42 labels"):
        finite_answers(train(X, Y, **SMALL), X)


def test_all_zero_rows_and_duplicate_rows() -> None:
    X, Y = both()
    X2 = sp.vstack([X, sp.csr_matrix((2, 5)), X])
    finite_answers(train(X2, sp.vstack([Y, Y[:2], Y]), **SMALL), X2)


def test_all_rows_zero() -> None:
    _, Y = both()
    X = sp.csr_matrix((6, 5), dtype=np.float32)
    finite_answers(train(X, Y, **SMALL), X)


def test_negative_features_are_fine() -> None:
    X, Y = both()
    finite_answers(train(-X, Y, **SMALL), -X)


@pytest.mark.parametrize("make", [sp.coo_matrix, sp.csc_matrix, sp.csr_array, lambda m: m.toarray()])
def test_any_form_of_matrix_gives_the_same_model(make: Any, tmp_path: Path) -> None:
    X, Y = both()
    train(X, Y, **SMALL).save(tmp_path / "a.bw")
    train(make(X), make(Y), **SMALL).save(tmp_path / "b.bw")
    assert (tmp_path / "a.bw").read_bytes() == (tmp_path / "b.bw").read_bytes()


@pytest.mark.parametrize("dtype", [np.float64, np.int64, bool])
def test_labels_of_any_real_type(dtype: Any) -> None:
    X, Y = both()
    finite_answers(train(X, Y.astype(dtype), **SMALL), X)


def test_duplicate_entries_and_zeros_are_merged_without_touching_the_callers() -> None:
    X = sp.csr_matrix((np.float32([1, 2, 0]), np.int32([1, 1, 0]), np.int32([0, 3])), shape=(1, 2))
    before = X.data.copy()
    checked = checked_problem(X, sp.csr_matrix([[1.0]]))
    assert checked.X.toarray().tolist() == [[0, 3]]
    assert checked.X.nnz == 1
    assert np.array_equal(X.data, before)
    assert X.nnz == 3


def test_rows_of_weight_zero_do_not_count(problem: Any) -> None:
    X, Y = problem
    weights = np.ones(300)
    weights[200:] = 0
    tree = even_tree(30, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = train_layers(X, Y, tree, row_weights=weights)
        b = train_layers(X[:200], Y[:200], tree)
    assert np.array_equal(scores(a, X), scores(b, X))


def test_an_own_tree(problem: Any) -> None:
    X, Y = problem
    parents = [*(30 + label // 10 for label in range(30)), 33, 33, 33, -1]
    model = train(X, Y, **{**SMALL, "tree": parents})
    assert [len(layer.parent) for layer in model.layers()] == [3, 30]
    assert model.info()["settings"]["tree"] == "given"
