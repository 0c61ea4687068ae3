"""K-fold measures: every row is ranked once by a model that has not seen it; the means are those of the folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.problems import random_problem

import beamwood as bw

FAST: dict[str, Any] = {"preset": "fast", "progress": False}


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_every_row_is_ranked_once_and_means_have_standard_errors() -> None:
    X, Y = random_problem(300, 40, 12, seed=0)
    found = bw.cross_validate(X, Y, folds=4, at=(1, 3), **FAST)
    assert [fold.rows for fold in found.folds] == [75] * 4
    first = np.array([fold.precision[1] for fold in found.folds])
    assert found.mean["precision"][1] == pytest.approx(first.mean())
    assert found.errors["precision"][1] == pytest.approx(first.std(ddof=1) / 2)
    assert set(found.mean) == {"precision", "recall", "ndcg"}
    assert found.as_dict()["recall@3"] == found.mean["recall"][3]
    assert "mean and standard error of 4 folds of 300 rows" in str(found)
    again = bw.cross_validate(X, Y, folds=4, at=(1, 3), threads=1, **FAST)
    assert again == found


def test_a_model_never_sees_the_rows_that_it_is_measured_on() -> None:
    texts = [f"only{i} common" for i in range(60)]  # every text has a word of its own that gives its label away
    labels = [[f"label{i % 6}"] for i in range(60)]
    found = bw.cross_validate(texts, labels, folds=3, at=(1,), lexical=True, progress=False)
    assert found.mean["precision"][1] < 0.5


@pytest.mark.filterwarnings("ignore::beamwood.BeamwoodWarning")
def test_labels_that_the_other_parts_lack_count_as_missed() -> None:
    texts = ["red socks"] * 10
    found = bw.cross_validate(texts, [[f"label{i}"] for i in range(10)], folds=2, at=(1,), **FAST)
    assert found.mean["precision"][1] == 0.0


@pytest.mark.parametrize("folds", [0, 1, -3, 2.5, "five", None, True])
def test_folds_that_are_none_are_refused(folds: Any) -> None:
    X, Y = random_problem(30, 20, 5, seed=0)
    with pytest.raises(bw.SettingsError, match="folds is"):
        bw.cross_validate(X, Y, folds=folds, **FAST)


def test_what_parts_of_the_rows_cannot_share_is_refused() -> None:
    X, Y = random_problem(30, 20, 5, seed=0)
    with pytest.raises(bw.DataError, match="at most one per row"):
        bw.cross_validate(X, Y, folds=31, **FAST)
    for name in ("row_weights", "checkpoint"):
        with pytest.raises(bw.SettingsError, match=name):
            bw.cross_validate(X, Y, **{name: "x"}, **FAST)
    with pytest.raises(bw.SettingsError, match="text is given with matrices"):
        bw.cross_validate(X, Y, text=bw.TextFeatures(), **FAST)
