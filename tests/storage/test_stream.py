"""Streamed models: the arrays that Model.from_layers makes, whatever the size of the parts; bad input is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood.storage import stream

# children of each node, a layer each; None: 1, 2, 3, 4 in turn
UNEVEN = ((7,), (3, 40, 1, 2, 9, 33, 5), None)
BUNDLED = ((2,), (3, 1), (2, 2, 1, 3), None, (2, 3) * 10, (9,) * 50)  # three layers share chunks, then two, then none


def tree(features: int = 50, shape: Any = UNEVEN) -> tuple[list[Any], list[Any]]:
    """Child starts and weights of a tree of uneven chunks, some wider than a mask."""
    rng = np.random.default_rng(3)
    starts, weights, above = [], [], 1
    for widths in shape:
        each = np.resize([1, 2, 3, 4], above) if widths is None else np.array(widths)
        starts.append(np.concatenate([[0], np.cumsum(each)]))
        above = int(each.sum())
        weights.append(sp.random_array((features, above), density=0.2, format="csc", dtype=np.float32, rng=rng))
    return starts, weights


@pytest.mark.parametrize("weights", ["f32", "f16", "u8"])
@pytest.mark.parametrize("at_once", [1, 10, 1000])
@pytest.mark.parametrize("shape", [UNEVEN, BUNDLED])
def test_a_streamed_model_is_the_model_that_layers_make(weights: str, at_once: int, shape: Any, tmp_path: Path) -> None:
    """Array by array, bit by bit; and it answers."""
    starts, columns = tree(shape=shape)
    asked = []

    def some(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        asked.append((layer, first, end))
        part = columns[layer][:, first:end]
        return part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data

    path = tmp_path / "streamed.bw"
    counts = stream.write_model(path, starts, some, features=50, weights=weights, labels_at_once=at_once)
    found = bw.load(path, verify=True)
    parents = [np.repeat(np.arange(len(start) - 1), np.diff(start)) for start in starts]
    layers = [bw.Layer(w, p) for w, p in zip(columns, parents, strict=True)]
    expected = bw.Model.from_layers(layers)
    if weights != "f32":
        expected = expected.compress(weights)
    assert set(found.parts.sections) == set(expected.parts.sections)
    for name, array in expected.parts.sections.items():
        assert array.tobytes() == found.parts.sections[name].tobytes(), name
    X = sp.random_array((20, 50), density=0.3, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
    laws.check_same(found.topk(X, 5, 3), expected.topk(X, 5, 3))
    assert [(one.nodes, one.nonzeros) for one in counts] == [(w.shape[1], w.nnz) for w in columns]
    assert counts[-1].empty_rows == 0
    assert sum(end - first for layer, first, end in asked if layer == len(columns) - 1) == columns[-1].shape[1]
    assert (len(asked) > 10) == (at_once < 100)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_wrong_is_said_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """Offsets, columns and settings that make no sense."""
    starts, columns = tree()
    path = tmp_path / "model.bw"

    def good(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        part = columns[layer][:, first:end]
        return part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data

    def outside(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        return start, feature + 49, weight

    def short(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        return start[:-1], feature, weight

    def jumping(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        start[1:-1] = 1 << 40
        return start, feature, weight

    def negative(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        start[0] = -(1 << 40)
        return start, feature, weight

    def backwards(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        return start, feature[::-1].copy(), weight

    def nan(layer: int, first: int, end: int) -> tuple[Any, Any, Any]:
        start, feature, weight = good(layer, first, end)
        return start, feature, weight * np.float32(np.nan)

    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (starts, jumping, {}, "do not fit"),
        (starts, negative, {}, "do not fit"),
        (starts, backwards, {}, "features that do not rise"),
        (starts, nan, {}, "a weight that is NaN or infinite"),
        ([], good, {}, "at least one layer"),
        ([starts[0], starts[2]], good, {}, r"child_starts\[1\]"),
        ([[0, 3], [0, 2, 2, 4]], good, {}, "expected to start with 0 and to rise"),
        (starts, outside, {}, "name a feature outside"),
        (starts, short, {}, "do not fit"),
        (starts, good, {"weights": "u4"}, "not known"),
    ]
    for given, source, more, message in wrong:
        with pytest.raises(bw.BeamwoodError, match=message):
            stream.write_model(path, given, source, features=50, **more)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(bw.FormatError, match="does not exist"):
        stream.write_model(tmp_path / "no" / "model.bw", starts, good, features=50)


def test_the_bench_of_a_hundred_million_labels_runs_small(tmp_path: Path) -> None:
    """Builds, checks itself against weights made again, measures, and draws; all in seconds."""
    script = Path(__file__).parents[2] / "bench" / "hundred_million.py"
    small = ["--labels", "20000", "--features", "60000", "--queries", "60", "--plot", str(tmp_path / "growth")]
    done = subprocess.run([sys.executable, script, *small], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "the same labels and bits" in done.stdout
    for word in ("paper, binary search MSCM", "cold, online", "column, binary", "lines per query"):
        assert word in done.stdout
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    assert (tmp_path / "growth.svg").stat().st_size > 10_000
