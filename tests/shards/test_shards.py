"""Models that were cut: the answers of the whole, bit for bit; parts that do not belong together are refused."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood.shards import gather, part
from beamwood.shards.folder import read_manifest
from beamwood.shards.wire import Ask, Nodes
from beamwood.storage.loading import load_piece

LABELS = 120


def problem(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((1000, 300), density=0.03, rng=rng, dtype=np.float32, format="csr")
    Y = sp.csr_array(np.eye(LABELS, dtype=np.float32)[np.arange(1000) % LABELS] + (rng.random((1000, LABELS)) < 0.005))
    Y.data[:] = 1
    return X, Y


KINDS: dict[str, dict[str, Any]] = {
    "one tree": {"preset": "fast"},
    "three trees": {"preset": "balanced", "lexical": False},
    "trees and words": {"preset": "balanced", "lexical": True, "trees": 2, "unit_rows": True},
    "narrow": {"preset": "fast", "branching": 2, "max_leaf": 4, "trees": 2},
    "leaves anywhere": {"preset": "fast", "tree": "huffman", "trees": 2},
    "unbalanced": {"preset": "fast", "tree": "unbalanced"},
    "identity": {"preset": "fast", "trees": 2, "activation": "identity"},
    "logs": {"preset": "fast", "branching": 4, "max_leaf": 8, "activation": "log-sigmoid"},
}


def same(one: Any, other: Any) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        assert a is None or np.asarray(a).tobytes() == np.asarray(b).tobytes()


def model_of(kind: str) -> bw.Model:
    X, Y = problem()
    if kind == "index":
        return bw.index(Y.T @ X, bias=np.linspace(0, 0.1, LABELS))
    return bw.train(X, Y, progress=False, threads=1, **KINDS[kind])


@pytest.mark.parametrize("kind", [*KINDS, "index"])
def test_shards_give_the_bits_of_the_whole_model(kind: str, tmp_path: Path) -> None:
    model, X = model_of(kind), problem(1)[0][:60]
    few, many = np.arange(7), np.arange(0, LABELS, 3)
    for count in (1, 2, 3, 8):
        bw.shard(model, tmp_path / str(count), count)
        cut = bw.Sharded(tmp_path / str(count), verify=True)
        assert cut.version == model.version
        assert cut.n_shards == count
        for k, beam in itertools.product((1, 10, LABELS + 5), (1, 3, 10, 100)):
            same(model.found(X, k, beam), cut.found(X, k, beam))
            for allow in (few, many):
                expected = model.found(X, k, beam, filter=model.filter(allow))
                same(expected, cut.found(X, k, beam, filter=cut.filter(allow)))
        if kind != "identity":
            same(model.topk(X, 5, exact=True), cut.topk(X, 5, exact=True))
        same(model.topk(X[:0]), cut.topk(X[:0]))
        same(model.topk(sp.csr_array((2, 300), dtype=np.float32)), cut.topk(sp.csr_array((2, 300), dtype=np.float32)))


def test_texts_probabilities_and_thresholds_are_those_of_the_whole_model(tmp_path: Path) -> None:
    found = bw.datasets.load("library-subjects")
    texts = found.train_texts[:1500]
    model = bw.train_text(texts, found.train_labels[:1500], lexical=True, trees=2, progress=False)
    model = model.calibrate(found.train_texts[1500:2000], found.train_labels[1500:2000])
    bw.shard(model, tmp_path / "parts", 3)
    cut = bw.Sharded(tmp_path / "parts")
    for text in texts[:20]:
        assert cut.search(text) == model.search(text)
        assert cut.search_json(text, 5, 20).fields == model.search_json(text, 5, 20).fields
    assert cut.search_many(texts[:20], threshold=0.1) == model.search_many(texts[:20], threshold=0.1)
    assert cut.search("") == model.search("") == []
    assert (cut.key(3), cut.name(3)) == (model.key(3), model.name(3))
    assert cut.label_of(model.key(7)) == 7


def test_compressed_models_keep_their_answers(tmp_path: Path) -> None:
    X = problem(1)[0][:40]
    for number, weights in enumerate(("f16", "u8")):
        model = model_of("trees and words").compress(weights)
        bw.shard(model, tmp_path / str(number), 3)
        same(model.found(X), bw.Sharded(tmp_path / str(number)).found(X))


def test_every_weight_is_in_one_part_only(tmp_path: Path) -> None:
    model = model_of("three trees")
    made = bw.shard(model, tmp_path / "parts", 4)
    parts = [load_piece(made.path(number), "read", True) for number in range(4)]
    top = load_piece(made.folder / "top.bw", "read", True)
    held = [sum(sum(tree.nonzeros) for tree in one.shape.trees) for one in (*parts, top)]
    assert sum(held) == model.info()["nonzeros"]
    assert max(held[:4]) < 1.5 * min(held[:4])
    assert sum(one.labels for one in made.shards) == LABELS


def test_a_part_is_not_mistaken_for_a_model(tmp_path: Path) -> None:
    made = bw.shard(model_of("one tree"), tmp_path / "parts", 2)
    for path in (made.path(0), made.folder / "top.bw"):
        with pytest.raises(bw.FormatError, match="is a part of a model that was cut; expected a whole model"):
            bw.load(path)


def test_parts_of_different_builds_are_never_put_together(tmp_path: Path) -> None:
    X, Y = problem()
    one = bw.shard(model_of("one tree"), tmp_path / "one", 2)
    other = bw.shard(bw.train(X, Y, "fast", progress=False, seed=1), tmp_path / "other", 2)
    mixed = tmp_path / "mixed"
    shutil.copytree(one.folder, mixed)
    shutil.copy(other.path(1), mixed / "shard-0001.bw")
    with pytest.raises(bw.FormatError, match=r"is shard 1 of build .*; expected"):
        bw.Sharded(mixed)
    stray = part.Part.open(other.path(1))
    home = part.Part.open(one.path(0))

    def send(asks: Any) -> Any:
        found: dict[int, Any] = {}
        for shard, ask in asks.items():
            try:
                found[shard] = (home, stray)[shard].tell(ask)
            except bw.BeamwoodError as error:
                found[shard] = error
        return found

    with pytest.raises(part.OtherBuild, match="shard 1 is of build"):
        bw.Sharded(one.folder, send=send).topk(X[:50])


def test_a_missing_shard_is_named_and_partial_answers_say_what_they_cover(tmp_path: Path) -> None:
    model, X = model_of("trees and words"), problem(1)[0][:30]
    made = bw.shard(model, tmp_path / "parts", 3)
    parts = [part.Part.open(made.path(number)) for number in range(3)]

    def send(asks: Any) -> Any:
        return {shard: TimeoutError() if shard == 1 else parts[shard].tell(ask) for shard, ask in asks.items()}

    cut = bw.Sharded(made.folder, send=send)
    with pytest.raises(gather.ShardsMissing, match=r"^shard 1 of 3 does not answer \(TimeoutError\)") as caught:
        cut.topk(X)
    assert caught.value.missing == (1,)
    partial = cut.partial()
    labels, _ = partial.model.topk(X)
    lost = set(np.flatnonzero(cut.parts.sections["part/owner"] == 1).tolist())
    assert not lost & set(labels.ravel().tolist())
    coverage = partial.coverage
    assert not coverage.exact
    assert coverage.describe() == {
        "labels": LABELS - made.shards[1].labels,
        "full": LABELS,
        "shards": {"total": 3, "answered": 2, "missing": [1]},
        "exact": False,
    }
    with pytest.raises(gather.ShardsMissing):
        cut.topk(X)  # the other view stays strict
    silent = bw.Sharded(made.folder, send=lambda asks: {0: parts[0].tell(asks[0])})
    with pytest.raises(gather.ShardsMissing, match=r"^shard 1, 2 of 3 does not answer"):
        silent.topk(X)  # what says nothing of a shard has not asked it
    nobody = bw.Sharded(made.folder, send=lambda asks: dict.fromkeys(asks, TimeoutError())).partial()
    assert (nobody.model.topk(X)[0] == -1).all()
    assert nobody.coverage.labels == 0


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    model = model_of("one tree")
    made = bw.shard(model, tmp_path / "parts", 2)
    with pytest.raises(bw.SettingsError, match="is there already; expected a new folder"):
        bw.shard(model, tmp_path / "parts", 2)
    for count in (0, LABELS + 1):
        with pytest.raises(bw.SettingsError, match="shards"):
            bw.shard(model, tmp_path / "more", count)
    assert not (tmp_path / "more").exists()
    with pytest.raises(bw.FormatError, match="expected a folder that `beamwood shard` wrote"):
        bw.Sharded(tmp_path)
    cut = bw.Sharded(made.folder)
    with pytest.raises(bw.SettingsError, match="explains nothing; expected the whole one"):
        cut.explain(problem()[0][:1], 0)
    with pytest.raises(bw.SettingsError, match="made by another model"):
        cut.topk(problem()[0], filter=model_of("unbalanced").filter([1]))
    made.path(1).unlink()
    with pytest.raises(bw.MissingFileError, match=r"shard-0001\.bw"):
        bw.Sharded(made.folder)


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": 2}', '{"format": 1}', "names", "labels"])
def test_a_damaged_manifest_is_refused(damage: str, tmp_path: Path) -> None:
    made = bw.shard(model_of("one tree"), tmp_path / "parts", 2)
    path = made.folder / "manifest.json"
    given = json.loads(path.read_text())
    if damage == "names":
        given["shards"][0]["file"] = "../elsewhere.bw"
    if damage == "labels":
        given["shards"][0]["labels"] += 1
    path.write_text(json.dumps(given) if damage in ("names", "labels") else damage)
    with pytest.raises(bw.FormatError):
        read_manifest(made.folder)


def test_numbers_that_others_sent_are_checked(tmp_path: Path) -> None:
    made = bw.shard(model_of("three trees"), tmp_path / "parts", 2)
    shard, X = part.Part.open(made.path(0)), problem()[0][:1]
    rows = (X.indptr, X.indices, X.data)

    def asked(tree: int, layer: int, node: int, end: int = 1) -> Ask:
        at = [np.array([number], np.uint32) for number in (tree, layer, node)]
        nodes = Nodes(np.array([0, end]), at[0], at[1], at[2], np.ones(1, np.float32))
        return Ask(made.build, rows, nodes, 5)

    for ask in (asked(9, 0, 0), asked(0, 99, 0), asked(0, 1, 10**6), asked(0, 1, 0, end=3)):
        with pytest.raises((ValueError, bw.BeamwoodError)):
            shard.tell(ask)
    with pytest.raises(bw.DataError, match="a filter has 1 bytes"):
        shard.tell(Ask(made.build, rows, Nodes.none(1), 5, b"x"))


def test_an_application_below_a_prefix_sees_its_own_paths() -> None:
    pytest.importorskip("orjson")
    from beamwood.ray.ingress import own_path

    assert own_path({"path": "/shop/v1/search", "raw_path": b"/shop/v1/search", "root_path": "/shop"}) == b"/v1/search"
    assert own_path({"path": "/v1/labels/a b", "raw_path": b"/v1/labels/a%20b", "root_path": ""}) == b"/v1/labels/a%20b"
    assert own_path({"path": "/shop", "root_path": "/shop"}) == b"/"
