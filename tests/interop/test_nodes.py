"""Trees given node by node, and their structure as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.models import small_model, small_queries, sparse, two_layers

import beamwood as bw
from beamwood.interop import from_nodes, read_tree, tree_of, write
from beamwood.interop.layering import depths_of


def test_a_parent_list_and_columns_make_the_model_that_layers_make() -> None:
    layers = two_layers()
    parent = np.concatenate([np.full(6, -1), layers[1].parent])
    weights = sp.hstack([layers[0].weights, layers[1].weights], format="csc")
    bias = np.concatenate([layers[0].bias, np.zeros(40)])
    for form in ({"activation": "hinge-3"}, {"activation": "log-hinge-2", "path": "log-exp", "discount": 0.9}):
        one = bw.Model.from_layers(layers, **form)
        other = from_nodes(parent, weights, bias=bias, **form)
        for left, right in zip(one.topk(small_queries()), other.topk(small_queries()), strict=True):
            assert left.tobytes() == right.tobytes()


def test_clusters_keep_one_place_in_the_beam() -> None:
    """Nodes 0 and 1 on top. Node 0 has labels 0 and 1; node 1 has node 2, which has label 2.

    With beam 1 the better top node wins; as clusters, the labels of node 0 wait for a layer that does not concern them.
    """
    parent, label = [-1, -1, 1, 0, 0, 2], [-1, -1, -1, 0, 1, 2]
    weights = sp.csc_array(np.array([[2.0, 1.0, 3.0, -1.0, -2.0, 3.0]], np.float32))
    X = sp.csr_array(np.ones((1, 1), np.float32))
    form: dict[str, Any] = {"activation": "log-hinge-1", "path": "log-exp"}
    early = from_nodes(parent, weights, label, **form)
    padded = from_nodes(parent, weights, label, clusters=True, **form)
    assert early.info()["nodes"] == [[2, 3, 1]]
    assert padded.info()["nodes"] == [[2, 2, 3]]
    assert early.topk(X, 3, beam=2)[0].tolist() == padded.topk(X, 3, beam=2)[0].tolist() == [[2, 0, 1]]
    assert padded.topk(X, 3, beam=1)[0].tolist() == [[0, 1, -1]]


def test_labels_are_the_nodes_without_children_by_default() -> None:
    model = from_nodes([-1, 0, 0, -1], sparse(9, 4, 0.9, 1))
    assert model.n_labels == 3
    assert model.layers()[0].label.tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ([-1, 0, 5], "Node 2 has parent 5"),
        ([-1, 2, 1], "Node 1 is its own ancestor"),
        ([-2, 0, 0], "Node 0 has parent -2"),
        ([-1, 0], "one integer per node"),
        ([-1.0, 0.0, 0.0], "one integer per node"),
    ],
)
def test_a_parent_list_that_is_no_tree_is_refused(parent: list[Any], message: str) -> None:
    with pytest.raises(bw.DataError, match=message):
        from_nodes(parent, sparse(9, 3, 0.9, 1))


def test_a_tree_of_too_many_layers_is_refused() -> None:
    with pytest.raises(bw.DataError, match="more than 512 layers"):
        depths_of(np.arange(600) - 1)


def test_the_structure_goes_out_as_text_and_comes_back(tmp_path: Path) -> None:
    model = small_model()
    assert write(model, tmp_path / "tree.txt", "tree") == ["only the tree, without weights"]
    assert (tmp_path / "tree.txt").read_text().startswith("40 47\n-1 0\n0 1\n")
    found, expected = read_tree(tmp_path / "tree.txt"), tree_of(model)
    assert np.array_equal(found.parent, expected.parent)
    assert np.array_equal(found.label, expected.label)
    with pytest.raises(bw.SettingsError, match="is there already"):
        write(model, tmp_path / "tree.txt", "tree")


def test_the_structure_of_one_model_trains_another(tmp_path: Path) -> None:
    """A tree that another program wrote is a setting of training."""
    write(small_model(), tmp_path / "tree.txt", "tree")
    parents = read_tree(tmp_path / "tree.txt").parent_list()
    rng = np.random.default_rng(0)
    Y = sp.csr_array(np.eye(40, dtype=np.float32)[rng.integers(0, 40, 300)])
    X = sp.csr_array(Y @ sparse(40, 60, 0.2, 3))
    model = bw.train(X, Y, preset="fast", tree=parents, progress=False)
    assert np.array_equal(np.sort(model.layers()[-1].label), np.arange(40))
    ours, given = tree_of(model), read_tree(tmp_path / "tree.txt")

    def families(tree: Any) -> set[frozenset[int]]:
        leaf = tree.label >= 0
        return {frozenset(tree.label[leaf & (tree.parent == up)].tolist()) for up in np.unique(tree.parent[leaf])}

    assert families(ours) == families(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is ''"),
        ("2 9\n-1 0\n", "line 1 is '2 9'"),
        ("1 2\n-1 0\n0 x 0\n", "line 3 is '0 x 0'"),
        ("1 2\n-1 0\n0 0 0\n", "line 3 is '0 0 0'"),
        ("1 2\n-1 0\n7 1 0\n", "line 3 has parent 7"),
        ("2 2\n-1 0\n0 1 0\n", "1 labels and 1 roots"),
        ("1 3\n-1 0\n2 1 0\n1 2\n", "its own ancestor"),
    ],
)
def test_a_hostile_tree_file_is_refused_by_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tree.txt").write_text(text)
    with pytest.raises(bw.FormatError, match=f"tree.txt: .*{message}"):
        read_tree(tmp_path / "tree.txt")
