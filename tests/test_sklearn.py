"""The scikit-learn estimator: scikit-learn's own checks, pipelines, pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.problems import random_problem

import beamwood as bw
from beamwood.life.calibration import calibration_error
from beamwood.life.truth import relevant
from beamwood.sklearn import RankScorer, XMRClassifier

_NEAR = (
    "the solver stops near the optimum (eps) and visits rows in an order of its own, so a row given twice and a row of "
    "weight two end near the same weights, not on them: see test_weights_count_as_repeated_rows_near_the_optimum"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": _NEAR,
    "check_sample_weight_equivalence_on_sparse_data": _NEAR,
    "check_non_transformer_estimators_n_iter": "max_iter bounds the solver of every node; no one number is n_iter_",
}


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning", "ignore:invalid value encountered")
@parametrize_with_checks(
    [XMRClassifier("fast"), XMRClassifier(loss="logistic", activation="sigmoid")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def fitted_on_many_labels(sparse: bool = True) -> tuple[XMRClassifier, Any, Any]:
    X, Y = random_problem(200, 60, 30, seed=0)
    Y = Y.astype(np.int64)
    Y = Y if sparse else Y.toarray()
    return XMRClassifier("fast").fit(X, Y), X, Y


def test_fits_the_same_model_as_train() -> None:
    estimator, X, Y = fitted_on_many_labels()
    model = bw.train(X, Y, preset="fast", progress=False)
    for found, expected in zip(estimator.decision_top(X, 5), model.topk(X, k=5), strict=True):
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("sparse", [True, False])
def test_predict_answers_in_the_kind_it_was_given(sparse: bool) -> None:
    estimator, X, Y = fitted_on_many_labels(sparse)
    P = estimator.predict(X)
    assert sp.issparse(P) == sparse
    assert P.shape == Y.shape
    assert P.dtype == Y.dtype
    dense = P.toarray() if sparse else P
    assert estimator.k_ == round(Y.sum() / 200)
    assert (dense.sum(axis=1) == estimator.k_).all()
    assert (dense * (Y.toarray() if sparse else Y)).sum() > 0.5 * dense.sum()
    _, scores = estimator.decision_top(X, estimator.k_)
    assert estimator.set_params(threshold=0.5).predict(X).sum() == (scores >= 0.5).sum()
    assert estimator.set_params(threshold=2.0).predict(X).sum() == 0


def test_classes_may_be_strings() -> None:
    X = sp.csr_matrix(np.eye(6, dtype=np.float32))
    y = np.array(["cat", "dog", "cat", "dog", "cat", "dog"])
    estimator = XMRClassifier("fast").fit(X, y)
    assert estimator.predict(X).tolist() == y.tolist()
    assert estimator.classes_.tolist() == ["cat", "dog"]
    assert estimator.score(X, y) == 1.0


def test_learns_digits() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    estimator = XMRClassifier("fast", branching=4, max_leaf=4, prune=0.0, C=10.0).fit(X[:1200], y[:1200])
    assert estimator.score(X[1200:], y[1200:]) > 0.85
    shares = estimator.predict_proba(X[1200:])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:.*left out of training")
def test_predict_proba_of_many_labels_holds_their_scores() -> None:
    X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    estimator = XMRClassifier("fast").fit(X, Y)
    scores = estimator.predict_proba(X)
    assert scores.shape == Y.shape
    _, best = estimator.decision_top(X, 1)
    np.testing.assert_allclose(scores.max(axis=1), best[:, 0], atol=1e-7)


@pytest.mark.parametrize("activation", ["identity", "log-hinge-2"])
def test_there_is_no_predict_proba_where_scores_are_no_shares(activation: str) -> None:
    estimator = XMRClassifier("fast", activation=activation)
    assert not hasattr(estimator, "predict_proba")
    X, Y = random_problem(80, 20, 6, seed=3)
    assert estimator.fit(X, Y.astype(int)).predict(X).shape == Y.shape


def test_a_pickle_holds_the_models_file_and_gives_the_same_bits(tmp_path: Any) -> None:
    estimator, X, _ = fitted_on_many_labels()
    estimator.model_.save(tmp_path / "m.bw")
    data = pickle.dumps(estimator)
    assert (tmp_path / "m.bw").read_bytes() in data
    again = pickle.loads(data)
    for found, expected in zip(again.decision_top(X), estimator.decision_top(X), strict=True):
        assert found.tobytes() == expected.tobytes()


def test_a_damaged_pickle_is_refused() -> None:
    estimator, _, _ = fitted_on_many_labels()
    state = estimator.__getstate__()
    state["model_"] = state["model_"][:-100] + b"\x55" * 100
    with pytest.raises(bw.FormatError):
        XMRClassifier().__setstate__(state)


def test_clones_and_works_in_a_pipeline_and_a_grid_search() -> None:
    texts = ["a cat", "the cat sleeps", "cat and dog", "a hammer", "hammer and nail", "the nail"] * 3
    y = [0, 0, 0, 1, 1, 1] * 3
    pipeline = make_pipeline(TfidfVectorizer(), XMRClassifier("fast"))
    search = GridSearchCV(clone(pipeline), {"xmrclassifier__C": [0.1, 1.0], "xmrclassifier__trees": [1, 2]}, cv=3)
    assert search.fit(texts, y).score(texts, y) == 1.0
    assert clone(XMRClassifier(C=3.0)).get_params()["C"] == 3.0


def labelled_texts() -> tuple[list[str], Any]:
    """Texts of 40 words with the labels that three of them stand for, of 200."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 200, (400, 3))
    texts = [
        " ".join([*(f"word{label}" for label in row), *(f"noise{n}" for n in rng.integers(0, 90, 9))]) for row in labels
    ]
    Y = sp.csr_matrix((np.ones(1200, int), labels.ravel(), np.arange(401) * 3), shape=(400, 200))
    Y.sum_duplicates()
    Y.data[:] = 1
    return texts, Y


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
@pytest.mark.parametrize("scoring", [None, RankScorer(), RankScorer("recall", 5), RankScorer("ndcg", 5)])
def test_a_grid_search_over_many_labels_tells_settings_apart(scoring: Any) -> None:
    texts, Y = labelled_texts()
    pipeline = make_pipeline(TfidfVectorizer(), XMRClassifier("fast"))
    search = GridSearchCV(pipeline, {"xmrclassifier__C": [1e-3, 1.0]}, cv=2, scoring=scoring).fit(texts, Y)
    poor, good = search.cv_results_["mean_test_score"]
    assert good > poor + 0.1
    assert search.best_params_ == {"xmrclassifier__C": 1.0}


