"""Models that the rivals train here and now answer the same in beamwood, and ours answer the same there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.foreign import check_same_answers, from_csr, from_pairs

import beamwood as bw
from beamwood.inputs.data import write_xmc
from beamwood.interop import napkinxc, read, read_text, write
from rivals.homes import ask

pytestmark = pytest.mark.skipif("BEAMWOOD_RIVALS" not in os.environ, reason="make test-rivals")

LABELS, FEATURES, ROWS = 90, 400, 700


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """X.npz (rows of many lengths), Y.npz, test.npz and the same as XMC text."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    Y = sp.csr_matrix(sp.random_array((ROWS, LABELS), density=0.025, rng=rng) > 0).astype(np.float32)
    Y = sp.csr_matrix(Y + sp.csr_matrix(np.eye(LABELS, dtype=np.float32)[rng.integers(0, LABELS, ROWS)]) > 0)
    topics = sp.random_array((LABELS, FEATURES), density=0.04, rng=rng, dtype=np.float32)
    noise = sp.random_array((ROWS, FEATURES), density=0.02, rng=rng, dtype=np.float32)
    X = sp.csr_matrix(Y.astype(np.float32) @ topics + noise, dtype=np.float32)
    X.data *= np.repeat(rng.uniform(0.3, 3, ROWS), np.diff(X.indptr)).astype(np.float32)
    X.sort_indices()
    Y = sp.csr_matrix(Y, dtype=np.float32)
    sp.save_npz(folder / "X.npz", X)
    sp.save_npz(folder / "Y.npz", Y)
    sp.save_npz(folder / "test.npz", X[:300])
    write_xmc(folder / "train.txt", X, Y)
    return folder


def rows_of(data: Path) -> Any:
    return sp.csr_matrix(sp.load_npz(data / "test.npz"), dtype=np.float32)


# --- libpecos ---------------------------------------------------------------------------------------------------------

POSTS = ("l3-hinge", "l1-hinge", "sigmoid", "log-sigmoid", "log-l2-hinge", "noop")
WEIGHTS = ("CSC", "HASH_CHUNKED", "BINARY_SEARCH_CHUNKED")


def pecos_answers(data: Path, tmp_path: Path, folder: Path, beam: int, k: int, post: str, kind: str = "CSC") -> Any:
    given = {"x": data / "test.npz", "folder": folder, "out": tmp_path / "P.npz"}
    ask("libpecos", tmp_path, "predict", **given, beam=beam, k=k, post_processor=post, kind=kind)
    return from_csr(sp.load_npz(tmp_path / "P.npz"), k)


@pytest.mark.parametrize(("branching", "bias"), [(2, 1.0), (8, 0.5), (32, -1.0)])
def test_models_that_libpecos_trains(branching: int, bias: float, data: Path, tmp_path: Path) -> None:
    given = {"x": data / "X.npz", "y": data / "Y.npz", "folder": tmp_path / "m"}
    ask("libpecos", tmp_path, "train", **given, branching=branching, bias=bias)
    found = read(tmp_path / "m")
    X = rows_of(data)
    for beam, k in ((1, 5), (4, 10), (90, 90)):
        theirs = pecos_answers(data, tmp_path, tmp_path / "m", beam, k, "l3-hinge")
        same = check_same_answers(found.model.topk(X, k, beam), theirs)
        print(f"libpecos, branching {branching}, beam {beam}: {same} of {X.shape[0]} rows in the same order")


@pytest.mark.parametrize("post", POSTS)
def test_our_export_predicts_the_same_in_libpecos(post: str, data: Path, tmp_path: Path) -> None:
    X, Y = (sp.csr_matrix(sp.load_npz(data / name)) for name in ("X.npz", "Y.npz"))
    activation = {"noop": "identity", "log-l2-hinge": "log-hinge-2"}.get(post, post)
    if activation.endswith("-hinge"):
        activation = f"hinge-{post[1]}"
    model = bw.train(X, Y, preset="fast", branching=8, max_leaf=8, activation=activation, progress=False)
    write(model, tmp_path / "m", "pecos")
    for beam, k in ((3, 10), (90, 20)):
        for kind in WEIGHTS:
            theirs = pecos_answers(data, tmp_path, tmp_path / "m", beam, k, post, kind)
            check_same_answers(model.topk(rows_of(data), k, beam), theirs)


