"""The beam that a model stores is the one of every search that gives none; an explicit one wins."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from support.commands import good
from support.models import sparse
from support.serving import Running, shop

import beamwood as bw


def rows_and_labels() -> tuple[Any, Any]:
    chance = np.random.default_rng(0)
    truth = sp.csr_matrix((np.ones(400), chance.integers(0, 60, 400), np.arange(401)), shape=(400, 60))
    return sp.csr_matrix(sparse(400, 50, 0.2, 3)), truth


def trained(**settings: Any) -> bw.Model:
    X, Y = rows_and_labels()
    form = {"preset": "fast", "branching": 2, "max_leaf": 2, "prune": 0.0}
    return bw.train(X, Y, progress=False, **form, **settings)


def asked(model: bw.Model, **how: Any) -> Any:
    return model.topk(rows_and_labels()[0], 5, **how)


def test_every_way_to_ask_takes_the_stored_beam() -> None:
    model = trained(beam=1)
    X, Y = rows_and_labels()
    assert (model.beam, model.info()["beam"], model.settings["beam"]) == (1, 1, 1)
    laws.check_same(asked(model), asked(model, beam=1))
    laws.check_same(asked(model, beam=10), asked(model.with_beam(10)))
    assert (asked(model)[1] != asked(model, beam=10)[1]).any()
    assert (model.predict(X, 5).toarray() == model.predict(X, 5, beam=1).toarray()).all()
    assert model.evaluate(X, Y).as_dict() == model.evaluate(X, Y, beam=1).as_dict()
    assert model.evaluate(X, Y).as_dict() != model.evaluate(X, Y, beam=10).as_dict()


def test_the_stored_beam_goes_wherever_the_model_goes(tmp_path: Path) -> None:
    model, path = trained(beam=3), tmp_path / "model.bw"
    model.save(path)
    bw.shard(model, tmp_path / "parts", 2)
    carried = [
        bw.load(path),
        bw.load(path, memory="read"),
        pickle.loads(pickle.dumps(model)),
        model.using(layout="chunk"),
        model.compress(weights="f16"),
        model.with_unit_rows(),
        bw.Model.from_trees([model, model]),
        model.remove_labels([0]),
        bw.Sharded(tmp_path / "parts"),
    ]
    assert [each.beam for each in carried] == [3] * len(carried)
    assert model.with_beam(4).version != model.version


def test_a_file_without_a_beam_means_ten(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    trained(beam=10).save(path)
    data = path.read_bytes()
    described = json.loads(json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]["beamwood"])
    assert "beam" not in described["model"]
    assert bw.load(path).beam == 10


@pytest.mark.parametrize("beam", [0, -1, 2.5, "ten", None, 2**40])
def test_a_beam_that_cannot_be_meant_is_refused(beam: Any) -> None:
    model = trained()
    with pytest.raises(bw.SettingsError, match="beam"):
        model.with_beam(beam)
    described = {"model": model.parts.shape.describe() | {"beam": beam}}
    if beam is not None:
        with pytest.raises(bw.FormatError, match="damaged"):
            type(model.parts.shape).read(described)


def test_inspect_says_the_beam(tmp_path: Path) -> None:
    path = tmp_path / "model.bw"
    shop().with_beam(7).save(path)
    assert json.loads(good("inspect", path, "--json"))["beam"] == 7
    assert "beam 7 where a search gives none" in good("inspect", path)


def test_a_server_asks_each_model_with_its_own_beam(tmp_path: Path) -> None:
    narrow, wide = tmp_path / "narrow.bw", tmp_path / "wide.bw"
    texts, labels = ["red blue", "blue green", "green pink", "pink red"] * 8, [[str(i % 16)] for i in range(32)]
    model = bw.train_text(texts, labels, preset="fast", max_leaf=2, branching=2, prune=0.0, progress=False)
    model.with_beam(1).save(narrow)
    model.with_beam(16).save(wide)
    with Running("--name", f"narrow={narrow}", "--name", f"wide={wide}") as server, bw.Client(server.url) as client:
        described = {found["name"]: found["beam"] for found in client.models()}
        assert described == {"narrow": 1, "wide": 16}
        for name, beam in described.items():
            expected = [hit.key for hit in model.search("red blue green pink", 16, beam)]
            for plain in ({}, {"min_score": -1.0}):  # the quick way, and the application's
                found = client.search("red blue green pink", 16, model=name, **plain)
                assert [hit.key for hit in found] == expected
        assert (
            len(client.search("red blue green pink", 16, 16, model="narrow"))
            == 16
            > len(client.search("red blue green pink", 16))
        )
