"""Claims about the description of the API: it names what the server answers to, and nothing else."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from support.serving import Running

from beamwood.server.app import openapi
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
                body = schema["examples"][0] if kind.endswith("json") else b"text=jazz&limit=5"
            sent = b"" if body is None and method == "post" else body
            status = server.ask(method.upper(), "?".join([address, *asked]), sent)[0]
            assert status == (403 if path.startswith("/v1/admin") else 200), (method, address)


def test_a_field_that_is_not_known_gets_a_status_that_is_documented(server: Running) -> None:
    for path, methods in server.json("GET", "/openapi.json")["paths"].items():
        address = path.replace("{label}", "0").replace("{project}", "shop")
        for method, operation in methods.items():
            status = server.ask(method.upper(), address + "?nope=1", b"{}" if method == "post" else None)[0]
            assert str(status) in operation["responses"], (path, method, status)
