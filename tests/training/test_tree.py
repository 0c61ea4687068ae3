"""Claims about trees: each kind is a tree over all labels, balanced if asked, same for any threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beamwood.errors import DataError, SettingsError
from beamwood.training.label_vectors import label_vectors
from beamwood.training.tree import TreeLayer, grow

KINDS = ("balanced", "capped", "unbalanced", "random", "huffman")


def unit_rows(seed: int, labels: int, features: int, density: float = 0.1) -> Any:
    rows = sp.random(labels, features, density, "csr", np.float32, random_state=seed)
    nothing = sp.csr_matrix((1, labels), dtype=np.float32)
    return label_vectors(nothing, nothing, kind="features", label_features=rows)


def themes(seed: int, labels: int, themes: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Vectors whose features say to which theme each belongs, in mixed order."""
    rng = np.random.default_rng(seed)
    theme = rng.permutation(np.arange(labels) % themes)
    dense = np.zeros((labels, themes * 10), dtype=np.float32)
    for row, t in enumerate(theme):
        dense[row, t * 10 + rng.choice(10, 5, replace=False)] = rng.random(5) + 0.5
    return sp.csr_matrix(dense / np.linalg.norm(dense, axis=1, keepdims=True)), theme


def check_tree(layers: Sequence[TreeLayer], labels: int) -> None:
    """Siblings lie together, inner nodes have children, labels are leaves, the last layer is all leaves."""
    above = 1
    inner = np.array([True])
    seen = []
    for parent, label in layers:
        assert parent.dtype == np.int64
        assert (np.diff(parent) >= 0).all()
        assert (np.bincount(parent, minlength=above) > 0).tolist() == inner.tolist()
        inner = np.ones(len(parent), dtype=bool) if label is None else label < 0
        if label is not None:
            assert label.dtype == np.int64
            seen.extend(label[label >= 0].tolist())
        above = len(parent)
    assert not inner.any()
    assert sorted(seen) == list(range(labels))


def same(one: Sequence[TreeLayer], other: Sequence[TreeLayer]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(p, q) and ((a is None and b is None) or np.array_equal(a, b))
        for (p, a), (q, b) in zip(one, other, strict=True)
    )


def any_tree(kind: str, vectors: sp.csr_matrix, **settings_: Any) -> list[TreeLayer]:
    if kind == "huffman":
        settings_["frequency"] = np.diff(vectors.indptr)
    return grow(vectors, kind=kind, **settings_)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    labels=st.integers(1, 150),
    branching=st.integers(2, 9),
    max_leaf=st.integers(1, 12),
)
def test_every_kind_is_a_tree_over_all_labels(kind: str, seed: int, labels: int, branching: int, max_leaf: int) -> None:
    vectors = unit_rows(seed, labels, 40, [0.0, 0.02, 0.3][seed % 3])
    layers = any_tree(kind, vectors, branching=branching, max_leaf=max_leaf, seed=seed)
    check_tree(layers, labels)
    widest = branching if kind == "huffman" else max(branching, max_leaf)
    if kind == "capped":  # groups that are too large are split into siblings, so only the last layer has a bound
        assert np.bincount(layers[-1][0]).max() <= max_leaf
    else:
        assert max(np.bincount(parent).max() for parent, _ in layers) <= widest


@settings(max_examples=30, deadline=None)
@given(labels=st.integers(1, 400), max_leaf=st.integers(1, 40), kind=st.sampled_from(["balanced", "random"]))
def test_leaf_clusters_differ_by_at_most_one_label(labels: int, max_leaf: int, kind: str) -> None:
    layers = grow(unit_rows(labels, labels, 30), kind=kind, branching=4, max_leaf=max_leaf)
    sizes = np.bincount(layers[-1][0])
    if max_leaf > 1 or labels == 1:
        assert sizes.max() <= max_leaf
        assert sizes.max() - sizes.min() <= 1
    assert all(label is None for _, label in layers[:-1])


