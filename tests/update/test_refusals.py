"""Updates and cuts that cannot be made: refused before anything is learnt, with what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries
from support.serving import shop

import beamwood as bw
from beamwood.shards import gather, part
from beamwood.storage.loading import load_parts, load_piece

ROWS = sp.csr_array(np.eye(4, 50, dtype=np.float32))


def numbers(**settings: Any) -> bw.Model:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((40, 50)).astype(np.float32))
    return bw.train(X, [[number % 8] for number in range(40)], preset="fast", progress=False, **settings)


def test_texts_go_to_models_that_know_words() -> None:
    with pytest.raises(bw.DataError, match="texts is given to a model that knows no words"):
        numbers().add_labels(texts={"new": "some words"})


def test_new_labels_need_keys_that_say_something() -> None:
    with pytest.raises(bw.DataError, match="a row has the label ''; expected keys that are not empty"):
        shop().add_labels(["wool"], [[""]])
    keyed = numbers().with_names(keys=[f"k{n}" for n in range(8)])
    with pytest.raises(bw.DataError, match="keys is missing; expected a unique string for each new label"):
        keyed.add_labels(ROWS, sp.csr_array(np.eye(4, 2, dtype=np.float32)))
    with pytest.raises(bw.DataError, match="'other' is neither a label of the model nor in keys"):
        shop().add_labels(["wool"], [["new"]], keys=["new"], texts={"other": "words"})


def test_only_what_was_trained_is_trained_anew() -> None:
    X = sp.csr_array(np.eye(3, dtype=np.float32))
    with pytest.raises(bw.SettingsError, match="This model is an index without trees"):
        bw.index(X).retrain(X, [[0], [1], [2]])
    with pytest.raises(bw.SettingsError, match="expected"):
        small_model().retrain(small_queries(), [[0]] * small_queries().shape[0])
    model = numbers()
    with pytest.raises(bw.DataError, match=r"no row has a label|Y is empty"):
        model.retrain(ROWS, sp.csr_array((4, 8), dtype=np.float32))


def test_a_model_without_keys_can_get_labels_and_lose_them() -> None:
    more = numbers().add_labels(ROWS, sp.csr_array(np.eye(10, dtype=np.float32)[[9, 8, 0, 9]]))
    assert more.n_labels == 10
    assert more.remove_labels([9, 8]).n_labels == 8


def test_parts_are_what_they_say(tmp_path: Path) -> None:
    model = numbers()
    bw.shard(model, tmp_path / "parts", 2)
    model.save(tmp_path / "whole.bw")
    whole, top = load_parts(tmp_path / "whole.bw", "map", False), load_piece(tmp_path / "parts/top.bw", "map", False)
    with pytest.raises(bw.FormatError, match="the file is no shard"):
        part.Part(whole)
    with pytest.raises(bw.FormatError, match="the file is no shard"):
        part.Part(top)
    with pytest.raises(bw.FormatError, match="the file is no upper part of a model"):
        gather.Gathering(whole, None, None, (4, 4))
    cut = bw.Sharded(tmp_path / "parts")
    with pytest.raises(bw.SettingsError, match="the work of a model that was cut is done elsewhere"):
        cut.topk(ROWS, stats=True)
    other = bw.train(ROWS, [[0], [1], [2], [3]], preset="fast", progress=False)
    bw.shard(other, tmp_path / "others", 2)
    (tmp_path / "parts" / "top.bw").write_bytes((tmp_path / "others" / "top.bw").read_bytes())
    with pytest.raises(bw.FormatError, match="expected"):
        bw.Sharded(tmp_path / "parts")


def test_a_discount_is_not_cut(tmp_path: Path) -> None:
    layers = small_model().layers()
    model = bw.Model.from_layers(layers, activation="log-sigmoid", path="log-exp", discount=0.5)
    with pytest.raises(bw.SettingsError, match="discount"):
        bw.shard(model, tmp_path / "parts", 2)


def test_models_with_and_without_a_bias_are_cut_alike(tmp_path: Path) -> None:
    plain = [bw.Layer(layer.weights, layer.parent, label=layer.label) for layer in small_model().layers()]
    for number, model in enumerate((bw.Model.from_layers(plain), numbers(bias=0.0))):
        bw.shard(model, tmp_path / str(number), 2)
        X = sp.csr_array(np.eye(5, model.n_features, dtype=np.float32))
        cut = bw.Sharded(tmp_path / str(number))
        keep = model.filter(deny=[0])
        for how in ({}, {"filter": keep}):
            own = {"filter": cut.filter(deny=[0])} if how else {}
            for _ in range(2):
                found, expected = cut.topk(X, k=4, **own), model.topk(X, k=4, **how)
                assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]


def test_an_empty_list_of_layers_is_no_model() -> None:
    with pytest.raises(bw.DataError, match="The list of layers is empty; expected at least one"):
        bw.Model.from_layers([])
