"""libpecos' folders: golden models answer as libpecos does, exports come back the same, hostile ones are refused."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.foreign import GOLDEN, SETS, check_refused, check_same_answers, from_csr, golden_rows
from support.models import small_model, small_queries, sparse, two_layers

import beamwood as bw
from beamwood.interop import pecos
from beamwood.interop.convert import read, read_text, write
from beamwood.interop.npz import read_csc


@pytest.mark.parametrize("name", SETS)
def test_a_golden_model_answers_as_libpecos_does(name: str) -> None:
    found = read(GOLDEN / name / "pecos")
    P = sp.load_npz(GOLDEN / name / "pecos_pred.npz")
    k = int(np.diff(P.indptr).max())
    assert found.found["beam"] == [20, 20]
    assert found.kind == "PECOS XLinearModel"
    assert not found.notes
    ours = found.model.topk(golden_rows(name), k, beam=3)
    assert check_same_answers(ours, from_csr(P, k), tolerance=1e-6) == P.shape[0]


@pytest.mark.parametrize("name", SETS)
def test_an_export_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = read(GOLDEN / name / "pecos").model
    assert write(model, tmp_path / "out", "pecos") == []
    again = read(tmp_path / "out").model
    X = golden_rows(name)
    for one, other in zip(model.topk(X), again.topk(X), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("activation", ["identity", "sigmoid", "log-sigmoid", "hinge-1", "hinge-4", "log-hinge-2"])
def test_every_activation_has_a_post_processor(activation: str, tmp_path: Path) -> None:
    model = small_model(activation=activation)
    write(model, tmp_path / "out", "pecos")
    again = read(tmp_path / "out").model
    assert again.info()["activation"] == activation
    for one, other in zip(model.topk(small_queries()), again.topk(small_queries()), strict=True):
        assert one.tobytes() == other.tobytes()


def uneven() -> bw.Model:
    """Labels 0 and 1 above the last layer, one of them constant; two certain and two impossible nodes."""
    top = bw.Layer(sparse(50, 4, 0.5, 3), np.zeros(4, np.int64), np.array([0, np.inf, 0.3, -np.inf]), [-1, 0, -1, 1])
    last = bw.Layer(sparse(50, 6, 0.5, 4), np.array([0, 2, 0, 2, 2, 0]), label=np.array([7, 2, 3, 4, 5, 6]))
    return bw.Model.from_layers([top, last], activation="hinge-3")


def test_labels_above_the_last_layer_are_moved_down(tmp_path: Path) -> None:
    model = uneven()
    notes = write(model, tmp_path / "out", "pecos")
    assert "moved down" in notes[0]
    again = read(tmp_path / "out").model
    assert again.info()["nodes"] == [[4, 8]]
    for one, other in zip(model.topk(small_queries(), 8, 9), again.topk(small_queries(), 8, 9), strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_libpecos_cannot_hold_is_said(tmp_path: Path) -> None:
    both = bw.Model.from_trees([small_model(), small_model()])
    with pytest.raises(bw.SettingsError, match="2 trees; expected one, as libpecos"):
        write(both, tmp_path / "out", "pecos")
    assert not list(tmp_path.iterdir())
    write(both, tmp_path / "out", "pecos", tree=1)
    named = bw.Model.from_layers(two_layers(), names=[f"n{i}" for i in range(40)])
    with pytest.raises(bw.SettingsError, match="is there already"):
        write(named, tmp_path / "out", "pecos")
    assert "keys and names stay behind" in write(named, tmp_path / "out", "pecos", force=True)[0]


def pruned(folder: Path) -> None:
    """Takes the parents of some labels, and all children of inner node 1, away."""
    C = sp.csc_matrix(sp.load_npz(folder / "ranker" / "2.model" / "C.npz")).tolil()
    C[3, :] = 0
    C[:, 1] = 0
    kept = sp.csc_matrix(C)
    kept.eliminate_zeros()
    sp.save_npz(folder / "ranker" / "2.model" / "C.npz", kept, compressed=False)


def test_labels_without_a_parent_score_worst(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "small" / "pecos", tmp_path / "pecos")
    pruned(tmp_path / "pecos")
    found = read(tmp_path / "pecos")
    assert any("belong to no node" in note for note in found.notes)
    whole = read(GOLDEN / "small" / "pecos").model
    lost = [*np.flatnonzero(whole.layers()[2].parent == 1).tolist(), 3]
    X, L = golden_rows("small"), whole.n_labels
    labels, scores = found.model.topk(X, L, L)
    expected = whole.predict(X, L, L).toarray()
    expected[:, lost] = 0
    assert np.array_equal(np.sort(labels, axis=1), np.tile(np.arange(L), (X.shape[0], 1)))
    assert np.array_equal(scores, np.take_along_axis(expected, labels, axis=1))


# --- hostile folders --------------------------------------------------------------------------------------------------


def edit_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def replace_npz(path: Path, **arrays: Any) -> None:
    with np.load(path) as old:
        np.savez(path, **{**dict(old), **arrays})


def reshape_npz(path: Path, form: str, rows: int | None = None, columns: int | None = None) -> None:
    """The same values in this form, in a matrix that says it is larger."""
    old = sp.load_npz(path).asformat(form)
    shape = np.array([rows or old.shape[0], columns or old.shape[1]])
    np.savez(path, format=np.array(form.encode()), shape=shape, data=old.data, indices=old.indices, indptr=old.indptr)


def many_features(folder: Path) -> None:
    """All files agree on a number of features that nothing bears out."""
    for path in (folder / "ranker").glob("*.model"):
        reshape_npz(path / "W.npz", "csc", rows=2**31 - 1)
    for path in folder.rglob("param.json"):
        edit_json(path, nr_features=2**31 - 2)


def many_nodes(folder: Path) -> None:
    """So for nodes, where W is stored by rows and C by columns."""
    reshape_npz(folder / LAYER / "W.npz", "csr", columns=10**8)
    reshape_npz(folder / LAYER / "C.npz", "csc", rows=10**8)
    edit_json(folder / LAYER / "param.json", nr_labels=10**8)


def unknown_post(folder: Path) -> None:
    for path in (folder / "ranker").glob("*.model/param.json"):
        edit_json(path, pred_kwargs={"only_topk": 1, "post_processor": "tanh"})


def without_layers(folder: Path) -> None:
    (folder / "ranker/param.json").write_text('{"model": "HierarchicalMLModel"}')
    for path in (folder / "ranker").glob("*.model"):
        shutil.rmtree(path)


def without_parents(folder: Path) -> None:
    for path in (folder / "ranker").glob("*.model/C.npz"):
        replace_npz(path, data=np.zeros_like(sp.load_npz(path).data))


LAYER = "ranker/1.model"
HOSTILE: dict[str, tuple[Any, str]] = {
    "no param": (lambda f: (f / "ranker/param.json").unlink(), r"ranker/param.json: the file is not there"),
    "a list": (lambda f: (f / "ranker/param.json").write_text("[]"), r"param.json: it holds a list"),
    "deep": (lambda f: (f / "ranker/param.json").write_text("[" * 100_000), r"param.json: it is not JSON"),
    "depth": (lambda f: edit_json(f / "ranker/param.json", depth=10**9), r"param.json: depth is 1000000000"),
    "a layer more": (lambda f: edit_json(f / "ranker/param.json", depth=4), r"3.model/param.json: the file is not"),
    "features": (
        lambda f: edit_json(f / "ranker/param.json", nr_features=5),
        r"param.json: nr_features is 5; expected",
    ),
    "bias": (lambda f: edit_json(f / LAYER / "param.json", bias="x"), r"1.model/param.json: bias is 'x'"),
    "kwargs": (lambda f: edit_json(f / LAYER / "param.json", pred_kwargs=[]), r"param.json: pred_kwargs is \[\]"),
    "post": (
        lambda f: edit_json(f / LAYER / "param.json", pred_kwargs={"only_topk": 1, "post_processor": "tanh"}),
        r"post-processors|post_processor is 'tanh'",
    ),
    "post number": (
        lambda f: edit_json(f / LAYER / "param.json", pred_kwargs={"only_topk": 1, "post_processor": 5}),
        r"post_processor is 5; expected a name",
    ),
    "unknown post": (unknown_post, r"post_processor is 'tanh'; expected one of noop"),
    "no layers": (without_layers, r"ranker: it holds no layers; expected 0.model"),
    "labels of no parent": (without_parents, r"C.npz: (no label has a parent|.*expected)"),
    "no W": (lambda f: (f / LAYER / "W.npz").unlink(), r"W.npz: the file is not there"),
    "text": (lambda f: (f / LAYER / "W.npz").write_text("hello"), r"W.npz: it is not a readable .npz"),
    "cut": (lambda f: os.truncate(f / LAYER / "W.npz", 6000), r"W.npz: it is not a readable .npz"),
    "indptr": (
        lambda f: replace_npz(f / LAYER / "W.npz", indptr=np.array([0, 10**9], np.int64)),
        r"W.npz: its matrix has an indptr of 2 offsets",
    ),
    "indices": (
        lambda f: replace_npz(f / LAYER / "C.npz", indices=np.full(4, -7, np.int32)),
        r"C.npz: its matrix has (a value in row -7|an indptr of)",
    ),
    "shape": (lambda f: replace_npz(f / LAYER / "C.npz", shape=np.array([2**40, 1])), r"C.npz: shape is"),
    "object": (
        lambda f: replace_npz(f / LAYER / "W.npz", data=np.array([{}], object)),
        r"W.npz: data.npy has dtype object",
    ),
    "many features": (many_features, r"W.npz: it says 2,147,483,646 features; expected at most"),
    "many nodes": (many_nodes, r"W.npz: [\d,]+ values in 100,000,000 columns"),
    "many parents": (lambda f: reshape_npz(f / LAYER / "C.npz", "csr", columns=10**9), r"C.npz: \d+ values in 1,000"),
    "coo": (lambda f: replace_npz(f / LAYER / "W.npz", format=np.array(b"coo")), r"W.npz: its format is 'coo'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_file_and_field(name: str, tmp_path: Path) -> None:
    spoil, message = HOSTILE[name]
    shutil.copytree(GOLDEN / "small" / "pecos", tmp_path / "pecos")
    spoil(tmp_path / "pecos")
    check_refused(pecos.read, tmp_path / "pecos", message)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    W = sp.csc_matrix(sp.random(9, 4, density=0.5, random_state=1))
    W.data[1] = np.nan
    sp.save_npz(tmp_path / "W.npz", W)
    with pytest.raises(bw.FormatError, match=r"W.npz: its matrix has nan"):
        read_csc(tmp_path / "W.npz")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "W.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(50_000_000))
    with pytest.raises(bw.FormatError, match=r"W.npz: .* claim to unpack to 50,000,000"):
        read_csc(tmp_path / "W.npz")


def test_nodes_with_two_parents_are_refused(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "small" / "pecos", tmp_path / "pecos")
    path = tmp_path / "pecos" / "ranker" / "2.model" / "C.npz"
    C = sp.csc_matrix(sp.load_npz(path)).tolil()
    C[5, :] = 1
    sp.save_npz(path, sp.csc_matrix(C), compressed=False)
    with pytest.raises(bw.FormatError, match=r"C.npz: node 5 has \d+ parents; overlapping trees"):
        read(tmp_path / "pecos")


# --- text features ----------------------------------------------------------------------------------------------------


def test_the_vectorizer_makes_the_rows_that_libpecos_makes(tmp_path: Path) -> None:
    """Case, spaces, tabs, unknown tokens, truncation, two base vectorizers; also once saved with a model and loaded."""
    golden = json.loads((GOLDEN / "small" / "vec.json").read_text())
    expected = sp.csr_matrix((golden["data"], golden["indices"], golden["indptr"]), shape=golden["shape"])
    text = read_text(GOLDEN / "small" / "vec").text
    layer = bw.Layer(sparse(text.columns, 5, 0.5, 3), np.zeros(5, np.int64))
    bw.Model.from_layers([layer]).with_text(text).save(tmp_path / "m.bw")
    loaded = bw.load(tmp_path / "m.bw").text
    assert loaded is not None
    for one in (text, loaded):
        rows = one.transform(golden["texts"])
        assert rows.indptr.tolist() == golden["indptr"]
        assert rows.indices.tolist() == golden["indices"]
        assert np.abs(rows.data - expected.data).max() < 1e-6


def change_terms(folder: Path, change: Any) -> None:
    """Changes the lines of the terms; the line before them says how many there are."""
    path = folder / "0.base" / "vectorizer" / "tfidf-model.txt"
    lines = change(path.read_text().splitlines(keepends=True)[1:])
    path.write_text("".join([f"{len(lines)}\n", *lines]))


def with_column(line: str, column: int, text: str) -> str:
    parts = line.rstrip("\n").split("\t")
    parts[column] = text
    return "\t".join(parts) + "\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "it has no features; expected at least one"),
        (lambda lines: [*lines[:-1], lines[0]], "is there twice; expected it once"),
        (lambda lines: [with_column(lines[0], 2, "0"), *lines[1:]], "the length it says"),
        (lambda lines: [with_column(lines[0], 1, "inf"), *lines[1:]], "an idf is not finite"),
        (lambda lines: [with_column(lines[0], 1, "much"), *lines[1:]], "idf is 'much'; expected a number"),
        (lambda lines: ["1\n", *lines[1:]], "columns; expected 4"),
    ],
)
def test_a_hostile_vectorizer_is_refused_by_file_and_line(change: Any, message: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "small" / "vec", tmp_path / "vec")
    change_terms(tmp_path / "vec", change)
    check_refused(read_text, tmp_path / "vec", message)


def test_one_base_alone_is_a_vectorizer_too(tmp_path: Path) -> None:
    whole = read_text(GOLDEN / "small" / "vec").text
    alone = read_text(GOLDEN / "small" / "vec" / "0.base").text
    assert 0 < alone.columns < whole.columns
    shutil.copytree(GOLDEN / "small" / "vec", tmp_path / "vec")
    meta = json.loads((tmp_path / "vec" / "meta.json").read_text())
    meta["kwargs"]["num_base_vect"] = 1
    (tmp_path / "vec" / "meta.json").write_text(json.dumps(meta))
    assert read_text(tmp_path / "vec").text.columns == alone.columns


def test_a_pickled_vectorizer_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "vectorizer.pkl").write_bytes(b"\x80\x04cposix\nsystem\n")
    with pytest.raises(bw.FormatError, match=r"vectorizer.pkl: a pickle, .* not read"):
        read_text(tmp_path)
