"""What people get wrong, one line each: an error of ours that says what was found, what was expected and what to do."""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file
from support.models import small_model, small_queries, sparse, two_layers

import beamwood as bw

Change = Callable[[Any], Any]


def edited(X: Any, field: str, change: Change) -> Any:
    """A matrix with one of its arrays replaced behind scipy's back."""
    X = X.copy()
    setattr(X, field, change(getattr(X, field)))
    return X


def with_value(value: float, dtype: Any = np.float32) -> Any:
    """Queries with one odd value."""
    X = small_queries().astype(dtype)
    X.data[5] = value
    return X


def put(at: int, value: float) -> Change:
    """Replaces one entry of an array."""

    def change(array: Any) -> Any:
        array = array.copy()
        array[at] = value
        return array

    return change


def wild_coo() -> Any:
    """Coordinates changed after scipy looked at them."""
    X = small_queries().tocoo()
    X.coords[1][3] = 10**8
    return X


QUERIES: dict[str, tuple[Callable[[], Any], str]] = {
    "too many columns": (lambda: sparse(3, 51, 0.5, 0), r"51 columns; expected 50, the features of the model. Make"),
    "too few columns": (lambda: sparse(3, 49, 0.5, 0), r"49 columns; expected 50, the features of the model. Make"),
    "a vector of the wrong length": (lambda: np.ones(51), r"51 columns; expected 50"),
    "three dimensions": (lambda: np.ones((1, 1, 50)), r"3 dimensions; expected 2. Give one row per query"),
    "a number": (lambda: 7.0, r"X is a float; expected a scipy sparse matrix or a real array"),
    "complex values": (lambda: small_queries().astype(complex), r"complex128; expected real numbers. Convert"),
    "dense complex values": (lambda: np.ones((1, 50), complex), r"complex128; expected real"),
    "objects": (lambda: np.array([[None] * 50]), r"object.*; expected a scipy sparse matrix or a real array"),
    "strings": (lambda: [["a"] * 50], r"a list of texts; expected .* Texts go to search_many"),
    "ragged lists": (lambda: [[1.0] * 50, [1.0]], r"rows that differ in length.*; expected"),
    "None": (lambda: None, r"NoneType; expected"),
    "overflow": (
        lambda: with_value(1e39, np.float64),
        r"1e\+39; expected .* float32 can hold. Scale",
    ),
    "dense overflow": (lambda: np.full((1, 50), -1e39), r"-1e\+39; expected numbers that float32 can hold. Scale"),
    "NaN": (lambda: with_value(np.nan), r"has nan in row \d+, column \d+; expected finite numbers. Look for"),
    "infinity": (lambda: with_value(np.inf), r"has inf in row \d+, column \d+; expected finite numbers. Look for"),
    "float64 NaN": (lambda: with_value(np.nan, np.float64), r"has nan in row"),
    "dense NaN": (lambda: np.full((2, 50), np.nan), r"has nan in row 0, column 0"),
    "an index too large": (
        lambda: edited(small_queries(), "indices", put(3, 50)),
        r"column 50; expected columns 0 to 49. Rebuild",
    ),
    "an index below zero": (
        lambda: edited(small_queries(), "indices", put(3, -1)),
        r"column -1; expected columns 0 to 49. Rebuild",
    ),
    "offsets that fall": (
        lambda: edited(small_queries(), "indptr", put(2, 9999)),
        r"indptr of .*; expected 8 .*Rebuild",
    ),
    "negative offsets": (
        lambda: edited(small_queries(), "indptr", put(1, -5)),
        r"indptr of .*; expected 8 .*Rebuild",
    ),
    "too few values": (
        lambda: edited(small_queries(), "data", lambda a: a[:-1]),
        r"indptr of .*; expected 8 .*Rebuild",
    ),
    "too few ids": (
        lambda: edited(small_queries(), "indices", lambda a: a[:-1]),
        r"indptr of .*; expected 8 .*Rebuild",
    ),
    "no offsets": (
        lambda: edited(small_queries(), "indptr", lambda a: a[:0]),
        r"indptr of .*; expected 8 .*Rebuild",
    ),
    "a wild CSC": (lambda: edited(small_queries().tocsc(), "indices", put(3, 10**8)), r"100000000; expected .*Rebuild"),
    "a wild COO": (wild_coo, r"100000000; expected .*Rebuild"),
    "a wild row": (
        lambda: edited(sp.csr_array(np.ones(50, np.float32)), "indices", put(0, 10**8)),
        r"100000000; expected .*Rebuild",
    ),
    "ids that are no integers": (
        lambda: edited(small_queries(), "indices", lambda a: a + 0.5),
        r"float64; expected integers",
    ),
}


@pytest.mark.filterwarnings("ignore:.*array has non-integer dtype")
@pytest.mark.parametrize("case", QUERIES)
def test_bad_queries_are_a_data_error(case: str) -> None:
    make, message = QUERIES[case]
    for model in (small_model(), small_model().using(layout="column", matcher="dense")):
        for ask in (model.topk, model.predict):
            with pytest.raises(bw.DataError, match=message):
                ask(make())


