"""Compact weights: what they decode to is what numpy says, every engine agrees on it, and the report is true."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.strategies import Case, random_case

import beamwood as bw

MODELS = int(os.environ.get("BEAMWOOD_LAWS_MODELS", "40"))


def decoded(tree: Sequence[bw.Layer], weights: str) -> list[Any]:
    """What the weights of a tree's layers become, computed apart from the core."""
    columns = [sp.csc_array(layer.weights) for layer in tree]
    for one in columns:
        one.sort_indices()
    if weights == "f16":
        return [one.data.astype(np.float16).astype(np.float32) for one in columns]
    chunks = chunks_of_nodes([np.asarray(layer.parent) for layer in tree])
    largest = np.zeros(max(chunk.max() for chunk in chunks) + 1, np.float32)
    of_weight = [
        chunk[np.repeat(np.arange(len(chunk)), np.diff(one.indptr))] for chunk, one in zip(chunks, columns, strict=True)
    ]
    for chunk, one in zip(of_weight, columns, strict=True):
        np.maximum.at(largest, chunk, np.abs(one.data))
    scale = np.maximum(largest / np.float32(127), np.float32(1e-45))
    with np.errstate(over="ignore"):
        scale = np.where(np.isinf(127 * scale), np.nextafter(scale, np.float32(0)), scale)
    return [
        np.clip(np.rint(one.data / scale[chunk]), -127, 127).astype(np.float32) * scale[chunk]
        for chunk, one in zip(of_weight, columns, strict=True)
    ]


def chunks_of_nodes(parents: list[Any]) -> list[Any]:
    """For each layer the chunk of each node: up to four layers share chunks while none has more than 32 nodes."""
    chunks: list[Any] = []
    bundle: list[Any] = []  # of each layer of the one that is being made: in whose clan each node is
    first = 0  # number of its first chunk
    for parent in parents:
        clan = bundle[-1][parent] if bundle else parent
        if bundle and (len(bundle) == 4 or np.bincount(np.concatenate([*bundle, clan])).max() > 32):
            first = max(chunk.max() for chunk in chunks) + 1
            bundle, clan = [], parent
        bundle.append(clan)
        chunks.append(first + clan)
    return chunks


def fits_in_halves(case: Case) -> bool:
    """Whether 16 bits can hold a case's weights."""
    return all(np.abs(layer.weights.data).max(initial=0) <= 65504 for tree in case.trees for layer in tree)


def check_case(case: Case, weights: str, folder: Path, variants: list[laws.Engine] | None) -> None:
    """Decoded weights are the spec's, and all engines give the reference's bits on them."""
    model = case.model()
    small = model.compress(weights)
    trees = [small.layers(tree) for tree in range(len(case.trees))]
    for given, found in zip(case.trees, trees, strict=True):
        for old, new, expected in zip(given, found, decoded(given, weights), strict=True):
            assert (new.weights.data == expected).all(), case.seed
            assert old.bias is None or np.asarray(old.bias, np.float32).tobytes() == new.bias.tobytes()
    laws.same_bits_as_the_reference(replace(case, trees=trees), folder, variants, small)


@pytest.mark.parametrize("weights", ["f16", "u8"])
def test_same_bits_for_every_engine_on_compact_models(weights: str, tmp_path: Path) -> None:
    """Random models of every form, wide chunks and tiny and huge weights among them."""
    checked = 0
    for seed in range(MODELS):
        case = random_case(seed)
        if weights == "f16" and not fits_in_halves(case):
            with pytest.raises(bw.SettingsError, match="f16 reaches 65,504"):
                case.model().compress(weights)
            continue
        check_case(case, weights, tmp_path, None if seed % 4 == 0 else [{}, {"isa": "scalar"}, {"layout": "chunk"}])
        checked += 1
    assert checked > MODELS / 4


