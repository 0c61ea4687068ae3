"""Claims about trees given as dense arrays: they are the trees of the same numbers as sparse matrices, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood import reference

FEATURES, GROUPS, LABELS = 12, 6, 90


def arrays(seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """The weights of two layers, with some zeros among them."""
    rng = np.random.default_rng(seed)
    found = [rng.standard_normal((FEATURES, nodes)).astype(np.float32) for nodes in (GROUPS, LABELS)]
    for each in found:
        each[rng.random(each.shape) < 0.1] = 0
    return found


def model_of(weights: list[Any], bias: bool = True) -> bw.Model:
    parents = [np.zeros(GROUPS, int), np.random.default_rng(1).integers(0, GROUPS, LABELS)]
    biases = [np.linspace(-1, 1, len(each)).astype(np.float32) if bias else None for each in parents]
    return bw.Model.from_layers([bw.Layer(*each) for each in zip(weights, parents, biases, strict=True)])


def queries(rows: int = 40) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(2)
    found = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    found[rng.random(found.shape) < 0.1] = 0
    found[3] = 0
    return found


def test_dense_arrays_answer_as_the_reference_in_every_layout(tmp_path: Path) -> None:
    dense, X = arrays(), queries()
    model = model_of(dense)
    expected = reference.topk([model.layers()], sp.csr_array(X), bw.Activation.parse("sigmoid"), k=7, beam=3)
    model.save(tmp_path / "m.bw")
    for each in (model, bw.load(tmp_path / "m.bw"), model_of([sp.csc_array(part) for part in dense])):
        for layout in ("cascade", "chunk", "column"):
            for threads in (1, 3):
                labels, scores = each.using(layout=layout).topk(X, 7, 3, threads)
                np.testing.assert_array_equal(labels, expected[0])
                np.testing.assert_array_equal(scores, expected[1])


def test_zeros_are_stored_and_come_back() -> None:
    dense = arrays()
    for layer, given in zip(model_of(dense).layers(), dense, strict=True):
        assert layer.weights.nnz == given.size
        np.testing.assert_array_equal(layer.weights.toarray(), given)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda w: w.astype(np.float64),
        lambda w: np.repeat(w, 2, axis=1)[:, ::2],
        lambda w: w[::-1][::-1],
        lambda w: w.astype(">f4"),
    ],
)
def test_the_order_of_memory_and_the_type_of_numbers_change_nothing(form: Callable[[Any], Any]) -> None:
    dense = arrays()
    assert model_of([form(each) for each in dense]).version == model_of(dense).version


@pytest.mark.parametrize(
    ("form", "match"),
    [
        (lambda w: np.where(np.arange(w.shape[1]) == 2, np.nan, w), "has nan in row 0, column 2; expected finite"),
        (lambda w: w[:-1], "have 11 rows; expected 12"),
        (lambda w: w.reshape(-1), "expected a scipy sparse matrix or a numpy array with two dimensions"),
        (lambda w: w[:, :0], "has no nodes"),
        (lambda w: w.astype(complex), "complex"),
        (lambda w: np.full(w.shape, 1e300), "float32"),
        (lambda w: w.astype(str), "texts"),
        (lambda w: w.tolist(), "are a list; expected a scipy sparse matrix or a numpy array"),
        (lambda w: np.ma.masked_array(w, w > 1), "masked"),
    ],
)
def test_what_is_no_layer_is_refused(form: Callable[[Any], Any], match: str) -> None:
    dense = arrays()
    with pytest.raises(bw.DataError, match=match):
        model_of([dense[0], form(dense[1])])


@pytest.mark.parametrize("kind", ["f16", "u8"])
def test_dense_trees_compress_to_numbers_that_every_layout_agrees_on(kind: str) -> None:
    small, X = model_of(arrays()).compress(kind), queries()
    expected = reference.topk([small.layers()], sp.csr_array(X), bw.Activation.parse("sigmoid"), k=5, beam=4)
    for layout in ("cascade", "chunk", "column"):
        np.testing.assert_array_equal(small.using(layout=layout).topk(X, 5, 4)[1], expected[1])
