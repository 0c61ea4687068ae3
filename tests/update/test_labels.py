"""Models and labels that come and go in: what stays keeps its bits, keys and numbers are as said, out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.problems import random_problem

import beamwood as bw

LABELS, NEW = 60, 12
KINDS: dict[str, dict[str, Any]] = {
    "fast": {"preset": "fast", "branching": 4, "max_leaf": 4},
    "one layer": {"preset": "fast", "branching": 128, "max_leaf": 128},
    "wide trees": {"preset": "balanced", "branching": 6, "max_leaf": 4, "lexical": False},
    "words": {"preset": "balanced", "branching": 6, "max_leaf": 4, "lexical": True, "trees": 2},
    "logistic": {"preset": "fast", "branching": 4, "max_leaf": 8, "loss": "logistic", "activation": "sigmoid"},
}


@pytest.fixture(scope="module")
def problem() -> tuple[Any, Any]:
    X, Y = random_problem(900, 80, LABELS + NEW, seed=11)
    X = abs(sp.csr_matrix(X))
    return X, sp.csr_matrix(Y)


@pytest.fixture(scope="module", params=list(KINDS))
def old(request: pytest.FixtureRequest, problem: tuple[Any, Any]) -> bw.Model:
    X, Y = problem
    keys = [f"label {i}" for i in range(LABELS)]
    has = np.diff(sp.csr_matrix(Y[:, :LABELS]).indptr) > 0
    return bw.train(X[has], Y[has][:, :LABELS], progress=False, keys=keys, **KINDS[request.param])


def grown(old: bw.Model, problem: tuple[Any, Any], **how: Any) -> bw.Model:
    X, Y = problem
    has = np.diff(sp.csr_matrix(Y[:, LABELS:]).indptr) > 0
    return old.add_labels(X[has], Y[has], keys=[f"new {i}" for i in range(NEW)], **how)


def test_old_labels_keep_their_bits_and_the_beam_goes_the_same_way(old: bw.Model, problem: tuple[Any, Any]) -> None:
    """The law: without words, answers with new labels left out are those of the old model, bit for bit."""
    model, X = grown(old, problem), problem[0]
    assert model.n_labels == LABELS + NEW
    assert model.key(LABELS) == "new 0"
    assert model.key(3) == "label 3"
    if old.info()["lexical"] is not None and old.info()["lexical"]["kept"]:
        return
    for beam in (1, 3, 10):
        before = old.topk(X, k=7, beam=beam)
        labels, scores = model.topk(X, k=7 + NEW, beam=beam)
        for row in range(X.shape[0]):
            stays = (labels[row] >= 0) & (labels[row] < LABELS)
            count = min(int(stays.sum()), int((before[0][row] >= 0).sum()))
            assert labels[row][stays][:count].tolist() == before[0][row][:count].tolist()
            assert scores[row][stays][:count].tobytes() == before[1][row][:count].tobytes()
    every = np.broadcast_to(np.arange(LABELS), (X.shape[0], LABELS)).copy()
    assert model.score(X, every).tobytes() == old.score(X, every).tobytes()


def test_added_and_removed_again_is_the_same_file(old: bw.Model, problem: tuple[Any, Any], tmp_path: Path) -> None:
    model = grown(old, problem).remove_labels([f"new {i}" for i in range(NEW)])
    model.save(tmp_path / "again.bw")
    old.save(tmp_path / "old.bw")
    assert (tmp_path / "again.bw").read_bytes() == (tmp_path / "old.bw").read_bytes()


def test_removing_is_denying_for_ever(old: bw.Model, problem: tuple[Any, Any]) -> None:
    """The law: answers are those of a filter that leaves the removed labels out, where there are k of them."""
    gone = [f"label {i}" for i in range(0, LABELS, 3)]
    model, X = old.remove_labels(gone), problem[0]
    stays = np.flatnonzero([key not in gone for key in map(old.key, range(LABELS))])
    if old.info()["lexical"] is not None and old.info()["lexical"]["kept"]:
        every = np.broadcast_to(np.arange(len(stays)), (X.shape[0], len(stays))).copy()
        assert np.isfinite(model.score(X, every)).all()
        return
    labels, scores = model.topk(X, k=3, beam=10)
    kept, expected = old.topk(X, k=3, beam=10, filter=old.filter(deny=gone))
    full = (labels >= 0).all(axis=1)
    assert full.any()
    assert stays[labels[full]].tolist() == kept[full].tolist()
    assert scores[full].tobytes() == expected[full].tobytes()


def test_any_number_of_threads_and_a_mapped_file_give_the_same_model(
    old: bw.Model, problem: tuple[Any, Any], tmp_path: Path
) -> None:
    old.save(tmp_path / "old.bw")
    mapped = bw.load(tmp_path / "old.bw")
    assert grown(old, problem, threads=1).version == grown(mapped, problem, threads=3).version


def test_new_labels_are_found(problem: tuple[Any, Any]) -> None:
    texts = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("hat", "sock", "boot", "scarf")]
    labels = [text.split() for text in texts]
    without = [[key for key in keys if key != "scarf"] for keys in labels]
    for kind in ("fast", "balanced"):
        model = bw.train_text(texts, without, preset=kind, progress=False)
        rows = [i for i, keys in enumerate(labels) if "scarf" in keys]
        added = model.add_labels([texts[i] for i in rows], [labels[i] for i in rows], names={"scarf": "A scarf"})
        assert "scarf" in [hit.key for hit in added.search("green scarf", k=2)]
        assert "scarf" not in [hit.key for hit in added.search("red hat", k=2)]
        assert added.name(added.label_of("scarf") or 0) == "A scarf"


def test_a_label_with_only_a_text_is_found() -> None:
    texts, labels = ["red hat", "blue hat", "red sock", "warm sock"], [["hat"], ["hat"], ["sock"], ["sock"]]
    for lexical in (False, True):
        model = bw.train_text(texts, labels, preset="fast", lexical=lexical, progress=False)
        added = model.add_labels(texts={"warmer": "warm warm thing"})
        assert "warmer" in [hit.key for hit in added.search("warm", k=3)], lexical


def test_counts_cuts_and_shares_are_kept(problem: tuple[Any, Any], tmp_path: Path) -> None:
    X, Y = problem
    known = np.diff(sp.csr_matrix(Y[:, :LABELS]).indptr) > 0
    model = bw.train(X[known], Y[known][:, :LABELS], "fast", branching=4, max_leaf=4, progress=False)
    model = model.calibrate(X, Y[:, :LABELS]).cut(X, Y[:, :LABELS], per="label")
    has = np.diff(sp.csr_matrix(Y[:, LABELS:]).indptr) > 0
    added = model.add_labels(X[has], Y[has][:, LABELS:])
    assert added.is_calibrated
    assert added.threshold == model.threshold
    assert added.rows_of_label is not None
    assert model.rows_of_label is not None
    assert added.rows_of_label[:LABELS].tolist() == model.rows_of_label.tolist()
    assert added.info()["updates"] == {
        "trained": LABELS,
        "added": NEW,
        "removed": 0,
        "share_added": NEW / (LABELS + NEW),
    }
    fewer = added.remove_labels([0, 1, LABELS + 3])
    assert fewer.info()["updates"]["added"] == NEW - 1
    assert fewer.info()["updates"]["removed"] == 2
    fewer.save(tmp_path / "fewer.bw")
    loaded = bw.load(tmp_path / "fewer.bw", verify=True)
    assert loaded.info()["updates"] == fewer.info()["updates"]
    assert model.info()["updates"] is None
    assert (loaded.topk(X, k=5, threshold=True)[0] < loaded.n_labels).all()


def test_retrain_keeps_trees_and_learns_new_rows(old: bw.Model, problem: tuple[Any, Any]) -> None:
    X, Y = problem
    model = old.retrain(X, Y, keys=[f"new {i}" for i in range(NEW)], progress=False)
    assert model.n_labels == LABELS + NEW
    assert model.info()["updates"] is None
    for tree in range(len(old.parts.shape.trees)):
        kept, fresh = old.layers(tree), model.layers(tree)
        assert [len(a.parent) for a in kept][:-1] == [len(b.parent) for b in fresh][:-1] or len(kept) == len(fresh)
    found = model.evaluate(X, Y)
    assert found.precision[1] > 0.3
    has = np.diff(sp.csr_matrix(Y[:, :LABELS]).indptr) > 0
    again = old.retrain(X[has], Y[has][:, :LABELS], progress=False)
    assert again.n_labels == LABELS


def foreign(bias: bool) -> bw.Model:
    dice = np.random.default_rng(3)
    top = sp.random(20, 3, 0.5, "csc", np.float32, dice)
    last = sp.random(20, 9, 0.5, "csc", np.float32, dice)
    given = [np.zeros(n, np.float32) if bias else None for n in (3, 9)]
    layers = [bw.Layer(top, np.zeros(3, int), given[0]), bw.Layer(last, np.arange(9) // 3, given[1])]
    return bw.Model.from_layers(layers, activation="log-sigmoid")


@pytest.mark.parametrize("bias", [False, True])
def test_models_that_were_made_elsewhere(bias: bool) -> None:
    model = foreign(bias)
    rows = sp.random(6, 20, 0.4, "csr", np.float32, np.random.default_rng(4))
    added = model.add_labels(rows, np.eye(6, 2) + np.eye(6, 2, -2) + np.eye(6, 2, -4))
    assert added.n_labels == 11
    assert added.key(10) == "10"
    assert added.remove_labels([9, 10]).version == model.version
    with pytest.raises(bw.SettingsError, match="made elsewhere"):
        added.retrain(rows, np.ones((6, 11)))


def test_retrain_with_a_column_per_label_adds_no_label(problem: tuple[Any, Any]) -> None:
    X, Y = problem
    model = bw.train(X[:600], Y[:600], "fast", progress=False)  # labels have numbers, not keys
    more = model.retrain(X, Y, progress=False)
    assert more.n_labels == model.n_labels == Y.shape[1]
    wider = model.retrain(X, sp.csr_matrix(sp.hstack([Y, Y[:, :2]])), progress=False)
    assert wider.n_labels == model.n_labels + 2
    with pytest.raises(bw.DataError, match="at least, one per label of the model"):
        model.retrain(X, Y[:, :3], progress=False)


def test_a_tree_may_lose_whole_branches() -> None:
    model = foreign(True)
    fewer = model.remove_labels([0, 1, 2, 5])
    assert [len(layer.parent) for layer in fewer.layers()] == [2, 5]
    one = model.remove_labels(range(1, 9))
    assert one.n_labels == 1
    assert one.topk(np.ones((1, 20), np.float32), k=1)[0].tolist() == [[0]]


def test_what_cannot_be_meant_is_refused(problem: tuple[Any, Any]) -> None:
    texts, labels = ["red hat", "blue sock"], [["hat"], ["sock"]]
    model = bw.train_text(texts, labels, preset="fast", progress=False)
    plain = bw.train(problem[0], problem[1], "fast", progress=False)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: model.add_labels(texts, labels), "no new label"),
        (lambda: model.add_labels(texts, [["a"], ["b"]], keys=["a"]), "'b' is neither"),
        (lambda: model.add_labels(texts, [["a"], ["a"]], keys=["a", "hat"]), "already"),
        (lambda: model.add_labels(texts, [["a"], ["a"]], keys=["a", "a"]), "twice"),
        (lambda: model.add_labels(texts, [["a"], ["a"]], keys=["a", "b"]), "'b' first"),
        (lambda: model.add_labels(texts, [["a"]]), "1 rows and X 2"),
        (lambda: model.add_labels(texts={"hat": "x"}), "already"),
        (lambda: model.add_labels(texts={"a": "zzz"}), "no text with a word"),
        (model.add_labels, "neither rows nor texts"),
        (lambda: model.add_labels(texts), "Y is missing"),
        (lambda: model.add_labels(np.ones((2, 9)), [["a"], ["a"]]), "9 columns"),
        (lambda: model.add_labels(texts, np.ones((2, 5)), keys=["a"]), "5 columns"),
        (lambda: plain.add_labels(texts, [["a"], ["a"]]), "trained from numbers"),
        (lambda: plain.add_labels(problem[0], np.ones((900, 1)), keys=["a"]), "by their numbers"),
        (lambda: model.add_labels(texts, [["a"], ["a"]], names={"hat": "x"}), "no new label"),
        (lambda: model.remove_labels(["hat", "sock"]), "all 2 labels"),
        (lambda: model.remove_labels(["none"]), "'none' is no label's key"),
        (lambda: model.remove_labels("hat"), "is a str"),
        (lambda: model.remove_labels([]), "is empty"),
        (lambda: model.rename({"none": "x"}), "'none' is no label's key"),
        (lambda: model.rename({"hat": 3}), "is a int"),  # type: ignore[dict-item]
        (lambda: bw.index(sp.eye(4, format="csr")).remove_labels([1]), "index"),
        (lambda: model.compress("u8").remove_labels(["hat"]), "u8 weights"),
    ]
    for call, said in refused:
        with pytest.raises(bw.BeamwoodError, match=said):
            call()


def test_huge_keys_and_many_labels_in_one_place() -> None:
    model = bw.train_text(["red hat", "blue sock"], [["hat"], ["sock"]], preset="fast", progress=False)
    keys = [f"{'x' * 100_000}{i}" for i in range(3)] + [f"k{i}" for i in range(300)]
    added = model.add_labels(["red hat"] * len(keys), [[key] for key in keys])
    assert added.n_labels == 2 + len(keys)
    assert added.label_of(keys[0]) is not None
    assert added.remove_labels(keys).version == model.version