def test_layers_are_merged_by_branching() -> None:
    layers = grow(unit_rows(0, 1000, 50), branching=8, max_leaf=10)
    assert [len(parent) for parent, _ in layers] == [2, 16, 128, 1000]
    assert layers[1][0].tolist() == [i // 8 for i in range(16)]


@pytest.mark.parametrize("kind", ["balanced", "capped", "unbalanced"])
@pytest.mark.parametrize("labels", [700, 9000])
def test_same_tree_for_any_number_of_threads(kind: str, labels: int) -> None:
    vectors = unit_rows(3, labels, 400, 0.4 if labels > 1000 else 0.05)
    one = grow(vectors, kind=kind, branching=8, max_leaf=16, seed=5, threads=1)
    assert same(one, grow(vectors, kind=kind, branching=8, max_leaf=16, seed=5, threads=2))
    assert same(one, grow(vectors, kind=kind, branching=8, max_leaf=16, seed=5, threads=5))


@pytest.mark.parametrize("kind", ["balanced", "capped", "unbalanced", "random"])
def test_another_seed_gives_another_tree(kind: str) -> None:
    one, other = (grow(unit_rows(3, 300, 50), kind=kind, max_leaf=8, seed=seed) for seed in (0, 1))
    assert not same(one, other)


@pytest.mark.parametrize("kind", ["balanced", "capped", "unbalanced"])
def test_labels_of_one_theme_come_together(kind: str) -> None:
    vectors, theme = themes(0, 640, 8)
    layers = grow(vectors, kind=kind, branching=32, max_leaf=80, max_depth=2)
    label, parent = layers[-1][1], layers[-1][0]
    assert label is not None
    agree = [np.bincount(theme[label[parent == c]]).max() for c in np.unique(parent)]
    assert sum(agree) >= 0.9 * len(label)


@pytest.mark.parametrize(("labels", "depth"), [(20, 1), (500, 2), (5000, 3), (60_000, 4)])
def test_a_capped_tree_has_as_few_layers_as_its_width_allows(labels: int, depth: int) -> None:
    layers = grow(unit_rows(2, labels, 300, 0.02), kind="capped", branching=64, max_leaf=20, seed=1)
    check_tree(layers, labels)
    assert all(label is None for _, label in layers[:-1]), "all leaves lie at one depth"
    assert len(layers) == depth
    assert np.bincount(layers[-1][0]).max() <= 20
    for parent, _ in layers[:-2]:  # all above the clusters are as wide as they may be: wide tops win recall
        assert np.bincount(parent).max() == 64


def test_max_depth_is_kept() -> None:
    layers = grow(unit_rows(1, 2000, 60), kind="unbalanced", branching=3, max_leaf=2, max_depth=3)
    assert len(layers) == 3
    check_tree(layers, 2000)


@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_and_zero_vectors_end(kind: str) -> None:
    row = sp.csr_matrix(np.float32([[0.6, 0.8, 0.0]]))
    same_rows = sp.vstack([row] * 300 + [sp.csr_matrix((200, 3), dtype=np.float32)], format="csr")
    for branching in (2, 32):
        check_tree(any_tree(kind, same_rows, branching=branching, max_leaf=4), 500)


@pytest.mark.parametrize("kind", KINDS)
def test_one_label_and_fewer_labels_than_branching(kind: str) -> None:
    for labels in (1, 2, 5):
        layers = any_tree(kind, unit_rows(0, labels, 5), branching=32, max_leaf=32)
        assert len(layers) == 1
        check_tree(layers, labels)


def test_no_features_at_all() -> None:
    for kind in KINDS:
        check_tree(any_tree(kind, sp.csr_matrix((100, 0), dtype=np.float32), branching=4, max_leaf=4), 100)


def test_huffman_lifts_frequent_labels() -> None:
    layers = grow(5, kind="huffman", branching=2, frequency=[1, 1, 2, 4, 8])
    depth = {int(x): d for d, (_, label) in enumerate(layers) if label is not None for x in label if x >= 0}
    assert depth == {4: 0, 3: 1, 2: 2, 0: 3, 1: 3}


@settings(max_examples=40, deadline=None)
@given(
    frequency=st.lists(st.integers(0, 1000), min_size=2, max_size=60),
    branching=st.integers(2, 5),
)
def test_huffman_is_no_worse_than_any_balanced_tree(frequency: list[int], branching: int) -> None:
    layers = grow(len(frequency), kind="huffman", branching=branching, frequency=frequency)
    check_tree(layers, len(frequency))
    cost = 0
    for depth, (_, label) in enumerate(layers, start=1):
        if label is not None:
            cost += depth * int(np.take(frequency, label[label >= 0]).sum())
    depth, nodes = 0, 1
    while nodes < len(frequency):
        depth, nodes = depth + 1, nodes * branching
    assert cost <= depth * sum(frequency)


def test_a_given_tree_comes_out_layer_by_layer() -> None:
    #        6            root; 5 and label 1 below it; 4 and label 0 below 5; labels 2 and 3 below 4
    layers = grow(4, kind="given", parents=[5, 6, 4, 4, 5, 6, -1])
    check_tree(layers, 4)
    (top, top_label), (middle, middle_label), (low, low_label) = layers
    assert (top.tolist(), top_label.tolist()) == ([0, 0], [1, -1])
    assert (middle.tolist(), middle_label.tolist()) == ([1, 1], [0, -1])
    assert (low.tolist(), low_label.tolist()) == ([1, 1], [2, 3])
    check_tree(grow(1, kind="given", parents=[-1]), 1)


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ([2, 2], "negative"),
        ([-1, -1, -1], "negative"),
        ([2, 2, 3, 2, -1], "no children"),
        ([4, 4, 3, 2, -1], "root never reaches"),
        ([1, 2, -1], "is a label and has children"),
        ([9, 2, -1], "has node 9"),
        ([-1], "the 2 labels first"),
        ([0.5, 1.0, -1.0], "float64"),
    ],
)
def test_bad_parents_are_refused(parents: list[int], words: str) -> None:
    with pytest.raises(DataError, match=words):
        grow(2, kind="given", parents=parents)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "banana"},
        {"branching": 1},
        {"max_leaf": 0},
        {"max_depth": 0},
        {"threads": 0},
        {"seed": -1},
        {"seed": 2**64},
        {"branching": 2.5},
        {"kind": "huffman"},
        {"kind": "given"},
        {"parents": [1, -1]},
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        grow(unit_rows(0, 10, 5), **wrong)


def test_bad_data_is_refused() -> None:
    with pytest.raises(DataError, match="no labels"):
        grow(sp.csr_matrix((0, 5), dtype=np.float32))
    with pytest.raises(DataError, match="nan"):
        grow(sp.csr_matrix(np.float32([[np.nan], [1.0]])))
    with pytest.raises(DataError, match="one per label"):
        grow(3, kind="huffman", frequency=[1, 2])
    with pytest.raises(DataError, match="counts"):
        grow(2, kind="huffman", frequency=[1, -2])
    with pytest.raises(SettingsError, match="expected vectors"):
        grow(10)