WORDS = [
    "red",
    "Red",
    "wool",
    "réd",
    "ápple",
    "socks",
    "hat",
    "sun",
    "a",
    "b",
    "c3",
    "x-y",
    "naïve",
    "日本",
    "tab\tbed",
]
BASE = {"ngram_range": [1, 2], "max_df_ratio": 1.0}
VECTORIZERS: dict[str, Any] = {
    "words": BASE,
    "short texts": {**BASE, "truncate_length": 3},
    "characters": {**BASE, "analyzer": "char", "ngram_range": [1, 3]},
    "characters inside words": {**BASE, "analyzer": "char_wb", "ngram_range": [2, 4]},
    "l1, binary": {**BASE, "norm": "l1", "binary": True},
    "sublinear, one added": {**BASE, "sublinear_tf": True, "add_one_idf": True, "smooth_idf": False},
    "no idf, few features": {**BASE, "use_idf": False, "max_feature": 20, "min_df_cnt": 2},
    "several": {
        "base_vect_configs": [{**BASE}, {**BASE, "analyzer": "char", "ngram_range": [2, 3], "max_feature": 60}],
    },
    "several, l1": {"base_vect_configs": [{**BASE, "norm": "l1"}, {**BASE, "analyzer": "char_wb"}], "norm": "l1"},
}


@pytest.mark.parametrize("name", VECTORIZERS)
def test_vectorizers_that_libpecos_trains(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    lines = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(160)]
    lines += ["", "   ", "  Red  wool ", "unknown words", "wool wool wool red", "WOOL", "日本日本 a"]
    (tmp_path / "texts.json").write_text(json.dumps({"train": lines[:120], "test": lines}))
    config = {"type": "tfidf", "kwargs": VECTORIZERS[name]}
    given = {"texts": tmp_path / "texts.json", "folder": tmp_path / "vec", "out": tmp_path / "P.npz"}
    ask("libpecos", tmp_path, "vectorize", **given, config=config)
    theirs = sp.csr_matrix(sp.load_npz(tmp_path / "P.npz"))
    theirs.sort_indices()
    ours = read_text(tmp_path / "vec").text.transform(lines)
    assert ours.shape == theirs.shape
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.abs(ours.data - theirs.data).max() < 1e-6


# --- napkinXC ---------------------------------------------------------------------------------------------------------

PLTS: dict[str, dict[str, Any]] = {
    "logistic": {"loss": "log"},
    "squared hinge": {"loss": "l2"},
    "wide": {"loss": "l2", "arity": 8, "max_leaves": 20},
    "huffman": {"loss": "log", "tree_type": "huffman", "arity": 4},
    "rows as they are": {"loss": "log", "norm": False, "bias": 2.0, "tree_type": "balancedRandom"},
    "three trees": {"loss": "log", "ensemble": 3, "max_leaves": 10},
}


def napkin_answers(data: Path, tmp_path: Path, folder: Path, k: int, **how: Any) -> Any:
    """Its mean of several trees takes the best k of each alone: of those it is asked for all labels."""
    asked = LABELS if how.get("ensemble", 1) > 1 else k
    ask("napkinxc", tmp_path, "predict", x=data / "test.npz", folder=folder, out=tmp_path / "P.json", k=asked, **how)
    return from_pairs(json.loads((tmp_path / "P.json").read_text()), k)


@pytest.mark.parametrize("name", PLTS)
def test_models_that_napkinxc_trains(name: str, data: Path, tmp_path: Path) -> None:
    ask("napkinxc", tmp_path, "train", x=data / "X.npz", y=data / "Y.npz", folder=tmp_path / "m", **PLTS[name])
    X = rows_of(data)
    model = napkinxc.read(tmp_path / "m", X.shape[1]).model
    told = {name: value for name, value in PLTS[name].items() if name in ("norm", "bias", "ensemble")}
    theirs = napkin_answers(data, tmp_path, tmp_path / "m", 10, **told)
    how: dict[str, Any] = {"exact": True} if model.info()["trees"] == 1 else {"beam": 1000}
    same = check_same_answers(model.topk(X, 10, **how), theirs)
    print(f"napkinXC, {name}: {same} of {X.shape[0]} rows in the same order")


