"""Settings: presets, keywords that win, refusals that help."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from beamwood.errors import SettingsError
from beamwood.training.settings import PRESETS, Settings, settings_for


def test_fast_is_the_papers_model() -> None:
    expected = {
        "branching": 32, "max_leaf": 32, "tree": "balanced", "trees": 1, "unit_rows": False,
        "loss": "squared-hinge",
        "activation": "hinge-3", "negatives": "tfn", "C": 1.0, "rare_weight": 0.0, "eps": 0.1, "max_iter": 100,
        "bias": 1.0, "prune": 0.1, "top_weights": 0,
    }  # fmt: skip
    chosen = settings_for("fast").to_dict()
    assert {name: chosen[name] for name in expected} == expected


def test_the_default_is_balanced_and_best_adds_trees() -> None:
    assert settings_for() == settings_for("balanced")
    assert PRESETS["best"] == {**PRESETS["balanced"], "trees": 6}


def test_a_given_keyword_wins_over_the_preset() -> None:
    assert settings_for("best", trees=2).trees == 2
    assert settings_for("best").trees == PRESETS["best"]["trees"]


@pytest.mark.parametrize("preset", list(PRESETS))
def test_settings_survive_json(preset: Any) -> None:
    chosen = settings_for(preset, C=0.5)
    assert Settings.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_a_tree_of_your_own_is_saved_as_a_word() -> None:
    chosen = settings_for("fast", tree=np.array([2, 2, -1]))
    assert chosen.tree == (2, 2, -1)
    assert chosen.to_dict()["tree"] == "given"
    assert Settings.from_dict(chosen.to_dict()).tree == "given"


def test_settings_are_frozen_and_keyword_only() -> None:
    with pytest.raises(FrozenInstanceError):
        settings_for("fast").C = 2.0
    with pytest.raises(TypeError):
        Settings("fast")


def test_numpy_numbers_become_plain_ones() -> None:
    chosen = settings_for("fast", branching=np.int64(8), C=np.float32(0.5))
    assert type(chosen.branching) is int
    assert type(chosen.C) is float


@pytest.mark.parametrize(
    ("typo", "meant"), [("branchng", "branching"), ("c", "C"), ("max_iters", "max_iter"), ("progres", "progress")]
)
def test_unknown_names_are_refused_with_the_nearest(typo: Any, meant: Any) -> None:
    with pytest.raises(SettingsError, match=f"setting '{typo}'.*did you mean '{meant}'"):
        settings_for("fast", **{typo: 1})


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(SettingsError, match="setting 'zzz' is unknown: the settings are branching"):
        settings_for(zzz=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("branching", 1), ("branching", 2.5), ("branching", True), ("branching", "32"), ("max_leaf", 0),
        ("max_depth", -1), ("trees", 0), ("beam", 0), ("C", 0.0), ("C", -1), ("C", float("nan")),
        ("C", float("inf")), ("C", "1"), ("eps", 0.0), ("max_iter", 0), ("bias", -1.0), ("prune", -0.1),
        ("rare_weight", -1.0), ("unit_rows", 1),
        ("top_weights", -1), ("loss", "log"), ("negatives", "tfm"), ("tree", "balancd"),
        ("tree", 3), ("tree", [[1], [2, 3]]), ("tree", [0.5]), ("vectors", "tfidf"), ("activation", "hinge"),
        ("activation", "hinge-0"), ("activation", None),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(name: Any, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"{name} is .*; expected"):
        settings_for("fast", **{name: value})


def test_what_C_may_be_is_said() -> None:
    assert settings_for("fast", C="auto").C == "auto"
    with pytest.raises(SettingsError, match="C is 'automatic'; expected a finite number above 0, or \"auto\""):
        settings_for("fast", C="automatic")


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'balanced'"):
        settings_for("balance")


@pytest.mark.parametrize("field", [f.name for f in fields(Settings)])
def test_every_field_is_explained(field: Any) -> None:
    assert f"    {field}:" in (Settings.__doc__ or "")


@pytest.mark.parametrize("activation", ["log-sigmoid", "log-hinge-3"])
def test_log_scores_of_several_trees_are_refused(activation: str) -> None:
    with pytest.raises(SettingsError, match=r"take '(sigmoid|hinge-3)', or trees=1"):
        settings_for("balanced", activation=activation)
    assert settings_for("fast", activation=activation).trees == 1