def test_unsorted_and_doubled_ids_are_made_canonical_silently() -> None:
    model = bw.Model.from_layers(two_layers(), activation="identity")
    ids, values = np.array([7, 3, 7, 1]), np.array([1, 2, 3, 4], np.float32)
    X = sp.csr_array((values, ids, np.array([0, 4])), shape=(1, 50))
    clean = sp.csr_array((np.array([4, 2, 4], np.float32), np.array([1, 3, 7]), np.array([0, 3])), shape=(1, 50))
    for matcher in ("march", "binary", "hash", "dense", "auto"):
        one = model.using(matcher=matcher)
        laws.check_same(one.topk(X), one.topk(clean), matcher)
    assert ids.tolist() == [7, 3, 7, 1]
    assert values.tolist() == [1, 2, 3, 4]
    assert X.nnz == 4


@pytest.mark.parametrize("name", ["k", "beam", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True, 2**40, float("nan")])
def test_a_count_that_is_no_count_is_a_settings_error(name: str, value: Any) -> None:
    if name == "beam" and value is None:  # the model's own
        return
    with pytest.raises(
        bw.SettingsError, match=rf"{name} is {re.escape(repr(value))}; expected a whole number from 1 to"
    ):
        small_model().topk(small_queries(), **{name: value})


@pytest.mark.parametrize("name", ["k", "beam", "threads"])
def test_a_count_may_be_a_numpy_integer(name: str) -> None:
    laws.check_same(
        small_model().topk(small_queries(), **{name: np.int16(3)}), small_model().topk(small_queries(), **{name: 3})
    )


def test_a_hundred_thousand_threads_are_refused_or_harmless() -> None:
    model = small_model()
    X = small_queries(5000)
    try:
        found = model.topk(X, threads=100_000)
    except bw.SettingsError:
        return
    laws.check_same(found, model.topk(X))


def layers_with(**more: Any) -> list[bw.Layer]:
    """Two layers, the second one changed."""
    top, below = two_layers()
    fields = {"weights": below.weights, "parent": below.parent, "bias": below.bias, "label": below.label} | more
    return [top, bw.Layer(**fields)]


def bad_weights(change: Callable[[Any], Any]) -> list[bw.Layer]:
    """Two layers, the weights of the second changed."""
    return layers_with(weights=change(two_layers()[1].weights))


