"""test_stored.py — leaves that are grafted on a tree give the bytes of a tree that is built with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from beamwood.engine import Forests
from beamwood.errors import FormatError
from beamwood.storage.activations import Activation
from beamwood.storage.assemble import from_layers
from beamwood.storage.build import bundles, layer_name
from beamwood.storage.layers import Layer, Nodes
from beamwood.storage.parts import ModelParts
from beamwood.update.hosts import Hosts
from beamwood.update.stored import StoredTree

FEATURES = 4000
# Children of each node from the top, the share of features that a node has, nodes in any order.
SHAPES = {
    "two layers": ((40, 6), 0.01, False),
    "three layers": ((33, 5, 7), 0.01, False),
    "nodes in any order": ((35, 4, 9), 0.01, True),
    "chunks of several pages": ((33, 26), 0.8, False),
    "several pages below what grows": ((2, 18, 26), 0.8, True),
    "masks of all widths": ((33, 8, 16), 0.02, True),
    "layers that share chunks": ((2, 2, 3, 30), 0.02, False),
}


def model_of(widths: tuple[int, ...], share: float, shuffled: bool, seed: int) -> ModelParts:
    """A tree of random weights; some nodes of its upper layers are leaves."""
    dice = np.random.default_rng(seed)
    layers: list[Layer] = []
    above, labels = np.zeros(1, np.int64), 0
    for depth, width in enumerate(widths):
        last = depth + 1 == len(widths)
        parent = np.repeat(above, dice.integers(max(1, width - 2), width + 3, len(above)) if depth else width)
        leaf = np.ones(len(parent), bool) if last else dice.random(len(parent)) < 0.1 * (depth > 0)
        parent = dice.permutation(parent) if shuffled else parent
        label = np.where(leaf, labels + np.cumsum(leaf) - 1, -1)
        labels += int(leaf.sum())
        weights = sp.random_array((FEATURES, len(parent)), density=share, rng=dice, dtype=np.float32)
        bias = dice.standard_normal(len(parent)).astype(np.float32)
        layers.append(Layer(sp.csc_array(weights), parent, bias, label))
        above = np.flatnonzero(~leaf)
    return from_layers(layers, Activation.parse("sigmoid"), False, None, None, {})


def new_leaves(parts: ModelParts, count: int, seed: int) -> tuple[StoredTree, tuple[list[Nodes], list[Any]]]:
    dice = np.random.default_rng(seed)
    stored = StoredTree(parts, Forests(parts), 0)
    hosts = Hosts.of(stored.nodes)
    home = dice.integers(0, len(hosts), count)
    weights = sp.csc_array(sp.random_array((FEATURES, count), density=0.02, rng=dice, dtype=np.float32))
    return stored, hosts.grafted(stored.nodes, home, weights, dice.standard_normal(count).astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 40, 300])
def test_grafted_leaves_give_the_bytes_of_a_tree_that_is_built_with_them(shape: str, count: int) -> None:
    parts = model_of(*SHAPES[shape], seed=count)
    stored, new = new_leaves(parts, count, seed=7)
    for threads in (1, 3):
        grafted, size = stored.grown(*new, threads=threads)
        built, expected = stored._built(*new, threads=threads)
        assert size == expected
        assert grafted.keys() == built.keys()
        for name, array in built.items():
            assert grafted[name].dtype == array.dtype, name
            assert np.array_equal(grafted[name].view(np.uint32), array.view(np.uint32)), name


def test_shapes_above_are_of_both_kinds() -> None:
    def shared(shape: str) -> bool:
        parts = model_of(*SHAPES[shape], seed=1)
        starts = [parts.sections[layer_name(0, d, "child_start")] for d in range(len(SHAPES[shape][0]))]
        return any(len(bundle) > 1 for bundle in bundles(starts))

    assert [shape for shape in SHAPES if shared(shape)] == ["layers that share chunks"]
    for depth, shape in enumerate(("chunks of several pages", "several pages below what grows")):
        assert (model_of(*SHAPES[shape], seed=1).sections[layer_name(0, depth, "thread_start")][:-1] & 1).any()


def test_a_damaged_tree_is_refused_or_grown_and_never_written_beyond() -> None:
    """A word of a chunk is any other one: what comes is an error, or words that later reading checks."""
    whole = model_of(*SHAPES["masks of all widths"], seed=3)
    _, new = new_leaves(whole, 40, seed=7)
    dice = np.random.default_rng(0)
    refused = 0
    for turn in range(300):
        name = layer_name(0, turn % 3, "threads")
        words = whole.sections[name].copy()
        words[dice.integers(0, min(len(words), 400) if turn % 2 else len(words))] = dice.integers(0, 2**32)
        parts = ModelParts(whole.shape, {**whole.sections, name: words})
        try:
            StoredTree(parts, Forests(parts), 0).grown(*new, threads=1)
        except FormatError:
            refused += 1
    assert refused > 20
