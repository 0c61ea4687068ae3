"""A training that also learns probabilities: the same weights, curves from rows that were held out, clear refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw
from beamwood.life.calibration import Calibration, calibration_error
from beamwood.life.fit import Judged
from beamwood.life.truth import relevant
from beamwood.training.calibrated import could_be_found, rankable

WORDS = [f"word{i}" for i in range(60)]


def rows(count: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts that name their two labels most of the time."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        own = rng.choice(40, 2, replace=False)
        said = [WORDS[i] for i in own if rng.random() < 0.7]
        texts.append(" ".join([*said, *rng.choice(WORDS, 3)]))
        labels.append([f"label{i}" for i in own])
    return texts, labels


@pytest.mark.parametrize("how", [{"preset": "fast"}, {"lexical": True, "trees": 2}, {"unit_rows": True}])
def test_probabilities_change_no_weight_and_no_ranking(how: dict[str, Any]) -> None:
    texts, labels = rows(3000, 0)
    plain = bw.train_text(texts, labels, progress=False, **how)
    sure = bw.train_text(texts, labels, progress=False, calibrate=0.4, **how)
    assert not plain.is_calibrated
    assert sure.is_calibrated
    assert sure.threshold is not None
    for name, array in plain.parts.sections.items():
        assert sure.parts.sections[name].tobytes() == array.tobytes(), name
    new, truth = rows(1500, 1)
    X = sure.text.transform(new)
    assert all(np.array_equal(a, b) for a, b in zip(plain.topk(X), sure.topk(X), strict=True))
    found, scores = sure.topk(X, k=5)
    right = relevant(found, bw.LabelTable([sure.key(i) for i in range(sure.n_labels)]).matrix(truth))
    off = calibration_error(sure.probability(scores).astype(float).ravel(), right.ravel())
    assert off < calibration_error(np.clip(scores, 0, 1).astype(float).ravel(), right.ravel())


def test_the_same_file_for_any_number_of_threads_and_it_tells_how_good_it_is(tmp_path: Path) -> None:
    texts, labels = rows(900, 0)
    files = []
    for threads in (1, 2):
        model = bw.train_text(texts, labels, progress=False, calibrate=True, threads=threads)
        model.save(tmp_path / "m.bw")
        files.append((tmp_path / "m.bw").read_bytes())
    assert files[0] == files[1]
    report = model.report
    assert isinstance(report, bw.Report)
    told = bw.load(tmp_path / "m.bw").info()["calibration"]
    assert told == report.calibration
    found = Calibration.read(told)
    assert found is not None
    assert found.rows == 180  # a fifth
    assert found.ece[1] < found.ece_raw[1]
    assert "probabilities" in dict(report.seconds)


def test_a_model_put_together_of_others_has_none_of_their_probabilities() -> None:
    texts, labels = rows(900, 0)
    model = bw.train_text(texts, labels, preset="fast", progress=False, calibrate=True)
    both = bw.Model.from_trees([model, model])
    assert not both.is_calibrated
    assert both.threshold is None


@pytest.mark.parametrize("calibrate", [0.9, -1, "5%", float("nan"), [0.1], 0])
def test_a_share_that_is_none_is_refused(calibrate: Any) -> None:
    X, Y = random_problem(400, 30, 10, seed=0)
    with pytest.raises(bw.SettingsError, match="calibrate is"):
        bw.train(X, Y, preset="fast", progress=False, calibrate=calibrate)


@pytest.mark.parametrize("count", [1, 3, 120])
def test_too_few_rows_to_calibrate_on_are_refused_before_any_work(count: int) -> None:
    X, Y = random_problem(400, 30, 10, seed=0)
    with pytest.raises(bw.DataError, match="expected at least 100"):
        bw.train(X[:count], Y[:count], preset="fast", progress=False, calibrate=True)


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_one_label_and_rows_without_features_can_be_calibrated() -> None:
    X, _ = random_problem(600, 30, 10, seed=0)
    one = bw.train(X, np.ones((600, 1)), preset="fast", progress=False, calibrate=True)
    assert one.topk(X[:3], k=1)[0].tolist() == [[0], [0], [0]]
    _, Y = random_problem(600, 30, 10, seed=0)
    empty = bw.train(0 * X, Y, preset="fast", progress=False, calibrate=True)
    assert empty.topk(X[:3], k=2)[0].shape == (3, 2)


def test_baselines_say_what_new_rows_can_be_expected_to_be() -> None:
    texts, labels = rows(3000, 0)
    texts = [f"{text} only{i}" if i % 4 == 0 else text for i, text in enumerate(texts)]
    model = bw.train_text(texts, labels, preset="fast", progress=False, calibrate=True)
    told = model.info()["baselines"]
    fresh, _ = rows(1000, 5)
    fresh = [f"{text} rare{i}" if i % 4 == 0 else text for i, text in enumerate(fresh)]
    X = model.text.transform(fresh)
    assert told["known_terms"] == pytest.approx(np.diff(X.indptr).mean(), rel=0.05)
    per_row = np.mean([len(set(text.split())) for text in fresh])
    assert told["unknown_terms"] == pytest.approx(0.25 / per_row, rel=0.1)
    assert told["labels_per_row"] == 2.0
    shown = model.probability(model.topk(X)[1])
    assert told["top_probability"] == pytest.approx(shown[:, 0].mean(), abs=0.05)
    assert 0 < told["labels_above_cut"] <= 10


def test_rows_of_labels_that_only_they_have_are_not_counted_as_missed() -> None:
    texts, labels = rows(1500, 0)
    lonely = [f"lonely{i} {WORDS[i % 60]}" for i in range(500)]
    model = bw.train_text(
        [*texts, *lonely], [*labels, *([f"own{i}"] for i in range(500))], progress=False, calibrate=0.5
    )
    report = model.report
    assert isinstance(report, bw.Report)
    assert report.calibration is not None
    held = np.random.default_rng(0).permutation(2000)[:1000]
    assert report.calibration["rows"] == (held < 1500).sum()


def test_rows_without_a_label_stay_and_all_do_where_few_were_left() -> None:
    rest = sp.csr_matrix(np.eye(2, 4, dtype=np.float32))
    each = np.array([[0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1]], np.float32)
    held = sp.csr_matrix(np.tile(each, (50, 1)))
    fair, known = rankable(held, rest)
    assert fair.tolist() == [True, True, False, True, False] * 50
    assert known.tolist() == [True, True, False, False]
    assert all(each.all() for each in rankable(held[:100], rest))  # 60 rows would be left
    assert rankable(held[:0], rest)[0].shape == (0,)


def test_a_true_label_counts_where_a_model_could_find_it() -> None:
    truth = sp.csr_matrix(np.array([[1, 0, 1, 1], [0, 1, 0, 0]], np.float32))
    labels = np.array([[0, 2], [1, -1]])
    found = Judged(labels, np.zeros((2, 2), np.float32), np.array([[True, True], [True, False]]), 4)
    assert could_be_found(truth, found, np.array([True, True, False, False])) == 3  # of four; words found label 2
    assert could_be_found(truth, found, np.ones(4, np.bool_)) == 4