ONES = np.ones(40)
LAYERS: dict[str, tuple[Callable[[], Any], str]] = {
    "no layers": (lambda: [], r"list of layers is empty; expected at least one"),
    "lists as weights": (
        lambda: bad_weights(lambda w: w.toarray().tolist()),
        r"layer 1 are a list; expected a scipy sparse matrix or a numpy array",
    ),
    "dense weights of one dimension": (
        lambda: [bw.Layer(np.ones(3), np.zeros(1, int))],
        r"expected .* a numpy array with two dimensions",
    ),
    "one-dimensional weights": (
        lambda: [bw.Layer(sp.coo_array([1.0]), np.zeros(1, int))],
        r"expected a scipy sparse matrix",
    ),
    "other features": (lambda: bad_weights(lambda w: w[:49]), r"have 49 rows; expected 50, one per feature"),
    "no nodes": (lambda: layers_with(weights=sparse(50, 0, 0, 0), parent=ONES[:0]), r"no nodes; .*Leave the layer out"),
    "complex weights": (lambda: bad_weights(lambda w: w.astype(complex)), r"complex128; expected real numbers"),
    "weights that overflow": (lambda: bad_weights(lambda w: w.astype(float) * 1e39), r"float32 can hold. Scale"),
    "NaN weights": (lambda: bad_weights(lambda w: w * np.float32(np.nan)), r"weights of layer 1 has nan"),
    "infinite weights": (lambda: bad_weights(lambda w: w * np.float32(np.inf)), r"inf .*expected finite numbers"),
    "weights with wild ids": (lambda: bad_weights(lambda w: edited(w, "indices", put(3, 70))), r"Rebuild"),
    "weights with wild offsets": (lambda: bad_weights(lambda w: edited(w, "indptr", put(3, 9999))), r"Rebuild"),
    "a parent beyond the layer above": (
        lambda: layers_with(parent=two_layers()[1].parent + 1),
        r"layer 1 names parent 6; expected a node of the layer above, 0 to 5",
    ),
    "a parent below zero": (
        lambda: layers_with(parent=two_layers()[1].parent - 1),
        r"names parent -1; expected",
    ),
    "too few parents": (
        lambda: layers_with(parent=two_layers()[1].parent[:39]),
        r"parents of layer 1 have shape \(39,\) .*; expected 40 integers",
    ),
    "float parents": (lambda: layers_with(parent=np.zeros(40)), r"dtype float64; expected 40 integers, one per node"),
    "an inner node without children": (
        lambda: layers_with(parent=np.zeros(40, int)),
        r"Node 1 of layer 0 is an inner node without children; expected .* Give it a label or children",
    ),
    "a last layer of inner nodes": (lambda: layers_with(label=-ONES.astype(int)), r"inner node without children"),
    "a label on a node with children": (
        lambda: [bw.Layer(two_layers()[0].weights, np.zeros(6, int), label=np.arange(6)), two_layers()[1]],
        r"has label 0 and children; expected a label on leaves only",
    ),
    "a label given twice": (
        lambda: layers_with(label=np.arange(40) // 2 * 2),
        r"label 0 is given twice, and 20 labels are missing; expected each on one leaf",
    ),
    "a label missing": (lambda: layers_with(label=np.arange(40) + 1), r"largest label is 40.*0 to 39 without a gap"),
    "a huge label": (lambda: layers_with(label=np.r_[:39, 4_000_000_000]), r"largest label is 4000000000"),
    "a label beyond 32 bits": (lambda: layers_with(label=np.r_[:39, 2**40]), r"has label 1099511627776; expected 0"),
    "a label below -1": (lambda: layers_with(label=np.r_[:39, -2]), r"has label -2; expected 0 or above, or -1"),
    "float labels": (lambda: layers_with(label=ONES), r"labels .* dtype float64; expected 40 integers, one per node"),
    "too few labels": (lambda: layers_with(label=np.arange(39)), r"labels of layer 1 have shape \(39,\)"),
    "a NaN bias": (
        lambda: layers_with(bias=ONES * np.nan),
        r"bias of layer 1 is NaN for node 0; expected numbers",
    ),
    "too few biases": (
        lambda: layers_with(bias=ONES[:39]),
        r"bias of layer 1 has shape \(39,\); expected 40",
    ),
    "a bias that overflows": (lambda: layers_with(bias=ONES * 1e39), r"bias of layer 1 .*float32 can hold. Scale"),
    "complex biases": (
        lambda: layers_with(bias=ONES + 1j),
        r"bias of layer 1 has dtype complex128; expected",
    ),
}


@pytest.mark.parametrize("case", LAYERS)
def test_bad_layers_are_a_data_error(case: str) -> None:
    make, message = LAYERS[case]
    with pytest.raises(bw.DataError, match=message):
        bw.Model.from_layers(make())


def write_zip(path: Path) -> None:
    """A zip archive."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", "{}")


def write_cut(path: Path) -> None:
    """A model without its last byte."""
    small_model().save(path)
    path.write_bytes(path.read_bytes()[:-1])


def write_flipped(path: Path) -> None:
    """A model with one bit of its header turned."""
    small_model().save(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"features") + 3] ^= 1
    path.write_bytes(data)


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda path: path.write_bytes(b""), r"is empty; expected a beamwood model. Get a fresh copy"),
    "a folder": (lambda path: path.mkdir(), r"is a folder. A beamwood model is one file, for example"),
    "a text": (lambda path: path.write_text("hello " * 100), r"is not a beamwood model: .*convert it first"),
    "a few bytes": (lambda path: path.write_bytes(b"\x01"), r"is not a beamwood model: .*convert it first"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps({"a": [1] * 99})), r"is not a beamwood model: .*convert"),
    "a zip archive": (write_zip, r"is not a beamwood model: .*convert it first"),
    "another program's safetensors": (
        lambda path: save_file({"weight": np.ones(4)}, path),
        r"not a beamwood model.*convert it first",
    ),
    "its safetensors with metadata": (
        lambda path: save_file({"weight": np.ones(4)}, path, {"format": "pt"}),
        r"is a safetensors file, but not a beamwood model. .*convert it first",
    ),
    "cut short": (write_cut, r"is damaged or cut short at .*bytes are there. Get a fresh copy of the file"),
    "flipped in the header": (write_flipped, r"is damaged: .*Get a fresh copy of the file"),
}


@pytest.mark.parametrize("memory", ["map", "read", "huge"])
@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_a_format_error(case: str, memory: str, tmp_path: Path) -> None:
    make, message = FILES[case]
    path = tmp_path / "model.bw"
    make(path)
    with pytest.raises(bw.FormatError, match=message) as caught:
        bw.load(path, memory=memory)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("memory", ["map", "read", "huge"])
def test_a_file_that_is_not_there_is_an_error_of_its_own_kind(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    with pytest.raises(bw.MissingFileError, match=r": there is no such file. Check the path") as caught:
        bw.load(path, memory=memory)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, bw.BeamwoodError)
    assert not isinstance(caught.value, bw.FormatError)
    carried = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, carried):
        assert (str(error), error.filename) == (f"{path}: there is no such file. Check the path.", str(path))


def test_a_flip_in_the_weights_is_found_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    small_model().save(path)
    data = bytearray(path.read_bytes())
    data[-400] ^= 4
    path.write_bytes(data)
    bw.load(path)
    with pytest.raises(bw.FormatError, match=r"the checksum of .* does not match. Get a fresh copy"):
        bw.load(path, verify=True)


def test_a_file_we_may_not_read_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    small_model().save(path)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(bw.FormatError, match=r"Permission denied. Check the path"):
            bw.load(path)


def test_a_name_with_a_zero_byte_is_a_format_error() -> None:
    with pytest.raises(bw.FormatError):
        bw.load("a\0b")
    with pytest.raises(bw.FormatError):
        small_model().save("a\0b")
