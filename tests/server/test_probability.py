"""A real server of a calibrated model: each way to ask gives the library's probabilities, and requests may cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.serving import LABELS, TEXTS, Running, shop

import beamwood as bw


@pytest.fixture(scope="module", name="sure")
def made_sure() -> bw.Model:
    return shop().calibrate(TEXTS * 20, LABELS * 20).cut(TEXTS * 20, LABELS * 20)


@pytest.fixture(scope="module", name="asked")
def made_asked(sure: bw.Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    here: Path = tmp_path_factory.mktemp("sure")
    sure.save(here / "sure.bw")
    shop().save(here / "shop.bw")
    with Running(here / "sure.bw", "--name", f"shop={here / 'shop.bw'}") as running:
        yield running


def test_every_way_to_ask_has_the_probabilities_of_the_library(asked: Running, sure: bw.Model) -> None:
    expected = [(hit.key, hit.probability) for hit in sure.search("wool socks", 4)]
    assert sure.text is not None
    row = sure.text.transform(["wool socks"])
    features = [[int(j), float(value)] for j, value in zip(row.indices, row.data, strict=True)]
    ways = (
        asked.json("POST", "/v1/search", {"text": "wool socks", "k": 4}),
        asked.json("GET", "/v1/search?q=wool+socks&k=4"),
        asked.json("POST", "/v1/search", {"text": "wool socks", "k": 4, "exact": True}),
        asked.json("POST", "/v1/search", {"texts": ["wool socks"], "k": 4})["results"][0],
        asked.json("POST", "/v1/search", {"features": features, "k": 4}),
    )
    for found in ways:
        assert [(hit["key"], np.float32(hit["probability"])) for hit in found["hits"]] == expected
    plain = asked.json("POST", "/v1/search", {"text": "wool socks", "model": "shop"})["hits"]
    assert all("probability" not in hit for hit in plain)


def test_requests_may_cut(asked: Running, sure: bw.Model) -> None:
    stored = [hit.key for hit in sure.search("red wool socks", threshold=True)]
    assert set(stored) == {"socks", "wool"}
    for found in (
        asked.json("POST", "/v1/search", {"text": "red wool socks", "threshold": True}),
        asked.json("GET", "/v1/search?q=red+wool+socks&threshold=true"),
        asked.json("POST", "/v1/search", {"texts": ["red wool socks"], "threshold": True})["results"][0],
    ):
        assert [hit["key"] for hit in found["hits"]] == stored
    half = asked.json("POST", "/v1/search", {"text": "red wool socks", "threshold": 0.5})["hits"]
    assert [hit["key"] for hit in half] == [hit.key for hit in sure.search("red wool socks", threshold=0.5)]


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ({"threshold": 2}, "a probability from 0 to 1"),
        ({"threshold": False}, "a probability from 0 to 1"),
        ({"threshold": "much"}, "a number"),
        ({"threshold": True, "model": "shop"}, "has no cut"),
        ({"threshold": 0.5, "model": "shop"}, "knows no probabilities"),
    ],
)
def test_thresholds_that_cannot_be_applied_are_refused(asked: Running, asks: dict[str, object], says: str) -> None:
    error = asked.json("POST", "/v1/search", {"text": "wool", **asks}, status=422)["error"]
    assert error["field"] == "threshold"
    assert says in error["message"]
