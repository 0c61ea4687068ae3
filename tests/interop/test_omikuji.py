"""omikuji's folders: golden models answer as omikuji does, exports come back, hostile ones are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.foreign import GOLDEN, SETS, Answer, check_refused, check_same_answers, golden_pairs, golden_rows
from support.models import small_model, small_queries, sparse

import beamwood as bw
from beamwood import reference
from beamwood.interop.convert import read, write
from beamwood.storage.activations import Activation

LOSSES = ("HINGE", "LOG")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_golden_model_answers_as_omikuji_does(name: str, loss: str) -> None:
    X = golden_rows(name)
    found = read(GOLDEN / name / f"omikuji_{loss}")
    assert found.found["largest_leaf"] == 5
    theirs = golden_pairs(GOLDEN / name / f"omikuji_{loss}_beam10.json", 5)
    assert check_same_answers(found.model.topk(X, 5, 10), theirs, 1e-6) == X.shape[0]


def with_truncated_leaves(model: bw.Model, X: Any, k: int, beam: int) -> Answer:
    """The plain reference, tree by tree; of each leaf only the best `beam` labels are kept, as omikuji does."""
    info = model.info()
    activation = Activation.parse(info["activation"], info["path"])
    trees = [model.layers(tree) for tree in range(info["trees"])]
    labels, scores = np.full((X.shape[0], k), -1, np.int64), np.full((X.shape[0], k), -np.inf, np.float32)
    for i in range(X.shape[0]):
        answers = []
        for layers in trees:
            leaf_of = np.empty(model.n_labels, np.int64)
            leaf_of[layers[-1].label] = layers[-1].parent
            ids, found = reference.reached(layers, reference.unit_length(X[[i]]), activation, beam)
            kept = []
            for leaf in np.unique(leaf_of[ids]):
                inside = np.flatnonzero(leaf_of[ids] == leaf)
                kept += inside[reference.rank(found[inside], ids[inside], beam)].tolist()
            answers.append((ids[kept], found[kept]))
        ids, found = reference.mean_of(answers)
        best = reference.rank(found, ids, k)
        labels[i, : len(best)], scores[i, : len(best)] = ids[best], found[best]
    return labels, scores


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_but_the_truncation_of_leaves_differs(loss: str) -> None:
    """With a beam below the largest leaf omikuji drops labels inside it; done here too, the answers are the same."""
    X = golden_rows("small")[:150]
    found = read(GOLDEN / "small" / f"omikuji_{loss}")
    assert any("leaves out labels inside a leaf" in note for note in found.notes)
    labels, scores = golden_pairs(GOLDEN / "small" / f"omikuji_{loss}.json", 5)
    theirs = (labels[:150], scores[:150])
    assert check_same_answers(with_truncated_leaves(found.model, X, 5, 4), theirs) == X.shape[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_an_export_comes_back_bit_for_bit(loss: str, tmp_path: Path) -> None:
    model = read(GOLDEN / "medium" / f"omikuji_{loss}").model
    write(model, tmp_path / "out", "omikuji")
    again = read(tmp_path / "out").model
    X = golden_rows("medium")
    for one, other in zip(model.topk(X), again.topk(X), strict=True):
        assert one.tobytes() == other.tobytes()


def test_early_labels_become_leaves_of_their_own(tmp_path: Path) -> None:
    top = bw.Layer(sparse(50, 4, 0.5, 3), np.zeros(4, np.int64), np.array([0, np.inf, 0.3, -np.inf]), [-1, 0, -1, 1])
    last = bw.Layer(sparse(50, 6, 0.5, 4), np.array([0, 2, 0, 2, 2, 0]), label=np.array([7, 2, 3, 4, 5, 6]))
    model = bw.Model.from_layers([top, last], activation="log-hinge-2", path="log-exp", unit_rows=True)
    write(model, tmp_path / "out", "omikuji")
    again = read(tmp_path / "out").model
    assert again.info()["nodes"] == [[4, 8]]
    for one, other in zip(model.topk(small_queries(), 8, 9), again.topk(small_queries(), 8, 9), strict=True):
        assert one.tobytes() == other.tobytes()


def test_an_early_leaf_keeps_one_place_in_the_beam_until_the_end() -> None:
    """The golden trees have leaves at two depths; all labels are in the last layer once they are read."""
    model = read(GOLDEN / "small" / "omikuji_HINGE").model
    assert model.info()["nodes"] == [[2, 4, 8, 13, 45]] * 2
    layers = model.layers(0)
    assert np.isposinf(layers[3].bias).sum() == 3
    assert (np.diff(layers[3].weights.indptr)[np.isposinf(layers[3].bias)] == 0).all()


def test_what_omikuji_cannot_hold_is_said(tmp_path: Path) -> None:
    with pytest.raises(bw.SettingsError, match="cannot be written for it"):
        write(small_model(activation="hinge-3"), tmp_path / "out", "omikuji")
    notes = write(small_model(activation="hinge-2"), tmp_path / "out", "omikuji")
    assert any("only rows of length 1" in note for note in notes)


def test_labels_that_no_tree_has_score_worst(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "small" / "omikuji_LOG", tmp_path / "m")
    (tmp_path / "m" / "tree1.cbor").unlink()
    data = (tmp_path / "m" / "tree0.cbor").read_bytes()
    at = data.index(b"flabels") + 8  # the first label of the first leaf
    changed = data[:at] + (b"\x18\x32" if data[at] < 24 else b"") + data[at + 1 :]
    assert data[at] < 24, "the fixture's first label is a short number"
    lost = data[at]
    (tmp_path / "m" / "tree0.cbor").write_bytes(changed)
    found = read(tmp_path / "m")
    assert found.model.n_labels == 51
    assert any("are in no leaf" in note for note in found.notes)
    labels, scores = found.model.topk(golden_rows("small")[:20], 51, 100)
    for absent in (lost, 45, 49):
        assert (scores[labels == absent] == 0).all()


# --- hostile folders --------------------------------------------------------------------------------------------------


def settings(**values: Any) -> Any:
    def spoil(folder: Path) -> None:
        path = folder / "settings.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return spoil


def swap(old: bytes, new: bytes, times: int = 1) -> Any:
    """Replaces bytes of the first tree."""

    def spoil(folder: Path) -> None:
        data = (folder / "tree0.cbor").read_bytes()
        assert old in data
        (folder / "tree0.cbor").write_bytes(data.replace(old, new, times))

    return spoil


def spoilt(old: bytes, new: bytes) -> Any:
    """A small sparse tree instead of the first one, with bytes replaced."""

    def spoil(folder: Path) -> None:
        data = deep_tree(1)
        assert old in data
        (folder / "tree0.cbor").write_bytes(data.replace(old, new, 1))

    return spoil


HOSTILE: dict[str, tuple[Any, str]] = {
    "features": (settings(n_features=79), r"tree0.cbor: byte .*dim \[81, 2\]|outer_dim is 81"),
    "many features": (settings(n_features=2**40), r"settings.json: n_features is"),
    "loss": (settings(classifier_loss_type=[]), r"settings.json: classifier_loss_type is \[\]"),
    "a gap": (lambda f: (f / "tree1.cbor").rename(f / "tree2.cbor"), r"tree1.cbor: the file is not there"),
    "empty": (
        lambda f: (f / "tree0.cbor").write_bytes(b""),
        r"tree0.cbor: byte 0: it holds something else; expected a node",
    ),
    "another kind": (swap(b"fBranch", b"fbranch"), r"tree0.cbor: byte .*a node is called 'branch'"),
    "long text": (
        swap(b"fBranch", b"\x7b" + b"\xff" * 8 + b"Branch"),
        r"tree0.cbor: .*has 18,446,744,073,709,551,615 b",
    ),
    "dim": (swap(b"\x18\x51\x02", b"\x18\x51\x03"), r"tree0.cbor: .*Dense weights have version 1, dim \[81, 3\]"),
    "data": (
        swap(b"ddata\x98\xa2", b"ddata\x9a\xff\xff\xff\xff"),
        r"data has 4,294,967,295 elements; expected at most",
    ),
    "not a number": (swap(b"ddata\x98\xa2\xfa", b"ddata\x98\xa2\xf5"), r"data holds something that is not a number"),
    "not finite": (
        swap(b"ddata\x98\xa2\xfa\xbe", b"ddata\x98\xa2\xfa\x7f\xff"),
        r"(not finite|not a number|something else)",
    ),
    "cut": (lambda f: (f / "tree0.cbor").write_bytes((f / "tree0.cbor").read_bytes()[:-9]), r"tree0.cbor: byte"),
    "more": (
        lambda f: (f / "tree0.cbor").write_bytes((f / "tree0.cbor").read_bytes() + b"\0"),
        r"tree0.cbor: byte .*: 1 bytes follow",
    ),
    "deep": (
        lambda f: (f / "tree0.cbor").write_bytes(deep_tree(2000)),
        r"tree0.cbor: The tree is more than 512 layers deep",
    ),
    "columns without weights": (
        lambda f: (f / "tree0.cbor").write_bytes(deep_tree(1, columns=2**20)),
        r"tree0.cbor: .*a Branch has 1 children; expected 1,048,576",
    ),
    "features without weights": (
        lambda f: [
            settings(n_features=2**31 - 2)(f),
            *((f / f"tree{i}.cbor").write_bytes(deep_tree(1, 2**31 - 2)) for i in range(2)),
        ],
        r"settings.json: it says 2,147,483,646 features; expected at most .* with 0 weights",
    ),
    "outer rows": (lambda f: (f / "tree0.cbor").write_bytes(deep_tree(1, 79)), r"outer_dim is 80; expected 81"),
    "no children": (lambda f: (f / "tree0.cbor").write_bytes(deep_tree(1, columns=0)), r"has no children; expected"),
    "a field more": (spoilt(b"\xa1fBranch\xa2", b"\xa1fBranch\xa3"), r"Branch has 3 fields; expected 2"),
    "another field": (spoilt(b"gweights", b"gWeights"), r"the field is 'Weights'; expected weights"),
    "lengths": (spoilt(b"findptr\x81\x00", b"findptr\x82\x00\x00"), r"do not fit each other; expected matching"),
    "order": (spoilt(b"findptr\x81\x00", b"findptr\x81\x01"), r"indptr is not in order; expected it to rise"),
    "outside": (
        spoilt(
            b"findptr\x81\x00jouter_inds\x80jinner_inds\x80ddata\x80",
            b"findptr\x82\x00\x01jouter_inds\x81\x00jinner_inds\x81\x05ddata\x81\xfa\x3f\x80\x00\x00",
        ),
        r"outer_inds or inner_inds lie outside",
    ),
    "no trees": (lambda f: [path.unlink() for path in f.glob("tree*")], r"tree0.cbor: the file is not there"),
    "other files only": (
        lambda f: [path.rename(f / f"tree-{path.name}") for path in f.glob("tree*")],
        r"tree0.cbor: the file is not there",
    ),
    "a label twice": (
        swap(b"flabels\x83\x18\x1d\x18%", b"flabels\x83\x18\x1d\x18\x1d"),
        r"tree0.cbor: In the tree label 29 is given",
    ),
}


def deep_tree(layers: int, features: int = 80, columns: int = 1) -> bytes:
    """Branches in branches, each with one child and no weights, around a leaf with one label."""
    sizes = b"iouter_dim\x1a" + (features + 1).to_bytes(4, "big") + b"iinner_dim\x1a" + columns.to_bytes(4, "big")
    weights = b"gweights\xa1fSparse\xa6" + sizes + b"findptr\x81\x00jouter_inds\x80jinner_inds\x80ddata\x80"
    branch = b"\xa1fBranch\xa2" + weights + b"hchildren\x81"
    return branch * layers + b"\xa1dLeaf\xa2" + weights + b"flabels\x81\x00"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_file_and_field(name: str, tmp_path: Path) -> None:
    spoil, message = HOSTILE[name]
    shutil.copytree(GOLDEN / "small" / "omikuji_HINGE", tmp_path / "m")
    spoil(tmp_path / "m")
    check_refused(lambda folder: read(folder, "omikuji"), tmp_path / "m", message)