def fanned_case(width: int) -> Case:
    """Two layers of chunks of one width, full enough that rows hold many weights."""
    rng = np.random.default_rng(width)
    W = [sp.random_array((40, n), density=0.4, format="csc", dtype=np.float32, rng=rng) for n in (width, 3 * width)]
    for columns in W:
        columns.data -= 0.5
    layers = [bw.Layer(W[0], np.zeros(width, int)), bw.Layer(W[1], np.arange(3 * width) // 3)]
    X = sp.random_array((5, 40), density=0.5, format="csr", dtype=np.float32, rng=rng)
    return Case(f"width {width}", [layers], "sigmoid", None, X, [(5, 3), (3 * width, width)])


@pytest.mark.parametrize("weights", ["f16", "u8"])
@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 17, 24, 25, 31, 32, 33, 100, 300])
def test_every_width_of_chunks(weights: str, width: int, tmp_path: Path) -> None:
    """The kernels of each width, narrow and wide."""
    check_case(fanned_case(width), weights, tmp_path, None)


def test_pruning_keeps_the_largest_weights() -> None:
    """top and threshold do what they say, column by column."""
    model = fanned_case(32).model()
    small = model.compress("f32", top=5, threshold=0.1)
    for old, new in zip(model.layers(), small.layers(), strict=True):
        for node in range(old.weights.shape[1]):
            before, after = np.abs(old.weights[:, [node]].data), np.abs(new.weights[:, [node]].data)
            assert sorted(after) == sorted(before[before >= 0.1])[-5:]
    assert small.report.largest_error == 0
    assert small.report.nonzeros_after == small.info()["nonzeros"] < small.report.nonzeros_before


def test_the_report_says_what_was_lost() -> None:
    """Bytes, errors and measured precision are those of the two models."""
    case = fanned_case(32)
    model = case.model()
    Y = sp.csr_array((np.ones(5), model.topk(case.X, 1)[0][:, 0], np.arange(6)), shape=(5, model.n_labels))
    for weights, bits in (("f16", 16), ("u8", 8)):
        small = model.compress(weights, measure=(case.X, Y))
        report = small.report
        assert report.bytes_after == small.info()["bytes_of_weights"] < report.bytes_before
        assert report.bytes_before - report.bytes_after > 0.5 * report.nonzeros_before * (32 - bits) / 8
        worst = max(
            float(np.abs(o.weights - n.weights).max()) for o, n in zip(model.layers(), small.layers(), strict=True)
        )
        assert report.largest_error == pytest.approx(worst)
        assert 0 < report.relative_error < 0.01
        assert report.precision_before[1] == 100
        again = bw.evaluate(small.topk(case.X, 10), Y)
        assert report.precision_after[1] == pytest.approx(100 * again.precision[1])
        assert weights in str(report)
        assert "P@1" in str(report)
    assert model.compress("u8").report.precision_before == {}


def test_compact_models_keep_names_and_refuse_to_be_compressed_again(tmp_path: Path) -> None:
    """Everything but weights stays; a file says what it needs; what makes no sense is refused."""
    case = fanned_case(9)
    model = bw.Model.from_layers(case.trees[0], names=[f"label {i}" for i in range(27)])
    small = model.compress("u8")
    small.save(tmp_path / "small.bw")
    back = bw.load(tmp_path / "small.bw", verify=True)
    assert back.name(3) == "label 3"
    assert back.info()["kind_of_weights"] == "u8"
    assert b"compact-1" in (tmp_path / "small.bw").read_bytes()[:4096]
    laws.check_same(back.topk(case.X, 5), small.topk(case.X, 5))
    for call in (
        lambda: back.compress("u8"),
        lambda: model.compress("u4"),
        lambda: model.compress(top=0),
        lambda: model.compress(threshold=-1),
        lambda: model.compress(measure=case.X),
    ):
        with pytest.raises(bw.SettingsError):
            call()
    with pytest.raises(bw.DataError, match="27 columns"):
        model.compress(measure=(case.X, case.X))
    with pytest.raises(bw.DataError, match="u8 weights"):
        bw.Model.from_trees([model, small])
    assert bw.Model.from_trees([small, small]).topk(case.X, 5)[0].shape == (5, 5)
