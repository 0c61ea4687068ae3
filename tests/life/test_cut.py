"""Answers and truth in, thresholds out: the best F1, a precision or a recall, and rows with as many labels as apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.problems import random_problem

import beamwood as bw
from beamwood.life import cut as cuts
from beamwood.life.truth import relevant


@pytest.fixture(scope="module")
def problem() -> tuple[Any, Any]:
    return random_problem(1100, 60, 30, seed=5)


@pytest.fixture(scope="module")
def model(problem: tuple[Any, Any]) -> bw.Model:
    X, Y = problem
    return bw.train(X, Y, "fast", branching=4, max_leaf=4, progress=False)


def reached(model: bw.Model, problem: tuple[Any, Any]) -> tuple[float, float, float]:
    """Precision, recall and F1 of all labels that pass the stored cut."""
    X, Y = problem
    labels, _ = model.topk(X, k=100, threshold=True)
    right, passed = relevant(labels, Y).sum(), (labels >= 0).sum()
    return right / passed, right / Y.nnz, 2 * right / (passed + Y.nnz)


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("per", ["model", "label"])
def test_a_cut_reaches_what_it_says(model: bw.Model, problem: tuple[Any, Any], calibrate: bool, per: str) -> None:
    rows = problem[0][700:], problem[1][700:]
    chosen = (model.calibrate(*rows) if calibrate else model).cut(*rows, per=per)
    assert chosen.threshold is not None
    assert chosen.threshold.on == ("probability" if calibrate else "score")
    found = chosen.threshold
    assert reached(chosen, rows) == pytest.approx((found.precision, found.recall, found.f1), abs=1e-6)


def test_f1_is_the_best_there_is(model: bw.Model, problem: tuple[Any, Any]) -> None:
    rows = problem[0][700:], problem[1][700:]
    best = model.cut(*rows).threshold
    assert best is not None
    labels, scores = model.topk(rows[0], k=100)
    right = relevant(labels, rows[1])
    for least in np.quantile(scores[labels >= 0], np.linspace(0, 1, 50)):
        passed = (labels >= 0) & (scores >= least)
        assert 2 * right[passed].sum() / (passed.sum() + rows[1].nnz) <= best.f1 + 1e-9


def test_goals_are_met(model: bw.Model, problem: tuple[Any, Any]) -> None:
    rows = problem[0][700:], problem[1][700:]
    precise, full = model.cut(*rows, for_="precision>=0.5"), model.cut(*rows, for_="recall >= 0.3")
    assert reached(precise, rows)[0] >= 0.5
    assert reached(full, rows)[1] >= 0.3
    with pytest.raises(bw.DataError, match="the best reaches"):
        cuts.choose(np.array([0.5]), np.array([False]), 1, ("precision", 0.5))


def test_rows_have_as_many_labels_as_apply(model: bw.Model, problem: tuple[Any, Any], tmp_path: Path) -> None:
    rows = problem[0][700:], problem[1][700:]
    chosen = model.calibrate(*rows).cut(*rows, per="label")
    labels, scores = chosen.topk(rows[0], k=20, threshold=True)
    assert len(set((labels >= 0).sum(axis=1).tolist())) > 2
    assert (np.diff((labels >= 0).astype(int), axis=1) <= 0).all()  # padding comes last
    assert np.isneginf(scores[labels < 0]).all()
    chosen.save(tmp_path / "model.bw")
    again = bw.load(tmp_path / "model.bw").topk(rows[0], k=20, threshold=True)
    assert again[0].tobytes() == labels.tobytes()
    assert again[1].tobytes() == scores.tobytes()
    assert chosen.predict(rows[0], k=20, threshold=True).nnz == (labels >= 0).sum()


def test_a_number_is_the_least_probability(model: bw.Model, problem: tuple[Any, Any]) -> None:
    rows = problem[0][700:], problem[1][700:]
    chosen = model.calibrate(*rows)
    labels, _scores = chosen.topk(rows[0], threshold=0.3)
    whole = chosen.topk(rows[0])
    assert (labels >= 0).sum() == ((chosen.probability(whole[1]) >= np.float32(0.3)) & (whole[0] >= 0)).sum()


def test_calibrating_anew_forgets_the_cut(model: bw.Model, problem: tuple[Any, Any]) -> None:
    rows = problem[0][700:], problem[1][700:]
    assert model.cut(*rows, per="label").calibrate(*rows).threshold is None


def test_search_keeps_what_applies() -> None:
    texts = ["red wool socks", "blue cotton hat", "red wool hat", "green socks"] * 40
    keys = [["socks", "wool"], ["hat"], ["hat", "wool"], ["socks"]] * 40
    model = bw.train_text(texts, keys, preset="fast", progress=False).calibrate(texts, keys).cut(texts, keys)
    assert {hit.key for hit in model.search("red wool socks", threshold=True)} == {"socks", "wool"}
    assert {hit.key for hit in model.search("blue cotton hat", threshold=True)} == {"hat"}


def test_wrong_arguments_get_a_clear_error(model: bw.Model, problem: tuple[Any, Any]) -> None:
    X, Y = problem
    with pytest.raises(bw.SettingsError, match="has no cut"):
        model.topk(X, threshold=True)
    with pytest.raises(bw.SettingsError, match="not calibrated"):
        model.topk(X, threshold=0.5)
    for wrong in (False, 1.5, "f1", float("nan")):
        with pytest.raises(bw.SettingsError, match="threshold is"):
            model.calibrate(X, Y).topk(X, threshold=wrong)
    for goal in ("f2", "precision>=0", "recall>=1.1", "precision>=0.8.1", None):
        with pytest.raises(bw.SettingsError, match="for_ is"):
            model.cut(X, Y, for_=goal)
    with pytest.raises(bw.SettingsError, match="per is"):
        model.cut(X, Y, per="row")


def test_a_damaged_cut_is_refused() -> None:
    good = cuts.Cut("f1", "model", "score", 0.5, 100, 0.5, 0.5, 0.5).describe()
    assert cuts.Cut.read(good) is not None
    assert cuts.Cut.read(None) is None
    for damage in ({"on": "luck"}, {"least": "much"}, {"per": 3}, {"least": float("nan")}):
        with pytest.raises(bw.FormatError, match="its cut is none"):
            cuts.Cut.read({**good, **damage})
    with pytest.raises(bw.FormatError, match="cuts do not fit"):
        cuts.Thresholds.read(good, {"cut/least": np.zeros(3, np.float32)}, 4)
