"""Answers and truth in, probabilities out: near the truth, in the order of the scores, through save and load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.problems import random_problem

import beamwood as bw
from beamwood.life.calibration import Curves, calibration_error, fit_curves
from beamwood.life.truth import relevant, rows_and_truth

TEXTS = ["red wool socks", "blue cotton hat", "red wool hat", "green socks"] * 40
KEYS = [["socks", "wool"], ["hat"], ["hat", "wool"], ["socks"]] * 40


@pytest.fixture(scope="module")
def problem() -> tuple[Any, Any]:
    return random_problem(1100, 60, 40, seed=3)


@pytest.fixture(scope="module")
def model(problem: tuple[Any, Any]) -> bw.Model:
    X, Y = problem
    return bw.train(X, Y, "fast", branching=4, max_leaf=4, progress=False)


@pytest.fixture(scope="module")
def calibrated(model: bw.Model, problem: tuple[Any, Any]) -> bw.Model:
    return model.calibrate(problem[0][700:], problem[1][700:])


def test_curves_find_the_share_of_right_labels_at_each_score_and_rank() -> None:
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.random((20_000, 6), np.float32), axis=1)
    truth = scores**2 / (1 + (np.arange(6) >= 1))  # the first rank is right twice as often as the others
    curves = fit_curves(scores, rng.random(scores.shape) < truth)
    assert np.abs(curves(scores) - truth).mean() < 0.02
    assert calibration_error(scores[:, 0].astype(np.float64), rng.random(20_000) < truth[:, 0]) > 10
    assert calibration_error(curves(scores)[:, 0].astype(np.float64), rng.random(20_000) < truth[:, 0]) < 2


def test_curves_follow_first_ranks_however_few_scores_are_theirs() -> None:
    rng = np.random.default_rng(1)
    scores = np.sort(rng.random((20_000, 10), np.float32) * np.float32(0.1), axis=1)[:, ::-1].copy()
    scores[:, 0] = 0.1 + 0.9 * rng.random(20_000)
    truth = 1 / (1 + np.exp(-40 * (scores[:, 0] - 0.55)))  # so steep that knots far apart smear it
    right = rng.random(scores.shape) < 0.01
    right[:, 0] = rng.random(20_000) < truth
    assert np.abs(fit_curves(scores, right)(scores)[:, 0] - truth).mean() < 0.01


def test_probabilities_fall_with_the_rank_as_scores_do(calibrated: bw.Model, problem: tuple[Any, Any]) -> None:
    labels, scores = calibrated.topk(problem[0], k=20, beam=40)
    shown = calibrated.probability(scores)
    assert ((shown >= 0) & (shown <= 1)).all()
    assert (np.diff(shown, axis=1) <= 0).all()
    assert (shown[labels < 0] == 0).all()


def test_no_ranking_changes(model: bw.Model, calibrated: bw.Model, problem: tuple[Any, Any]) -> None:
    before, after = model.topk(problem[0]), calibrated.topk(problem[0])
    assert before[0].tobytes() == after[0].tobytes()
    assert before[1].tobytes() == after[1].tobytes()
    assert not model.is_calibrated
    assert calibrated.is_calibrated


def test_calibration_brings_probabilities_nearer_to_the_truth(calibrated: bw.Model) -> None:
    report: Any = calibrated.report
    assert report.rows == 400
    assert report.ece[1] < report.ece_raw[1]
    assert report.brier[5] < report.brier_raw[5]
    assert "probability" in str(report)


def test_a_file_keeps_the_curves(calibrated: bw.Model, problem: tuple[Any, Any], tmp_path: Path) -> None:
    calibrated.save(tmp_path / "model.bw")
    loaded = bw.load(tmp_path / "model.bw", verify=True)
    scores = calibrated.topk(problem[0])[1]
    assert loaded.probability(scores).tobytes() == calibrated.probability(scores).tobytes()
    assert loaded.version == calibrated.version


def test_hits_have_the_probability_that_arrays_have() -> None:
    model = bw.train_text(TEXTS, KEYS, preset="fast", progress=False)
    assert model.search("red socks")[0].probability is None
    calibrated = model.calibrate(TEXTS, KEYS)
    hits = calibrated.search("red socks", k=3)
    scores = np.array([[hit.score for hit in hits]], np.float32)
    assert np.array([[hit.probability for hit in hits]], np.float32).tobytes() == (
        calibrated.probability(scores).tobytes()
    )
    assert b'"probability":' in calibrated.search_json("red socks").fields
    assert calibrated.search_many(["red socks"], k=3)[0] == hits


def test_texts_and_keys_are_the_rows_they_stand_for() -> None:
    model = bw.train_text(TEXTS, KEYS, preset="fast", progress=False)
    X, Y = rows_and_truth(model, TEXTS, [*KEYS[:-1], ["socks", "a key of no label"]])
    assert model.text is not None
    assert (model.text.transform(TEXTS) != X).nnz == 0
    assert [model.key(label) for label in Y[[159]].indices] == ["socks"]


def test_relevant_says_which_labels_are_true() -> None:
    _, truth = random_problem(5, 4, 6, seed=0)
    labels = np.array([[0, 1, 2, 3, 4, 5, -1]] * 5)
    assert (relevant(labels, truth)[:, :6] == (truth.toarray() > 0)).all()
    assert not relevant(labels, truth)[:, 6].any()


def test_wrong_arguments_get_a_clear_error(model: bw.Model, calibrated: bw.Model, problem: tuple[Any, Any]) -> None:
    X, Y = problem
    with pytest.raises(bw.SettingsError, match="not calibrated"):
        model.probability(np.zeros((1, 3), np.float32))
    with pytest.raises(bw.DataError, match="rows; expected at least 100"):
        model.calibrate(X[:5], Y[:5])
    with pytest.raises(bw.DataError, match="expected as many of each"):
        model.calibrate(X[:200], Y[:199])
    with pytest.raises(bw.DataError, match="one per label"):
        model.calibrate(X, Y[:, :3])
    with pytest.raises(bw.DataError, match="trained from numbers"):
        model.calibrate(["a text"] * 200, Y[:200])
    with pytest.raises(bw.DataError, match="the scores that topk gave"):
        calibrated.probability(["a"])


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("ranks", lambda a: a + 1),
        ("scores", lambda a: a[::-1].copy()),
        ("probabilities", lambda a: a + 2),
        ("probabilities", lambda a: a[:-1].copy()),
        ("scores", lambda a: a.astype(np.float64)),
    ],
)
def test_damaged_curves_are_refused(calibrated: bw.Model, place: str, change: Any) -> None:
    name = f"calibration/{place}"
    sections = {**calibrated.parts.sections, name: change(calibrated.parts.sections[name])}
    with pytest.raises(bw.FormatError, match="calibration"):
        Curves.read(sections)
