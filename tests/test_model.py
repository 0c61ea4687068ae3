"""Building models, taking them apart, asking them: what the public object promises."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries, sparse, two_layers

import beamwood as bw
from beamwood.inputs import matrices
from beamwood.storage.activations import Activation


def test_parents_in_any_order_give_the_same_answers() -> None:
    layers = two_layers()
    order = np.argsort(layers[1].parent, kind="stable")
    sorted_layer = bw.Layer(layers[1].weights[:, order], layers[1].parent[order], label=order)
    X = small_queries()
    one = bw.Model.from_layers(layers).topk(X)
    laws.check_same(bw.Model.from_layers([layers[0], sorted_layer]).topk(X), one)


def test_weights_of_any_sparse_form_give_the_same_file(tmp_path: Path) -> None:
    layers = two_layers()
    paths = []
    for number, form in enumerate((sp.csr_array, sp.csc_array, sp.coo_array, sp.csc_matrix, sp.lil_array)):
        paths.append(tmp_path / f"{number}.bw")
        given = [bw.Layer(form(layer.weights), layer.parent, layer.bias) for layer in layers]
        bw.Model.from_layers(given).save(paths[-1])
    assert len({path.read_bytes() for path in paths}) == 1


def test_a_row_of_a_sparse_array_is_asked_as_it_is() -> None:
    model, X = bw.Model.from_layers(two_layers()), sp.csr_array(small_queries())
    for i in range(X.shape[0]):
        row = X[i]
        assert row.ndim == 1
        assert matrices.one_row(row, X.shape[1]) is not None, "it is turned into something else, which takes 50 µs"
        laws.check_same(model.topk(row), model.topk(X[[i]]))


def test_a_row_with_unsorted_and_doubled_ids_is_put_in_order() -> None:
    model = bw.Model.from_layers(two_layers())
    width = model.n_features
    ids, values = np.array([2, 0, 2]), np.array([1.0, 2.0, 0.5], np.float32)
    row = sp.coo_array((values, (ids,)), shape=(width,))
    tidy = sp.csr_array((np.array([2.0, 1.5], np.float32), np.array([0, 2]), np.array([0, 2])), shape=(1, width))
    laws.check_same(model.topk(row), model.topk(tidy))
    assert ids.tolist() == [2, 0, 2]
    with pytest.raises(bw.DataError, match="columns; expected"):
        model.topk(sp.coo_array(np.ones(width + 1, np.float32)))


def test_unsorted_and_doubled_weights_are_made_canonical_without_touching_them() -> None:
    data = np.array([1, 2, 3, 4], np.float32)
    ids, offsets = np.array([2, 0, 1, 1], np.int32), np.array([0, 2, 4], np.int32)
    weights = sp.csc_array((data, ids, offsets), shape=(3, 2))
    model = bw.Model.from_layers([bw.Layer(weights, np.zeros(2, int))], activation="identity")
    assert ids.tolist() == [2, 0, 1, 1]
    assert data.tolist() == [1, 2, 3, 4]
    back = model.layers()[0].weights
    assert (back.indices.tolist(), back.data.tolist(), back.indptr.tolist()) == ([0, 2, 1], [2, 1, 7], [0, 2, 3])


def test_stored_zeros_and_their_signs_survive() -> None:
    data = np.array([0.0, -0.0, 1.0], np.float32)
    weights = sp.csc_array((data, np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    back = bw.Model.from_layers([bw.Layer(weights, np.zeros(2, int))]).layers()[0].weights
    assert back.data.tobytes() == data.tobytes()


def test_a_model_without_weights_still_ranks_by_bias() -> None:
    empty = sp.csr_array((5, 3), dtype=np.float32)
    bias = np.array([0, np.inf, -np.inf], np.float32)
    model = bw.Model.from_layers([bw.Layer(empty, np.zeros(3, int), bias=bias)])
    for matcher in ("march", "binary", "hash", "dense"):
        for layout in ("chunk", "column"):
            labels, scores = model.using(matcher=matcher, layout=layout).topk(np.ones((1, 5), np.float32), 3)
            assert labels.tolist() == [[1, 0, 2]]
            assert scores.tolist() == [[1.0, 0.5, 0.0]]


def test_one_label_and_one_feature_are_enough() -> None:
    model = bw.Model.from_layers(
        [bw.Layer(sp.csr_array([[2.0]], dtype=np.float32), np.zeros(1, int))], activation="identity"
    )
    assert [a.tolist() for a in model.topk(np.array([3.0]), 2)] == [[[0, -1]], [[6.0, -np.inf]]]


def test_an_ensemble_is_the_mean_of_its_trees_and_can_be_extended(tmp_path: Path) -> None:
    models = [bw.Model.from_layers(two_layers(seed=seed), activation="identity") for seed in range(3)]
    X = small_queries()
    whole = bw.Model.from_trees(models)
    nested = bw.Model.from_trees([bw.Model.from_trees(models[:2]), models[2]])
    laws.check_same(nested.topk(X, 40, 40), whole.topk(X, 40, 40))
    every = np.zeros((7, 40), np.float32)
    for model in models:
        labels, scores = model.topk(X, 40, 40)
        every[np.arange(7)[:, None], labels] += scores
    labels, scores = whole.topk(X, 40, 40)
    assert np.array_equal(np.take_along_axis(every / np.float32(3), labels, axis=1), scores)
    for tree, model in enumerate(models):
        for old, new in zip(model.layers(), nested.layers(tree), strict=True):
            laws.check_same_layer(old, new, False, (tree,))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: bw.Model.from_layers(two_layers(features=51)), r"Model 1 has 51 features"),
        (lambda: bw.Model.from_layers(two_layers(labels=41)), r"41 labels"),
        (lambda: small_model(activation="hinge-2"), r"hinge-2"),
    ],
)
def test_trees_that_do_not_agree_make_no_ensemble(other: Any, message: str) -> None:
    with pytest.raises(bw.DataError, match=message):
        bw.Model.from_trees([small_model(), other()])


def test_an_ensemble_of_nothing_is_refused() -> None:
    with pytest.raises(bw.DataError, match=r"The list of models is empty; expected at least one"):
        bw.Model.from_trees([])


def test_info_counts_what_is_there() -> None:
    layers = two_layers()
    info = bw.Model.from_layers(layers, settings={"C": 1}).info()
    assert (info["labels"], info["features"], info["depth"], info["trees"]) == (40, 50, 2, 1)
    assert info["nonzeros"] == sum(layer.weights.nnz for layer in layers)
    assert info["bytes"] == sum(info["bytes_by_section"].values())
    assert info["settings"] == {"C": 1}
    assert info["bytes_per_nonzero"] > 4


def test_a_model_hands_out_copies_of_its_settings() -> None:
    model = small_model(settings={"C": 1})
    model.settings["C"] = 2
    assert model.settings == {"C": 1}


def test_a_layer_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        two_layers()[0].parent = np.zeros(1)


def test_a_model_says_what_it_is() -> None:
    assert repr(small_model()) == "<beamwood.Model: 40 labels, 50 features, 1 tree, sigmoid>"


@pytest.mark.parametrize(
    "name", ["relu", "hinge", "hinge-0", "hinge-", "sigmoid-2", "Sigmoid", "", "log-identity", "hinge-100", None]
)
def test_an_unknown_activation_is_refused(name: Any) -> None:
    with pytest.raises(bw.SettingsError, match=r"is not known. Use identity, sigmoid"):
        Activation.parse(name)


@pytest.mark.parametrize(
    ("name", "path"), [("sigmoid", "sum"), ("identity", "product"), ("hinge-3", "log-exp"), ("log-sigmoid", "last")]
)
def test_a_path_that_does_not_go_with_its_activation_is_refused(name: str, path: str) -> None:
    with pytest.raises(bw.SettingsError, match=r"does not go with activation .* Use '"):
        small_model(activation=name, path=path)


def test_rows_of_predict_are_in_rank_order() -> None:
    model, X = small_model(), small_queries()
    P = model.predict(X, 5)
    labels, scores = model.topk(X, 5)
    assert P.shape == (7, 40)
    assert P.indices.reshape(7, 5).tolist() == labels.tolist()
    assert P.data.reshape(7, 5).tolist() == scores.tolist()


def test_a_deep_tree_of_only_children_works() -> None:
    layers = [bw.Layer(sparse(5, 1, 0.9, i), np.zeros(1, int)) for i in range(200)]
    model = bw.Model.from_layers(layers, activation="log-sigmoid")
    labels, scores = model.topk(np.ones((2, 5), np.float32), 1, 1)
    assert labels.tolist() == [[0], [0]]
    laws.check_same((labels, scores), model.topk(np.ones((2, 5), np.float32), 1, 1, exact=True))
    assert len(model.layers()) == 200


def test_the_version_is_the_contents_under_every_engine(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    made = small_model(names=[f"label {i}" for i in range(40)])
    made.save(path)
    loaded = bw.load(path)
    assert made.version == loaded.version
    assert loaded.using(layout="column").using(isa="scalar").version == loaded.version
    assert bw.load(path, memory="read").version == loaded.version
    renamed = loaded.with_names([f"name {i}" for i in range(40)])
    counted = loaded.with_rows_of_label(np.arange(40))
    assert len({loaded.version, renamed.version, counted.version, loaded.with_unit_rows().version}) == 4
    assert renamed.with_names([f"label {i}" for i in range(40)]).version == loaded.version
    renamed.save(path)
    assert bw.load(path).version == renamed.version


def test_a_model_cannot_be_changed_from_outside() -> None:
    model = small_model()
    for name in ("report", "version", "parts", "n_labels"):
        with pytest.raises(AttributeError):
            setattr(model, name, None)


def test_a_k_above_the_number_of_labels_is_padding_for_topk_alone() -> None:
    model, X = small_model(), small_queries()
    labels, scores = model.topk(X, k=45, beam=40)
    assert labels.shape == scores.shape == (7, 45)
    assert (labels[:, 40:] == -1).all()
    assert (scores[:, 40:] == -np.inf).all()
    laws.check_same((labels[:, :40], scores[:, :40]), model.topk(X, k=40, beam=40))


HUGE_K = """
import resource, sys, numpy as np, scipy.sparse as sp
import beamwood as bw
model = bw.load(sys.argv[1])
held = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (held + (256 << 20),) * 2)
k = 1_000_000_000
every = model.search("wool", k=model.n_labels)
assert model.search("wool", k=k) == every
assert model.search("wool", k=k, exact=True) == every
assert model.search_many(["wool"], k=k) == [every]
assert model.search_json("wool", k=k).fields == model.search_json("wool", k=model.n_labels).fields
X = model.text.transform(["wool"])
assert (model.predict(X, k=k) != model.predict(X, k=model.n_labels)).nnz == 0
"""


def test_a_huge_k_costs_no_memory(tmp_path: Path) -> None:
    model = bw.train_text(
        ["red wool", "blue hat", "wool hat"] * 3, [["a"], ["b"], ["c"]] * 3, preset="fast", progress=False
    )
    model.save(tmp_path / "model.bw")
    run = subprocess.run(
        [sys.executable, "-c", HUGE_K, tmp_path / "model.bw"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_other_names_leave_keys_as_they_are() -> None:
    model = bw.train_text(["red wool socks", "straw hat"], [["socks"], ["hats"]], progress=False)
    renamed = model.with_names(["Hats for all", "Socks for all"])
    assert renamed.keys == ["hats", "socks"]
    assert renamed.names == ["Hats for all", "Socks for all"]
    assert len(renamed) == 2
    assert renamed.search("wool", k=1)[0].key == "socks"
    assert model.with_names(keys=["h", "s"]).keys == ["h", "s"]


def test_every_matrix_that_we_hand_out_is_a_csr_array(tmp_path: Path) -> None:
    """One kind: scipy's matrices and arrays differ in what `*` and X[0] mean."""
    texts = bw.TextFeatures().fit(["red wool socks", "blue boots"])
    bw.write_xmc(tmp_path / "rows.txt", sp.eye_array(3), sp.eye_array(3))
    sp.save_npz(tmp_path / "rows.npz", sp.eye(3, format="csr"))
    numbers = [bw.read_xmc(tmp_path / "rows.txt"), bw.read_npz(tmp_path / "rows.npz", tmp_path / "rows.npz")]
    made = [small_model().predict(small_queries()), texts.transform(["red boots"])]
    made += [bw.LabelTable.from_labels([["a"], ["b"]]).matrix([["a"]])]
    made += [each for rows in numbers for each in (rows.X, rows.Y)]
    assert {type(each) for each in made} == {sp.csr_array}
    assert {each.dtype for each in made} == {np.dtype(np.float32)}
    row = small_queries()[0]
    laws.check_same(small_model().topk(row), small_model().topk(small_queries()[[0]]))
