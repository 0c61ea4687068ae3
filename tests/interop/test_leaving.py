"""Models that go to other programs: what stays behind is said, what cannot be held is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model
from support.serving import shop

import beamwood as bw
from beamwood.interop.convert import read, read_text, write


def logged(activation: str) -> bw.Model:
    """A small model whose log scores are added."""
    return bw.Model.from_layers(small_model().layers(), activation=activation, path="log-exp")


@pytest.mark.parametrize(("kind", "activation"), [("pecos", "log-hinge-3"), ("napkinxc", "log-sigmoid")])
def test_scores_that_were_added_as_logs_are_said_to_differ(kind: str, activation: str, tmp_path: Path) -> None:
    said = " ".join(write(logged(activation), tmp_path / "out", kind))
    assert "differ in their last digits" in said
    assert read(tmp_path / "out").model.n_labels == small_model().n_labels


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("pecos", {"activation": "hinge-3"}),
        ("napkinxc", {"activation": "sigmoid"}),
        ("omikuji", {"activation": "log-sigmoid", "path": "log-exp"}),
    ],
)
def test_keys_and_text_features_stay_behind_and_that_is_said(kind: str, form: dict[str, str], tmp_path: Path) -> None:
    known = shop()
    assert known.text is not None
    model = bw.Model.from_layers(known.layers(), keys=known.keys, **form).with_text(known.text)
    said = " ".join(write(model, tmp_path / "out", kind))
    assert "keys and names stay behind" in said
    assert "text features stay behind" in said


def test_one_tree_must_be_chosen_where_a_format_holds_one(tmp_path: Path) -> None:
    two = bw.Model.from_trees([small_model(), small_model()])
    for kind in ("pecos", "tree"):
        with pytest.raises(bw.SettingsError, match="the model has 2 trees; expected one"):
            write(two, tmp_path / kind, kind)
        write(two, tmp_path / f"{kind}-1", kind, tree=1)


def test_labels_in_several_layers_need_an_activation_that_can_be_padded(tmp_path: Path) -> None:
    top = bw.Layer(sp.csc_array(np.eye(3, 2, dtype=np.float32)), np.zeros(2, int), label=np.array([-1, 2]))
    low = bw.Layer(sp.csc_array(np.eye(3, 2, dtype=np.float32)), np.zeros(2, int), label=np.array([0, 1]))
    with pytest.raises(bw.SettingsError, match="identity cannot be padded"):
        write(bw.Model.from_layers([top, low], activation="identity"), tmp_path / "out", "pecos")


def test_what_is_asked_of_a_folder_must_fit_it(tmp_path: Path) -> None:
    write(small_model(), tmp_path / "out", "pecos")
    with pytest.raises(bw.BeamwoodError, match="features"):
        read(tmp_path / "out", features=small_model().n_features + 1)
    with pytest.raises(bw.SettingsError, match="expected"):
        read_text(tmp_path / "out", kind="pecos")
    with pytest.raises(bw.SettingsError, match="expected one of"):
        read(tmp_path / "out", kind="tensorflow")
