"""The search of settings: it finds what helps, keeps what it started from where nothing does, and can be stopped."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw
from beamwood.tuning.candidates import START, Candidate, candidates
from beamwood.tuning.material import MEASURES, Material, quality
from beamwood.tuning.search import Limits, Search, Trial
from beamwood.tuning.tune import seconds_of

QUIET: dict[str, Any] = {"progress": False, "threads": 1}


def rows_of_words(count: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Labels that only pairs of neighbouring words tell apart: "red hat", "blue sock", "red sock"."""
    rng = np.random.default_rng(seed)
    pairs = [(f"a{i}", f"b{j}") for i in range(6) for j in range(6)]
    texts, labels = [], []
    for _ in range(count):
        first, second = (pairs[i] for i in rng.choice(36, 2, replace=False))
        texts.append(" ".join([*first, f"noise{rng.integers(20)}", *second]))
        labels.append([" ".join(first), " ".join(second)])
    return texts, labels


def test_finds_what_helps_and_trains_with_it() -> None:
    texts, labels = rows_of_words(1500)
    told: list[Trial] = []
    found = bw.tune(texts, labels, budget=60, preset="fast", threads=1, progress=told.append)
    assert "pairs of words" in found.changed
    assert found.gain > 2 * found.error
    assert found.model is not None
    assert told == list(found.trials)
    new, truth = rows_of_words(500, seed=1)
    start = bw.train_text(texts, labels, preset="fast", progress=False)
    assert found.model.evaluate(new, truth).precision[1] > start.evaluate(new, truth).precision[1] + 0.1
    again = bw.train_text(texts, labels, progress=False, **found.training)
    assert again.version == found.model.version
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["trials"][0]["name"] == "as given"
    assert plain["training"]["text"] == {"ngram_range": [1, 2], "min_df": 2}
    assert found.frontier()
    assert found.changed in str(found)


def test_what_was_found_names_the_encoder() -> None:
    texts, labels = rows_of_words(300)
    how: dict[str, Any] = {"preset": "fast", "train": False, **QUIET}
    found = bw.tune(texts, labels, budget=1, text=bw.TextFeatures(encoder="svd:4"), **how)
    assert json.loads(json.dumps(found.to_dict()))["training"]["text"]["encoder"] == "svd:4"


def test_keeps_what_it_started_from_where_labels_are_chance() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(600, 50, 0.1, format="csr", dtype=np.float32, random_state=0)
    Y = sp.csr_matrix((np.ones(600), rng.integers(0, 15, 600), np.arange(601)), shape=(600, 15))
    found = bw.tune(X, Y, budget=20, preset="fast", train=False, **QUIET)
    assert found.changed == START.name
    assert found.model is None
    assert found.training == {"preset": "fast"}
    assert "nothing surely better" in str(found)


def test_ctrl_c_ends_the_search_with_what_is_best_so_far() -> None:
    texts, labels = rows_of_words(800)

    def stop(trial: Trial) -> None:
        if trial.name == "sublinear":
            raise KeyboardInterrupt

    found = bw.tune(texts, labels, budget=600, preset="fast", threads=1, progress=stop)
    assert found.interrupted
    assert [trial.name for trial in found.trials] == ["as given", "pairs of words", "sublinear"]
    assert found.changed == "pairs of words"
    assert found.model is not None
    assert "stopped by hand" in str(found)

    def stop_at_once(trial: Trial) -> None:
        raise KeyboardInterrupt

    first = bw.tune(texts, labels, budget=600, preset="fast", threads=1, progress=stop_at_once)
    assert first.changed == START.name
    assert first.model is not None


def test_limits_leave_out_what_is_too_slow_or_too_large() -> None:
    texts, labels = rows_of_words(800)
    found = bw.tune(texts, labels, budget=30, preset="fast", target_mb=1e-3, train=False, **QUIET)
    assert found.changed == START.name  # nothing fits, and nothing is promised
    slow, quick = Trial("slow", 0, 10, microseconds=90.0, bytes=10), Trial("quick", 0, 10, microseconds=9.0, bytes=10)
    assert not Limits(microseconds=50).allow(slow, 1.0)
    assert Limits(microseconds=50).allow(quick, 1.0)
    assert Limits(bytes=25).allow(quick, 0.5)
    assert not Limits(bytes=15).allow(quick, 0.5)