def test_scores_of_many_labels_are_those_of_evaluate() -> None:
    estimator, X, Y = fitted_on_many_labels()
    found = bw.evaluate(estimator.decision_top(X, 3), Y, at=(1, 3))
    assert estimator.score(X, Y) == pytest.approx(found.precision[1])
    assert RankScorer("precision", 3)(estimator, X, Y) == pytest.approx(found.precision[3])
    assert pickle.loads(pickle.dumps(RankScorer("recall", 3)))(estimator, X, Y) == pytest.approx(found.recall[3])
    with pytest.raises(bw.SettingsError, match="recall"):
        RankScorer("accuracy")


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_predict_proba_of_very_many_labels_is_what_the_beam_reaches() -> None:
    X, Y = random_problem(1500, 60, 1200, seed=0)
    estimator = XMRClassifier("fast").fit(X, Y.astype(int).toarray())
    shares = estimator.predict_proba(X[:20])
    labels, scores = estimator.decision_top(X[:20], 5)
    assert shares.shape == (20, 1200)
    np.testing.assert_allclose(np.take_along_axis(shares, labels, axis=1), scores, atol=1e-7)


def wordy_problem(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows that hold the features of their one to four labels, of 300, most of the time, and noise."""
    rng = np.random.default_rng(seed)
    X, Y = np.zeros((rows, 400), np.float32), np.zeros((rows, 300), np.int64)
    for row in range(rows):
        labels = rng.choice(300, rng.integers(1, 5), replace=False)
        Y[row, labels] = 1
        X[row, labels[rng.random(len(labels)) < 0.8]] = 1.0
        X[row, 300 + rng.integers(0, 100, 4)] = 1.0
    return sp.csr_matrix(X), sp.csr_matrix(Y)


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_predict_gives_as_many_labels_as_apply_where_fit_learnt_a_cut() -> None:
    X, Y = wordy_problem(3000)
    new, truth = wordy_problem(500, seed=1)
    plain = XMRClassifier("fast").fit(X, Y)
    tagger = XMRClassifier("fast", calibrate=0.2).fit(X, Y)
    for found, expected in zip(tagger.decision_top(new), plain.decision_top(new), strict=True):
        assert found.tobytes() == expected.tobytes()  # probabilities change no ranking
    count = np.diff(tagger.predict(new).indptr)
    assert count.min() < 2 < count.max()
    f1 = [2 * P.multiply(truth).sum() / (P.sum() + truth.sum()) for P in (tagger.predict(new), plain.predict(new))]
    assert f1[0] > f1[1] + 0.05
    assert np.diff(tagger.set_params(k=2).predict(new).indptr).max() == 2
    assert tagger.set_params(threshold=1.0, k=None).predict(new).nnz <= plain.predict(new).nnz


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_predict_proba_is_sparse_where_y_was_and_calibrated_where_fit_learnt_it() -> None:
    X, Y = wordy_problem(3000)
    new, truth = wordy_problem(1000, seed=1)
    raw = XMRClassifier("fast").fit(X, Y)
    sure = XMRClassifier("fast", calibrate=0.2).fit(X, Y)
    assert not sp.issparse(XMRClassifier("fast").fit(X, Y.toarray()).predict_proba(new))
    gaps = []
    for estimator in (raw, sure):
        P = estimator.predict_proba(new)
        assert sp.issparse(P)
        assert P.shape == truth.shape
        assert P.nnz <= 100 * 1000
        labels, scores = estimator.decision_top(new, 3)
        first = P.indptr[:-1]
        np.testing.assert_array_equal(P.indices[first], labels[:, 0])
        shown = estimator.model_.probability(scores)[:, 0] if estimator is sure else scores[:, 0]
        np.testing.assert_allclose(P.data[first], shown, atol=1e-6)
        said = np.take_along_axis(P.toarray(), labels, axis=1).ravel()
        gaps.append(calibration_error(said, relevant(labels, truth).ravel()))
    assert gaps[1] < 0.6 * gaps[0]


def test_weights_count_as_repeated_rows_near_the_optimum() -> None:
    X, Y = random_problem(60, 20, 8, seed=2)
    twice = np.r_[np.arange(60), np.arange(30)]
    weights = np.where(np.arange(60) < 30, 2.0, 1.0)
    near = XMRClassifier("fast", eps=1e-6, max_iter=10_000, prune=0.0)
    repeated = clone(near).fit(X[twice], Y[twice].toarray()).predict_proba(X)
    weighted = clone(near).fit(X, Y.toarray(), sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=2e-3)


def test_threads_do_not_change_the_result() -> None:
    X, Y = random_problem(200, 60, 30, seed=2)
    one, two = (XMRClassifier("fast", n_jobs=n).fit(X, Y).decision_top(X) for n in (None, -1))
    assert one[1].tobytes() == two[1].tobytes()


def test_random_state_may_be_none_or_a_generator() -> None:
    X, Y = random_problem(60, 20, 8, seed=2)
    for state in (None, np.random.RandomState(3)):
        XMRClassifier("fast", random_state=state).fit(X, Y)


def test_clear_errors() -> None:
    X, Y = random_problem(40, 20, 8, seed=0)
    with pytest.raises(NotFittedError):
        XMRClassifier().predict(X)
    with pytest.raises(bw.SettingsError, match="Did you mean"):
        XMRClassifier(loss="hinges").fit(X, Y)
    with pytest.raises(ValueError, match="one row of y a row of X"):
        XMRClassifier().fit(X, Y[:5])
    with pytest.raises(ValueError, match="multiclass-multioutput"):
        XMRClassifier().fit(X, np.arange(80).reshape(40, 2) % 5)


def test_says_what_to_install_when_scikit_learn_is_missing() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import beamwood; import beamwood.sklearn"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Run: pip install 'scikit-learn>=1.6'" in found.stderr
