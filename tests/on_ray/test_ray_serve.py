"""A model that was cut, served by Ray Serve: the answers of the whole over HTTP, missing shards named or declared."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import beamwood as bw
import beamwood.ray as cluster_of

ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

PORT = 18321


class Service:
    """A model, and the same cut and served."""

    def __init__(self, model: bw.Model, folder: Path, texts: list[str]) -> None:
        self.model, self.folder, self.texts = model, folder, texts

    def ask(self, body: dict[str, Any], path: str = "/v1/search") -> tuple[int, dict[str, Any], Any]:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.status, json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            said = error.read()
            return error.code, json.loads(said) if said.startswith(b"{") else {"said": said}, error.headers

    def kill(self, deployment: str) -> None:
        """Ends the processes of all replicas of a deployment whose name starts so."""
        for actor in ray.util.list_named_actors(all_namespaces=True):
            if f"#{deployment}" in actor["name"]:
                ray.kill(ray.get_actor(actor["name"], namespace=actor["namespace"]))

    def expected(self, text: str, **asked: Any) -> Any:
        return json.loads(b"{" + self.model.search_json(text, **asked).fields + b"}")


@pytest.fixture(scope="module")
def service(nodes: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    from ray import serve

    found = bw.datasets.load("library-subjects")
    texts, labels = found.train_texts[:2000], found.train_labels[:2000]
    model = bw.train_text(texts, labels, lexical=True, trees=2, progress=False)
    folder = tmp_path_factory.mktemp("cut") / "parts"
    bw.shard(model, folder, 3)
    cluster_of.serve(folder, address=nodes.address, port=PORT, cpus=0.0, shard_seconds=3.0)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    try:
        yield Service(model, folder, texts)
    finally:
        serve.shutdown()
        ray.shutdown()


def test_answers_over_http_are_those_of_the_whole_model(service: Service) -> None:
    for number, text in enumerate(service.texts[:40]):
        asked = {"k": 1 + number, "beam": 1 + 2 * number}
        status, answer, _ = service.ask({"text": text, **asked})
        assert status == 200, answer
        assert answer["version"] == service.model.version
        assert {name: answer[name] for name in ("hits", "known_terms")} == service.expected(text, **asked)
    allow = [service.model.key(label) for label in range(0, service.model.n_labels, 3)]
    status, answer, _ = service.ask({"text": service.texts[0], "allow": allow})
    assert status == 200
    assert answer["hits"] == service.expected(service.texts[0], filter=service.model.filter(allow))["hits"]
    status, answer, _ = service.ask({"texts": service.texts[:30]})
    assert [row["hits"] for row in answer["results"]] == [service.expected(t)["hits"] for t in service.texts[:30]]


def test_the_client_and_the_page_work_unchanged(service: Service) -> None:
    with bw.Client(f"http://127.0.0.1:{PORT}") as client:
        got = client.search(service.texts[0])
        found: list[Any] = [(hit.key, hit.score) for hit in got]
        assert found == [(hit.key, pytest.approx(hit.score)) for hit in service.model.search(service.texts[0])]
    pages = {"/": b"<!doctype html", "/v1/models": b'"labels"', "/metrics": b"beamwood_", "/readyz": b"ready"}
    for path, expected in pages.items():
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=30) as answer:
            assert expected in answer.read().lower()
    assert service.ask({"text": "x", "nonsense": 1})[0] == 422
    assert service.ask({"text": "x", "partial": "yes"})[0] == 422


def test_partial_answers_of_a_whole_service_are_whole_and_say_so(service: Service) -> None:
    status, answer, headers = service.ask({"text": service.texts[0], "partial": True})
    assert status == 200
    assert answer["coverage"]["exact"] is True
    assert headers["x-coverage"] == "1.000000"
    assert answer["hits"] == service.expected(service.texts[0])["hits"]


def test_a_shard_that_dies_is_named_or_declared_and_comes_back(service: Service) -> None:
    text = service.texts[1]
    expected = service.expected(text)["hits"]
    service.kill("shard-1")
    named = declared = 0
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        status, answer, headers = service.ask({"text": text, "partial": True})
        assert status == 200, answer
        if answer["coverage"]["exact"]:
            assert answer["hits"] == expected
        else:
            declared += 1
            assert answer["coverage"]["shards"]["missing"] == [1]
            assert headers["cache-control"] == "no-store"
        status, answer, _ = service.ask({"text": text})
        assert status in (200, 503), answer
        if status == 200:
            assert answer["hits"] == expected
            break
        named += 1
        assert "shard 1 of 3 does not answer" in answer["error"]["message"]
    else:
        pytest.fail("the shard did not come back")


def test_a_request_whose_ingress_dies_is_asked_again(service: Service) -> None:
    text, met, stop = service.texts[2], set[int](), threading.Event()
    expected = service.expected(text)["hits"]

    def ask_on() -> None:
        while not stop.is_set():
            status, answer, _ = service.ask({"text": text})
            met.add(status)
            assert status != 200 or answer["hits"] == expected

    clients = [threading.Thread(target=ask_on) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        for _ in range(3):
            service.kill("ingress")
            ends = time.monotonic() + 60
            while service.ask({"text": text})[0] != 200:
                assert time.monotonic() < ends
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert met <= {200, 503}  # a bare 500 is what Ray's proxy says without us
    assert 200 in met
