"""napkinXC's folders: golden models answer as its exact search does, exports come back, hostile ones are refused."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.foreign import GOLDEN, SETS, check_refused, check_same_answers, golden_pairs, golden_rows
from support.models import small_model, small_queries, sparse, two_layers

import beamwood as bw
from beamwood.interop import napkinxc
from beamwood.interop.convert import read, write

KINDS = ("napkin_l2", "napkin_log")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_golden_model_answers_as_its_exact_search_does(name: str, kind: str) -> None:
    X = golden_rows(name)
    found = napkinxc.read(GOLDEN / name / kind, features=X.shape[1])
    assert found.model.info()["nodes"] == [[1, 3, 9, 45]]
    assert found.model.info()["unit_rows"]
    theirs = golden_pairs(GOLDEN / name / f"{kind}.json", 5)
    assert check_same_answers(found.model.topk(X, 5, exact=True), theirs, 1e-6) == X.shape[0]


def test_the_number_of_features_is_guessed_from_the_weights() -> None:
    found = read(GOLDEN / "small" / "napkin_l2")
    assert found.model.n_features == 80
    assert any("does not say how many features" in note for note in found.notes)
    with pytest.raises(bw.SettingsError, match="expected at least 80"):
        napkinxc.read(GOLDEN / "small" / "napkin_l2", features=70)


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_comes_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    model = read(GOLDEN / "small" / kind).model
    write(model, tmp_path / "out", "napkinxc")
    again = napkinxc.read(tmp_path / "out", model.n_features).model
    assert again.info()["nodes"] == model.info()["nodes"]
    X = golden_rows("small")
    for one, other in zip(model.topk(X, exact=True), again.topk(X, exact=True), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("activation", ["sigmoid", "hinge-2"])
def test_a_tree_without_a_root_gets_a_certain_one(activation: str, tmp_path: Path) -> None:
    top = bw.Layer(sparse(50, 4, 0.5, 3), np.zeros(4, np.int64), np.array([0, np.inf, 0.3, -np.inf]), [-1, 0, -1, 1])
    last = bw.Layer(sparse(50, 6, 0.5, 4), np.array([0, 2, 0, 2, 2, 0]), label=np.array([7, 2, 3, 4, 5, 6]))
    model = bw.Model.from_layers([top, last], activation=activation)
    write(model, tmp_path / "out", "napkinxc")
    again = napkinxc.read(tmp_path / "out", 50).model
    assert again.info()["nodes"] == [[1, 4, 6]]
    for one, other in zip(model.topk(small_queries(), 8, 9), again.topk(small_queries(), 8, 9), strict=True):
        assert one.tobytes() == other.tobytes()


def test_an_ensemble_goes_out_and_comes_back(tmp_path: Path) -> None:
    both = bw.Model.from_trees([small_model(), bw.Model.from_layers(two_layers(seed=5))])
    write(both, tmp_path / "out", "napkinxc")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["args.bin", "member_0", "member_1"]
    again = napkinxc.read(tmp_path / "out", 50).model
    for one, other in zip(both.topk(small_queries()), again.topk(small_queries()), strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_label_on_an_inner_node_scores_as_that_node_does(tmp_path: Path) -> None:
    """Root 0 has nodes 1 (label 0, children 2 and 3) and 4."""
    parent, label = np.array([-1, 0, 1, 1, 0]), np.array([-1, 0, 1, 2, 3])
    weights = sparse(50, 5, 0.6, 8)
    from beamwood.interop.layering import layers_of_nodes

    model = bw.Model.from_layers(layers_of_nodes(parent, weights, label), activation="sigmoid")
    X = small_queries()
    z = np.asarray((X @ weights).todense(), np.float64)
    p = 1 / (1 + np.exp(-z))
    expected = np.stack([p[:, 1], p[:, 1] * p[:, 2], p[:, 1] * p[:, 3], p[:, 4]], axis=1) * p[:, :1]
    for how in ({"exact": True}, {"beam": 4}):
        labels, scores = model.topk(X, 4, **how)
        np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), atol=1e-6)
    assert np.array_equal(np.sort(labels, axis=1), np.tile(np.arange(4), (X.shape[0], 1)))


@pytest.mark.parametrize("form", [{"activation": "hinge-3"}, {"activation": "identity"}, {"activation": "log-sigmoid"}])
def test_what_napkinxc_cannot_hold_is_said(form: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(bw.SettingsError, match="cannot be written for it"):
        write(small_model(**form), tmp_path / "out", "napkinxc")
    assert not list(tmp_path.iterdir())


# --- hostile folders --------------------------------------------------------------------------------------------------


def put(name: str, at: int, form: str, *values: Any) -> Any:
    """Overwrites numbers of a file."""

    def spoil(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        struct.pack_into(form, data, at, *values)
        (folder / name).write_bytes(data)

    return spoil


def cut(name: str, size: int) -> Any:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


HOSTILE: dict[str, tuple[Any, str]] = {
    "no tree": (lambda f: (f / "tree.bin").unlink(), r"tree.bin: the file is not there"),
    "an old version": (put("args.bin", 8, "5s", b"0.5.1"), r"args.bin: version is '0.5.1'"),
    "no version": (put("args.bin", 0, "<Q", 2**63), r"args.bin: version has -1 entries"),
    "hashed": (put("args.bin", 18, "<i", 1000), r"args.bin: hash is 1000"),
    "another model": (put("args.bin", 26, "<i", 5), r"args.bin: modelType is 5"),
    "many trees": (put("args.bin", 41, "<i", 2**31 - 1), r"args.bin: ensemble is 2147483647"),
    "a member that is missing": (put("args.bin", 41, "<i", 2), r"member_0/tree.bin: the file is not there"),
    "many members that are missing": (put("args.bin", 41, "<i", 10_000), r"member_0/tree.bin: the file is not there"),
    "nodes": (
        put("tree.bin", 4, "<i", 2**31 - 1),
        r"tree.bin: the list of nodes has 4294967294 entries|tree.bin: the l",
    ),
    "a node twice": (put("tree.bin", 16, "<i", 0), r"tree.bin: the nodes are not numbered"),
    "leaves": (put("tree.bin", 0, "<i", 44), r"tree.bin: 45 nodes have a label; expected 44"),
    "a cut tree": (cut("tree.bin", 300), r"tree.bin: the list of nodes has"),
    "a circle": (put("tree.bin", 480, "<i", 1), r"napkin_l2: Node 1 is its own ancestor"),
    "a parent outside": (put("tree.bin", 708 - 4, "<i", 99), r"napkin_l2: Node 57 has parent 99"),
    "classifiers": (put("weights.bin", 0, "<i", 57), r"weights.bin: it has 57 classifiers"),
    "classes": (put("weights.bin", 4, "<i", 7), r"weights.bin: classifier 0 has 7 classes"),
    "sizes": (put("weights.bin", 16 + 12 + 16, "<Q", 2**62), r"weights.bin: the weights of classifier 1 are 74 of"),
    "a cut file": (cut("weights.bin", 5000), r"weights.bin: .*(it ends inside|has 83 entries)"),
    "another root": (put("tree.bin", 8, "<i", 1), r"tree.bin: (the root is|.*expected)"),
    "more bytes": (
        lambda f: (f / "weights.bin").write_bytes((f / "weights.bin").read_bytes() + b"x"),
        r"weights.bin: 1 bytes follow; expected the end",
    ),
    "not finite": (put("weights.bin", 16 + 12 + 16 + 17 + 8, "<f", np.nan), r"classifier 1 are not all finite"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_file_and_field(name: str, tmp_path: Path) -> None:
    spoil, message = HOSTILE[name]
    shutil.copytree(GOLDEN / "small" / "napkin_l2", tmp_path / "napkin_l2")
    spoil(tmp_path / "napkin_l2")
    check_refused(read, tmp_path / "napkin_l2", message)


def test_a_feature_far_outside_takes_no_memory(tmp_path: Path) -> None:
    layer = bw.Layer(sp.csc_array(np.array([[1], [2]], np.float32)), np.zeros(1, np.int64))
    write(bw.Model.from_layers([layer]), tmp_path / "out", "napkinxc")
    path = tmp_path / "out" / "weights.bin"
    old, new = ((struct.pack("<QQB", n, 2, 1), struct.pack("<ifif", 2, 1.0, n - 1, 2.0)) for n in (4, 2**30))
    data = path.read_bytes()
    for before, after in zip(old, new, strict=True):
        assert data.count(before) == 1
        data = data.replace(before, after)
    path.write_bytes(data)
    check_refused(read, tmp_path / "out", r"weights.bin: it says 1,073,741,822 features; expected at most")


def test_weights_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    """Hash maps of napkinXC are written in any order."""
    layer = bw.Layer(sp.csc_array(np.array([[1, 2, 3], [4, 5, 6]], np.float32).T), np.zeros(2, np.int64))
    write(bw.Model.from_layers([layer]), tmp_path / "out", "napkinxc")
    path = tmp_path / "out" / "weights.bin"
    data = path.read_bytes()
    pairs = struct.pack("<ififif", 2, 1.0, 3, 2.0, 4, 3.0)
    assert data.count(pairs) == 1
    path.write_bytes(data.replace(pairs, struct.pack("<ififif", 4, 3.0, 2, 1.0, 3, 2.0)))
    back = read(tmp_path / "out").model.layers()[1].weights
    assert back.toarray().tolist() == [[1, 4], [2, 5], [3, 6]]
