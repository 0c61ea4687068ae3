"""What a request may say, field by field, without a server: refusals name the field and what was expected."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from beamwood.errors import SettingsError
from beamwood.server.app.annif import as_probability
from beamwood.server.app.replies import Refusal
from beamwood.server.app.schema import RequestReader
from beamwood.server.options import MODELS_AT_MOST, ServeOptions, name_and_file

ONE = {"shop": Path("shop.bw")}


def reader(partial: bool = False) -> RequestReader:
    return RequestReader(ServeOptions(models=ONE), partial)


def refused(call: Any) -> str:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.status == 422
    return str(caught.value.message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": "wool"}, "expected the number or the key of the label to explain, found none"),
        ({"text": "wool", "label": None}, "expected the number or the key of the label to explain, found none"),
        ({"text": "wool", "label": 1.5}, "expected the number or the key of a label, found"),
        ({"text": "wool", "label": -1}, "expected the number or the key of a label, found"),
        ({"text": "wool", "label": "socks", "model": ""}, "expected a name, found"),
    ],
)
def test_an_explanation_needs_a_label(body: dict[str, Any], message: str) -> None:
    assert message in refused(lambda: reader().explain(json.dumps(body).encode()))


def test_a_field_that_is_null_counts_as_left_out() -> None:
    found = reader().search(b'{"text": "wool", "beam": null, "filter": null}')
    assert found == reader().search(b'{"text": "wool"}')


def test_keys_are_strings() -> None:
    said = refused(lambda: reader().search(b'{"text": "wool", "allow": ["socks", 5]}'))
    assert "expected the key of a label, a string" in said


def test_an_address_asks_as_a_body_does_and_has_no_other_names() -> None:
    found = reader(partial=True).search_query(b"q=wool&exact=true&partial=0&k=3")
    assert found == reader(partial=True).search(b'{"text": "wool", "exact": true, "partial": false, "k": 3}')
    for name in ("text", "texts", "features"):
        assert "give the text as q" in refused(lambda name=name: reader().search_query(f"{name}=wool".encode()))
    assert "expected" in refused(lambda: reader().search_query(b"q=wool&exact=perhaps"))


def test_the_form_of_annif_may_have_fields_that_we_do_not_know() -> None:
    assert reader().suggest(b"text=wool&limit=3&threshold=0.5&colour=red") == ("wool", 3, 0.5)


@pytest.mark.parametrize(
    ("path", "score", "expected"),
    [
        ("product", math.nan, 0.0),
        ("product", 0.25, 0.25),
        ("product", 1.5, 1.0),
        ("sum", -math.inf, 0.0),
        ("sum", 2.0, 1.0),
        ("last", 0.0, 0.5),
        ("last", -math.inf, 0.0),
    ],
)
def test_scores_of_every_kind_of_model_lie_between_0_and_1_for_annif(path: str, score: float, expected: float) -> None:
    assert as_probability(score, path) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"models": {}}, "the server has 0 models; expected 1 to"),
        ({"models": {f"m{n}": Path("m.bw") for n in range(MODELS_AT_MOST + 1)}}, "models; expected 1 to"),
        ({"models": {"a/b": Path("m.bw")}}, "the name 'a/b' cannot stand in an address"),
        ({"log": "everything"}, "--log is 'everything'; expected one of requests, errors, off"),
        ({"warm": "yes"}, "--warm is 'yes'; expected one of questions, file, off"),
        ({"port": 70_000}, "--port is 70,000; expected 0 to 65,535"),
        ({"queue_ms": 0.0}, "--queue-ms is 0.0; expected 0.001 to"),
        ({"k": 5000}, "--k is 5000 and --beam is 1; expected at most --max-k"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ServeOptions(**{"models": ONE, **given})


@pytest.mark.parametrize("words", ["shop.bw", "=shop.bw", "shop=", ""])
def test_a_name_and_a_file_need_both(words: str) -> None:
    with pytest.raises(SettingsError, match=r"expected NAME=FILE. For example: --name shop=shop.bw"):
        name_and_file("--name", words)
    assert name_and_file("--name", "a=b=c.bw") == ("a", Path("b=c.bw"))