def searched(gains: dict[str, list[float]], sizes: list[int], every: int) -> Search:
    """A search whose trials gained so much at each step, on rows that all agree but for a little noise."""
    X, Y = random_problem(every + 60, 20, 5, seed=0)
    search = Search(Material.of(X, Y), {"preset": "fast"}, 1.0, 0, 1, Limits(), lambda trial: None)
    noise = np.random.default_rng(0).normal(0, 0.5, (60, 3))
    for step, rows in enumerate(sizes):
        search.found[step, START.name] = np.zeros((60, 3))
        search.by_name[START.name] = START
        search.trials.append(Trial(START.name, step, rows))
        for name, each in gains.items():
            search.by_name[name] = Candidate(name)
            search.found[step, name] = noise + each[step]
            search.trials.append(Trial(name, step, rows, gain=each[step], error=0.1))
    return search


def test_a_gain_that_goes_away_with_more_rows_is_no_gain() -> None:
    fading, lasting = {"fading": [3.0, 1.0]}, {"lasting": [1.0, 1.0]}
    assert searched(fading, [300, 900], 2000).chosen()[0] is START
    assert searched(fading, [600, 1900], 1900).chosen()[0].name == "fading"  # there are no more rows than these
    assert searched(lasting, [300, 900], 2000).chosen()[0].name == "lasting"
    assert searched(lasting, [100, 300], 2000).chosen()[0] is START  # so few rows say nothing of so many
    assert searched({"once": [5.0]}, [900], 2000).chosen()[0] is START
    assert searched({"chance": [0.15, 0.15]}, [1000, 2000], 2000).chosen()[0] is START


def test_no_measure_may_fall_for_another_to_rise() -> None:
    search = searched({"mixed": [2.0]}, [2000], 2000)
    search.found[0, "mixed"][:, 0] -= 6.0
    assert search.chosen()[0] is START


def test_candidates_differ_from_the_start_and_from_each_other() -> None:
    for start in ({"preset": "fast"}, {"preset": "balanced"}, {"preset": "best"}, {"preset": "fast", "trees": 1}):
        found = candidates(start, is_text=True)
        assert found[0] is START
        assert len({each.name for each in found}) == len(found)
        X, Y = random_problem(50, 20, 5, seed=0)
        trainings = [str(each.training(dict(start), Material.of(X, Y))) for each in found]
        assert len(set(trainings)) == len(trainings)
    assert not any(each.text for each in candidates({"preset": "fast"}, is_text=False))
    own = bw.TextFeatures(blocks=(bw.TextBlock(), bw.TextBlock(analyzer="char_wb", ngram_range=(3, 4))))
    assert not any(each.text for each in candidates({"preset": "fast", "text": own}, is_text=True))


def test_quality_is_what_evaluate_measures() -> None:
    X, Y = random_problem(200, 40, 12, seed=0)
    model = bw.train(X, Y, preset="fast", progress=False)
    mean = dict(zip(MEASURES, quality(model, Material.of(X, Y), 10, 1).mean(axis=0) / 100, strict=True))
    found = model.evaluate(X, Y, at=(1, 5, 10)).as_dict()
    assert mean == pytest.approx({name: found[name] for name in MEASURES})


@pytest.mark.parametrize(("budget", "seconds"), [(5, 5.0), ("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0), ("7", 7.0)])
def test_budgets_in_words(budget: Any, seconds: float) -> None:
    assert seconds_of(budget) == seconds


@pytest.mark.parametrize("budget", ["", "ten", "-5s", 0, -1, None, True, float("nan"), "5d", [3]])
def test_budgets_that_are_none_are_refused(budget: Any) -> None:
    X, Y = random_problem(300, 20, 5, seed=0)
    with pytest.raises(bw.SettingsError, match="budget is"):
        bw.tune(X, Y, budget=budget, **QUIET)


def test_too_few_rows_and_wrong_settings_are_refused_before_any_work() -> None:
    X, Y = random_problem(300, 20, 5, seed=0)
    with pytest.raises(bw.DataError, match="at least 200"):
        bw.tune(X[:20], Y[:20], budget=5, **QUIET)
    with pytest.raises(bw.SettingsError, match="unknown"):
        bw.tune(X, Y, budget=5, colour="red", **QUIET)
    with pytest.raises(bw.SettingsError, match="target_us"):
        bw.tune(X, Y, budget=5, target_us=-1, **QUIET)


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_one_label_and_empty_rows_end_with_the_start() -> None:
    X, Y = random_problem(300, 20, 5, seed=0)
    assert bw.tune(X, np.ones((300, 1)), budget=10, preset="fast", **QUIET).changed == START.name
    assert bw.tune(0 * X, Y, budget=10, preset="fast", **QUIET).changed == START.name