@pytest.mark.parametrize(("activation", "trees"), [("sigmoid", 1), ("hinge-2", 1), ("sigmoid", 2)])
def test_our_export_predicts_the_same_in_napkinxc(activation: str, trees: int, data: Path, tmp_path: Path) -> None:
    X, Y = (sp.csr_matrix(sp.load_npz(data / name)) for name in ("X.npz", "Y.npz"))
    form: dict[str, Any] = {"activation": activation, "trees": trees, "branching": 8, "max_leaf": 8}
    model = bw.train(X, Y, preset="fast", progress=False, **form)
    write(model, tmp_path / "m", "napkinxc")
    how: dict[str, Any] = {"exact": True} if trees == 1 else {"beam": 1000}
    theirs = napkin_answers(data, tmp_path, tmp_path / "m", 10, norm=False, ensemble=trees)
    check_same_answers(model.topk(rows_of(data), 10, **how), theirs)


# --- omikuji ----------------------------------------------------------------------------------------------------------

FORESTS: dict[str, dict[str, Any]] = {
    "hinge": {"loss": "HINGE", "min_branch_size": 12},
    "log": {"loss": "LOG", "min_branch_size": 12, "n_trees": 2},
    "one uneven tree": {"loss": "HINGE", "min_branch_size": 8, "n_trees": 1, "cluster_balanced": False, "cluster_k": 5},
    "collapsed layers": {"loss": "HINGE", "min_branch_size": 6, "collapse_every_n_layers": 2},
}


def omikuji_answers(data: Path, tmp_path: Path, folder: Path, beam: int, k: int) -> Any:
    given = {"x": data / "test.npz", "folder": folder, "out": tmp_path / "P.json"}
    ask("omikuji", tmp_path, "predict", **given, beam=beam, k=k)
    return from_pairs(json.loads((tmp_path / "P.json").read_text()), k)


@pytest.mark.parametrize("name", FORESTS)
def test_models_that_omikuji_trains(name: str, data: Path, tmp_path: Path) -> None:
    ask("omikuji", tmp_path, "train", data=data / "train.txt", folder=tmp_path / "m", **FORESTS[name])
    found = read(tmp_path / "m")
    X = rows_of(data)
    for beam in (found.found["largest_leaf"], 100):
        theirs = omikuji_answers(data, tmp_path, tmp_path / "m", beam, 5)
        same = check_same_answers(found.model.topk(X, 5, beam), theirs)
        print(f"omikuji, {name}, beam {beam}: {same} of {X.shape[0]} rows in the same order")


@pytest.mark.parametrize("activation", ["hinge-2", "sigmoid"])
def test_our_export_predicts_the_same_in_omikuji(activation: str, data: Path, tmp_path: Path) -> None:
    X, Y = (sp.csr_matrix(sp.load_npz(data / name)) for name in ("X.npz", "Y.npz"))
    form: dict[str, Any] = {"activation": activation, "trees": 2, "branching": 4, "max_leaf": 8}
    model = bw.train(X, Y, preset="fast", progress=False, **form).with_unit_rows()
    write(model, tmp_path / "m", "omikuji")
    for beam in (8, 100):
        theirs = omikuji_answers(data, tmp_path, tmp_path / "m", beam, 5)
        check_same_answers(model.topk(rows_of(data), 5, beam), theirs)


# --- LibMultiLabel ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "trees"), [("-s 1 -B 1 -e 0.1 -q", 1), ("-s 2 -q", 1), ("-s 1 -B 1 -q", 2)])
def test_trees_of_libmultilabel_in_process(options: str, trees: int, data: Path, tmp_path: Path) -> None:
    given = {"x": data / "X.npz", "y": data / "Y.npz", "out": tmp_path / "P.npz"}
    beams = [2, 5, 100]
    ask("libmultilabel", tmp_path, "compare", **given, beams=beams, options=options, trees=trees, K=6, dmax=4)
    with np.load(tmp_path / "P.npz") as found:
        assert found["depth"] >= 3
        for beam in beams:
            ours, theirs = found[f"ours_{beam}"], found[f"theirs_{beam}"]
            assert np.abs(ours - theirs).max() < 1e-5, beam
