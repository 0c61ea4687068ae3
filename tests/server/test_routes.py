"""Claims about what the routes of a real server answer and refuse, and about its page."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from support.serving import Running, counted, same, shop, wait_for

import beamwood as bw
from beamwood.server.app.routes import ROUTES

# --- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_has_the_bits_of_the_model(server: Running, model: bw.Model) -> None:
    for text in ("warm wool socks", "red", "boots for the sun", "Ünïcode \u2028 wool", ""):
        for k, beam in ((1, 1), (5, 10), (100, 50)):
            found = server.json("POST", "/v1/search", {"text": text, "k": k, "beam": beam})
            assert same(found["hits"], model.search(text, k, beam))
            assert found["known_terms"] == model.search(text, k, beam).known_terms
            assert found["version"] == model.version
            assert found["engine_us"] >= 0


def test_get_asks_the_same_as_post(server: Running) -> None:
    posted = server.json("POST", "/v1/search", {"text": "wool hat", "k": 3, "beam": 2, "min_score": 0.1})
    got = server.json("GET", "/v1/search?q=wool+hat&k=3&beam=2&min_score=0.1")
    assert got["hits"] == posted["hits"]
    assert got["hits"]


def test_many_texts_are_answered_as_one_by_one(server: Running, model: bw.Model) -> None:
    texts = ["wool socks", "nothing known", "silk", ""]
    found = server.json("POST", "/v1/search", {"texts": texts, "k": 3})["results"]
    assert all(same(result["hits"], model.search(text, 3)) for text, result in zip(texts, found, strict=True))


def test_features_are_answered_as_topk_does(server: Running, folder: Path) -> None:
    numbers = bw.load(folder / "numbers.bw")
    row = np.zeros((1, 50), np.float32)
    row[0, [3, 17]] = 0.5, -1.25
    labels, scores = numbers.topk(row, 5)
    found = server.json("POST", "/v1/search", {"model": "numbers", "features": [[17, -1.25], [3, 0.5]], "k": 5})
    assert [hit["label"] for hit in found["hits"]] == labels[0].tolist()
    assert [np.float32(hit["score"]) for hit in found["hits"]] == scores[0].tolist()


def test_exact_and_min_score_are_passed_on(server: Running, model: bw.Model) -> None:
    found = server.json("POST", "/v1/search", {"text": "wool", "k": 4, "beam": 1, "exact": True, "min_score": 0.01})
    assert same(found["hits"], model.search("wool", 4, 1, 0.01, exact=True))


def test_filters_by_key_and_by_name(server: Running, model: bw.Model) -> None:
    wide = {"text": "wool socks", "k": 20, "beam": 50}
    allowed = server.json("POST", "/v1/search", {**wide, "allow": ["hats", "wool"]})["hits"]
    assert {hit["key"] for hit in allowed} == {"hats", "wool"}
    denied = server.json("POST", "/v1/search", {**wide, "deny": ["wool"]})["hits"]
    assert "wool" not in {hit["key"] for hit in denied}
    assert len(denied) == model.n_labels - 1
    named = server.json("POST", "/v1/search", {**wide, "filter": "feet"})["hits"]
    assert {hit["key"] for hit in named} == {"socks", "boots"}
    assert same(named, model.search("wool socks", 20, 50, filter=model.filter(allow=["socks", "boots"])))


def test_an_explanation_adds_up_to_the_score(server: Running, model: bw.Model) -> None:
    best = model.search("warm wool socks", 1)[0]
    for label in (best.label, best.key):
        found = server.json("POST", "/v1/explain", {"text": "warm wool socks", "label": label})
        assert np.float32(found["score"]) == np.float32(best.score)
        assert found["key"] == best.key
        for step in found["trees"][0]["steps"]:
            z = np.float32(0)
            for part in step["shares"]:
                z = np.float32(z + np.float32(part["product"]))
            assert np.float32(z + np.float32(step["bias"])) == np.float32(step["z"])


def test_models_and_labels_are_described(server: Running, model: bw.Model) -> None:
    names = [found["name"] for found in server.json("GET", "/v1/models")["models"]]
    assert names == ["shop", "numbers"]
    assert server.json("GET", "/v1/labels/3")["key"] == model.key(3)
    assert server.json("GET", "/v1/labels/3?model=numbers")["model"] == "numbers"
    server.json("GET", f"/v1/labels/{model.n_labels}", status=404)
    server.json("GET", "/v1/labels/x", status=404)


def test_annif_asks_in_its_own_way(server: Running) -> None:
    project = server.json("GET", "/v1/projects")["projects"][0]
    assert server.json("GET", f"/v1/projects/{project['project_id']}") == project
    form = b"text=warm+wool+socks&limit=3"
    kind = "application/x-www-form-urlencoded"
    found = server.json("POST", "/v1/projects/shop/suggest", form, content_type=kind)["results"]
    assert found
    assert len(found) <= 3
    assert all(set(hit) >= {"uri", "label", "score"} and 0 < hit["score"] <= 1 for hit in found)
    server.json("GET", "/v1/projects/none", status=404)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b"{", None, "not JSON"),
        ([1], None, "an object like"),
        ({}, "text", "exactly one of text or texts or features"),
        ({"text": 3}, "text", "expected a string, found the number 3"),
        ({"text": "a", "texts": ["b"]}, "text", "found text and texts"),
        ({"texts": []}, "texts", "a list of 1 to 1,000 strings"),
        ({"texts": ["a", 2]}, "texts[1]", "expected a string"),
        ({"text": "a", "k": 0}, "k", "a whole number from 1 to 1,000"),
        ({"text": "a", "k": 10**30}, "k", "a whole number"),
        ({"text": "a", "beam": "10"}, "beam", "found the string '10'"),
        ({"text": "a", "exact": 1}, "exact", "true or false"),
        ({"text": "a", "kk": 1}, "kk", "not known; expected one of model, text"),
        ({"text": "a", "allow": "socks"}, "allow", "a list of"),
        ({"text": "a", "allow": ["no such key"]}, "allow", "no such key"),
        ({"text": "a", "filter": "none"}, "filter", "there are: feet"),
        ({"text": "a", "filter": "feet", "deny": ["wool"]}, "filter", "not both"),
        ({"features": [[0]]}, "features[0]", "a pair [index, value]"),
        ({"features": [[10**6, 1.0]]}, "features", "does not exist: the model has"),
        ({"features": [[0, 1e39]]}, "features[0]", "finite float32"),
        ({"model": "numbers", "text": "a"}, "text", "knows no words"),
    ],
)
def test_bad_input_is_told_what_is_wrong(server: Running, body: Any, field: str | None, says: str) -> None:
    error = server.json("POST", "/v1/search", body, status=422)["error"]
    assert says in error["message"]
    assert error.get("field") == field


def test_unknown_things_are_404_and_wrong_methods_405(server: Running) -> None:
    server.json("GET", "/nothing", status=404)
    server.json("POST", "/v1/search", {"text": "a", "model": "none"}, status=404)
    status, headers, _ = server.ask("DELETE", "/v1/search")
    assert (status, headers["allow"]) == (405, "POST, GET, HEAD")


def test_large_bodies_are_413_before_they_are_read(server: Running) -> None:
    with socket.create_connection((server.host, server.port), 20) as client:
        client.sendall(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n{")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    with socket.create_connection((server.host, server.port), 20) as client:
        client.sendall(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 2)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{", b"408"),
        (b"GET /v1/models HTTP/1.1\r\nhost:", b"408"),
        (b"what is this\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 2000, b"431"),
        (b"GET /v1/search?q=\xff HTTP/1.1\r\nhost: localhost\r\n\r\n", b"4"),
    ],
)
def test_slow_long_and_odd_requests_are_ended(server: Running, sent: bytes, status: bytes) -> None:
    with socket.create_connection((server.host, server.port), 20) as client:
        client.sendall(sent)
        answer = client.recv(4096)
        assert answer.startswith(b"HTTP/1.1 " + status), answer
        assert b'"error"' in answer


def test_errors_tell_nothing_about_the_machine(server: Running, folder: Path) -> None:
    seen = b""
    for body in (b"{", b'{"text": "a", "model": "x"}', b'{"features": [[1000000, 1]]}', b"\x00" * 50):
        seen += server.ask("POST", "/v1/search", body)[2]
    _, headers, data = server.ask("GET", "/nothing")
    everything = (seen + data + json.dumps(headers).encode()).decode()
    for secret in (str(folder), "Traceback", "uvicorn", "python", bw.__version__, ".bw"):
        assert secret not in everything


def test_a_request_id_is_kept_or_made(server: Running) -> None:
    assert server.ask("GET", "/healthz", x_request_id="mine-1")[1]["x-request-id"] == "mine-1"
    for odd in ("has spaces", "x" * 65, "<script>"):
        assert server.ask("GET", "/healthz", x_request_id=odd)[1]["x-request-id"] != odd
    assert len({server.ask("GET", "/healthz")[1]["x-request-id"] for _ in range(3)}) == 3


def test_pages_of_other_origins_read_nothing(server: Running) -> None:
    headers = server.ask("GET", "/v1/models", origin="https://elsewhere.example")[1]
    assert not any(name.startswith("access-control") for name in headers)


# --- the page --------------------------------------------------------------------------------------------------------


def test_pages_load_nothing_from_elsewhere(server: Running) -> None:
    for route in ROUTES:
        if route.file is None:
            continue
        status, headers, data = server.ask("GET", route.path)
        assert status == 200
        outside = re.sub(rb"http://www.w3.org/\d+/svg", b"", data)
        assert b"http://" not in outside
        assert b"https://" not in outside
        assert "default-src 'none'" in headers["content-security-policy"]


def test_stale_keys_are_passed_over_where_the_request_says_so(server: Running) -> None:
    question = {"text": "wool socks", "k": 20, "beam": 50}
    for field in ("allow", "deny"):
        stale = {**question, field: ["wool", "sold out"]}
        error = server.json("POST", "/v1/search", stale, status=422)["error"]
        assert error["field"] == field
        assert '"missing": "ignore"' in error["message"]
        found = server.json("POST", "/v1/search", {**stale, "missing": "ignore"})["hits"]
        assert found == server.json("POST", "/v1/search", {**question, field: ["wool"]})["hits"]
    assert server.json("GET", "/v1/search?q=wool&allow=wool&allow=none&missing=ignore")["hits"][0]["key"] == "wool"
    error = server.json("POST", "/v1/search", {**question, "missing": "x"}, status=422)["error"]
    assert error["field"] == "missing"


def test_labels_are_found_by_key_and_by_number(tmp_path: Path) -> None:
    keys = ["2", "https://example.org/a b?c", "1"]
    model = bw.train_text(["red", "green", "blue"] * 3, [[key] for key in keys] * 3, progress=False)
    model.save(tmp_path / "m.bw")
    with Running(tmp_path / "m.bw") as server:
        for key in keys:
            found = server.json("GET", f"/v1/labels/{quote(key, safe='')}?by=key")
            assert (found["key"], found["label"]) == (key, model.label_of(key))
        assert server.json("GET", f"/v1/labels/{quote(keys[1], safe='')}")["key"] == keys[1]
        for number in range(3):
            assert server.json("GET", f"/v1/labels/{number}")["label"] == number
        assert server.json("GET", "/v1/labels/9?by=key", status=404)["error"]["code"] == "unknown-label"
        assert server.json("GET", "/v1/labels/1?by=x", status=422)["error"]["field"] == "by"


def test_a_damaged_table_of_keys_is_told_as_such_for_one_text_and_for_many(tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    shop().save(path)
    data = bytearray(path.read_bytes())
    arrays = 8 + int.from_bytes(data[:8], "little")
    sections = json.loads(data[8:arrays])
    start, end = sections["keys/offsets"]["data_offsets"]
    data[arrays + start + 8 : arrays + end - 8] = b"\xff" * (end - start - 16)
    path.write_bytes(data)
    with Running(path) as server:
        for body in ({"text": "wool"}, {"texts": ["wool", "socks"]}, {"text": "wool", "exact": True}):
            error = server.json("POST", "/v1/search", body, status=500)["error"]
            assert error["code"] == "model-damaged", body
    with pytest.raises(bw.FormatError, match="damaged"):
        bw.load(path).search_many(["wool", "socks"])


def test_a_model_is_asked_before_the_server_says_that_it_is_ready(folder: Path) -> None:
    for how in ("questions", "file", "off"):
        words = ("--name", f"numbers={folder / 'numbers.bw'}", "--warm", how)
        with Running(folder / "shop.bw", *words) as server:
            wait_for(lambda: "worker ready" in server.logged())
            events = [line for line in server.lines() if line["event"] in ("model warm", "worker ready")]
            assert [line["event"] for line in events] == ["model warm", "model warm", "worker ready"]
            assert all((line["questions"] > 0) == (how != "off") for line in events[:2])
            assert counted(server, "beamwood_rows_total") == 0
