"""Claims about the description of the API: it names what the server answers to, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from support.serving import BEARER, Running

from beamwood.server.app import examples, openapi
from beamwood.server.app.routes import ROUTES
from beamwood.server.options import ServeOptions


def test_the_document_names_every_documented_route_and_no_other(server: Running) -> None:
    document = server.json("GET", "/openapi.json")
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    answered = {(route.path, method) for route in ROUTES if route.documented for method in route.operations}
    assert described == answered
    for path, method in sorted(described):
        address = path.replace("{label}", "0").replace("{project}", "shop")
        status = server.ask(method, address, b"" if method == "POST" else None)[0]
        assert status not in (404, 405, 500), path
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_no_operation_is_described_that_no_route_has() -> None:
    options = ServeOptions(models={"shop": Path("shop.bw")})
    documented = {name for route in ROUTES if route.documented for name in route.operations.values()}
    assert set(openapi._operations(options)) == documented


def test_an_operation_asks_for_a_token_where_the_server_does(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        for path, methods in server.json("GET", "/openapi.json")["paths"].items():
            address = path.replace("{label}", "0").replace("{project}", "shop")
            for method, operation in methods.items():
                status = server.ask(method.upper(), address, b"" if method == "post" else None)[0]
                assert (status == 401) == ("security" in operation) == ("401" in operation["responses"]), path


def test_every_answer_that_is_met_is_one_that_the_document_names(server: Running) -> None:
    document = server.json("GET", "/openapi.json")
    responses = document["paths"]["/v1/search"]["post"]["responses"]
    for body in (b'{"text": "wool"}', b"{", b"x" * 30_000, b'{"text": "a", "model": "none"}'):
        assert str(server.ask("POST", "/v1/search", body)[0]) in responses
    for name in responses:
        reference = responses[name].get("$ref", "#/components/responses/400")
        assert reference.rpartition("/")[2] in document["components"]["responses"]


def test_the_lines_for_curl_on_the_page_about_the_api_work_as_printed(server: Running) -> None:
    document = server.json("GET", "/openapi.json")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            address, asked = path, []
            for parameter in operation.get("parameters", []):
                if parameter["required"]:  # as docs.js puts them together
                    value = quote(parameter["schema"]["examples"][0], safe="")
                    address = address.replace(f"{{{parameter['name']}}}", value)
                    asked += [f"{parameter['name']}={value}"] if parameter["in"] == "query" else []
            body = None
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                example = schema["examples"][0]
                body = example if kind.endswith("json") else urlencode(example).encode()
            sent = b"" if body is None and method == "post" else body
            status = server.ask(method.upper(), "?".join([address, *asked]), sent)[0]
            assert status == (403 if path.startswith("/v1/admin") else 200), (method, address)


VOLATILE = ("version", "loaded", "engine_us", "queue_us", "modification_time")  # and numbers after the fifth place


def same(sample: Any, found: Any, name: str = "") -> bool:
    """Whether an answer that is shown is one that was got, but for what each run has anew and for lists cut short."""
    if isinstance(sample, dict) and isinstance(found, dict):
        return list(sample) == list(found) and all(same(sample[at], found[at], at) for at in sample)
    if isinstance(sample, list) and isinstance(found, list):
        return bool(sample) == bool(found) and all(any(same(item, other, name) for other in found) for item in sample)
    if isinstance(sample, float) and isinstance(found, float):
        return name in VOLATILE or abs(sample - found) < 1e-5
    return type(sample) is type(found) and (name in VOLATILE or sample == found)


def test_the_answers_that_are_shown_are_those_of_a_server(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        document = server.json("GET", "/openapi.json")
        asked = {
            "search": examples.SEARCH,
            "explain": examples.EXPLAIN,
            "suggest": urlencode(examples.FORM).encode(),
            "reload": b"",
        }
        shown = set()
        for path, methods in document["paths"].items():
            address = path.replace("{label}", "0").replace("{project}", "shop")
            for method, operation in methods.items():
                name, answer = operation["operationId"], operation["responses"]["200"]
                kind, content = next(iter(answer["content"].items()))
                sample = examples.ANSWERS[name]
                assert content["example"] == sample
                where = f"{address}?q={quote(examples.QUERY)}" if name == "search_by_query" else address
                status, headers, data = server.ask(method.upper(), where, asked.get(name), **BEARER)
                assert (status, headers["content-type"].split(";")[0]) == (200, kind)
                if kind == "application/json":
                    assert same(sample, json.loads(data)), (name, data)
                    schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                    assert set(schema["required"]) <= set(sample) <= set(schema["properties"]), name
                else:
                    names, found = (
                        {line.rpartition(" ")[0] for line in text.splitlines()} for text in (sample, data.decode())
                    )
                    assert names <= found
                shown.add(name)
        assert shown == set(examples.ANSWERS)


def test_answers_that_differ_are_told_apart() -> None:
    sample = {"hits": [{"label": 8, "score": 0.9}], "version": "a"}
    assert same(sample, {"hits": [{"label": 7, "score": 0.8}, {"label": 8, "score": 0.9}], "version": "b"})
    for other in (
        {"hits": [{"label": 8, "score": 0.8}], "version": "a"},
        {"hits": [{"label": 8}], "version": "a"},
        {"hits": [], "version": "a"},
        {"hits": [{"label": 8, "score": 0.9}], "version": 3},
        {"hits": [{"label": 8, "score": 0.9}], "version": "a", "more": 1},
    ):
        assert not same(sample, other)


def test_a_field_that_is_not_known_gets_a_status_that_is_documented(server: Running) -> None:
    for path, methods in server.json("GET", "/openapi.json")["paths"].items():
        address = path.replace("{label}", "0").replace("{project}", "shop")
        for method, operation in methods.items():
            status = server.ask(method.upper(), address + "?nope=1", b"{}" if method == "post" else None)[0]
            assert str(status) in operation["responses"], (path, method, status)
