"""Claims about a real server over real sockets: answers, refusals, access, swaps, counts, stopping."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import beamwood as bw

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.models import large_model, small_model  # noqa: E402
from support.serving import LABELS, TOKEN, Running, shop, wait_for  # noqa: E402
from uvicorn.server import ServerState  # noqa: E402

from beamwood.server.app.dispatch import App  # noqa: E402
from beamwood.server.app.metrics import Metrics  # noqa: E402
from beamwood.server.app.routes import Routes  # noqa: E402
from beamwood.server.options import ServeOptions  # noqa: E402
from beamwood.server.process.admission import AdmissionQueue  # noqa: E402
from beamwood.server.process.connection import Connection  # noqa: E402
from beamwood.server.process.log import Log  # noqa: E402
from beamwood.server.process.registry import Registry  # noqa: E402
from beamwood.server.process.supervisor import shut  # noqa: E402
from beamwood.server.process.worker import config_of  # noqa: E402

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("serve")
    shop().save(here / "shop.bw")
    small_model().save(here / "numbers.bw")
    (here / "token").write_text(TOKEN + "\n")
    (here / "feet.txt").write_text("socks\nboots\nno such key\n")
    return here


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    words = ("--name", f"numbers={folder / 'numbers.bw'}", "--filter", f"feet={folder / 'feet.txt'}")
    with Running(
        folder / "shop.bw", *words[:2], *words[2:], "--read-timeout-ms", "700", "--max-body", "20000"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def model(folder: Path) -> bw.Model:
    return bw.load(folder / "shop.bw")


def same(found: list[dict[str, Any]], hits: list[bw.Hit]) -> bool:
    """Whether an answer is this one, score for score."""
    return [(h["label"], h["key"], h["name"], np.float32(h["score"])) for h in found] == [
        (h.label, h.key, h.name, np.float32(h.score)) for h in hits
    ]


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
        ({"text": 3}, "text", "a string is wanted, the number 3 was given"),
        ({"text": "a", "texts": ["b"]}, "text", "text and texts was given"),
        ({"texts": []}, "texts", "a list of 1 to 1,000 strings"),
        ({"texts": ["a", 2]}, "texts[1]", "a string is wanted"),
        ({"text": "a", "k": 0}, "k", "a whole number from 1 to 1,000"),
        ({"text": "a", "k": 10**30}, "k", "a whole number"),
        ({"text": "a", "beam": "10"}, "beam", "the string '10' was given"),
        ({"text": "a", "exact": 1}, "exact", "true or false"),
        ({"text": "a", "kk": 1}, "kk", "not known; the fields are model, text"),
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
        client.sendall(b"POST /v1/search HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n{")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    with socket.create_connection((server.host, server.port), 20) as client:
        client.sendall(b"POST /v1/search HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * 2)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /v1/search HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{", b"408"),
        (b"GET /v1/models HTTP/1.1\r\nhost:", b"408"),
        (b"what is this\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 2000, b"431"),
        (b"GET /v1/search?q=\xff HTTP/1.1\r\nhost: x\r\n\r\n", b"4"),
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
    for path in ("/", "/docs", "/page.css", "/page.js", "/docs.js", "/favicon.svg"):
        status, headers, data = server.ask("GET", path)
        assert status == 200
        outside = re.sub(rb"http://www.w3.org/\d+/svg", b"", data)
        assert b"http://" not in outside
        assert b"https://" not in outside
        assert "default-src 'none'" in headers["content-security-policy"]


def test_the_document_names_every_route_and_no_other(server: Running) -> None:
    document = server.json("GET", "/openapi.json")
    for path, methods in document["paths"].items():
        for method in methods:
            status = server.ask(method.upper(), path.replace("{id}", "0"), b"" if method == "post" else None)[0]
            assert status != 405, path
            assert status != 404 or "{id}" in path, path


# --- access ----------------------------------------------------------------------------------------------------------


def test_a_token_guards_everything_but_health_and_the_page(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        for path in ("/", "/healthz", "/readyz", "/openapi.json", "/docs"):
            assert server.ask("GET", path)[0] == 200
        for path in ("/v1/models", "/metrics", "/v1/labels/0", "/v1/projects", "/v1/search?q=wool"):
            status, headers, _ = server.ask("GET", path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert server.ask("GET", path, authorization="Bearer wrong-token-of-some-length")[0] == 401
            assert server.ask("GET", path, authorization=TOKEN)[0] == 401
            assert server.ask("GET", path, **BEARER)[0] == 200
        assert server.ask("POST", "/v1/admin/reload")[0] == 401


def test_without_a_token_no_one_administers(server: Running) -> None:
    assert server.json("POST", "/v1/admin/reload", status=403, **BEARER)["error"]["code"] == "no-token-configured"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("{shop}", "--host", "0.0.0.0"), "--token-file"),
        (("{shop}", "--host", "::"), "--token-file"),
        (("{shop}", "--token-file", "{folder}/feet.txt"), "one token of at least 16"),
        (("{folder}/none.bw",), "none.bw"),
        (("{folder}/feet.txt",), "not a beamwood model"),
        ((), "no model was given"),
        (("{shop}", "--name", "shop={shop}"), "two models are named 'shop'"),
        (("{shop}", "--name", "a b={shop}"), "cannot stand in an address"),
        (("{shop}", "--filter", "x={folder}/none"), "cannot be read"),
        (("{shop}", "--beam", "5000"), "--max-beam"),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused_in_a_line(folder: Path, words: tuple[str, ...], says: str) -> None:
    given = [word.format(folder=folder, shop=folder / "shop.bw") for word in words]
    command = [sys.executable, "-m", "beamwood", "serve", "--port", "0", *given]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_missing_extra_is_named_with_its_pip_line(folder: Path) -> None:
    code = (
        "import sys, importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvloop' else find(name, *a)\n"
        f"sys.argv = ['beamwood', 'serve', {str(folder / 'shop.bw')!r}]\nfrom beamwood.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "error: serve needs uvloop; install the extra: pip install 'beamwood[serve]'\n"


# --- logs and counts -------------------------------------------------------------------------------------------------


def test_logs_are_json_and_keep_queries_to_themselves(folder: Path) -> None:
    for words, told in (((), False), (("--log-queries",), True)):
        with Running(folder / "shop.bw", *words) as server:
            server.ask("POST", "/v1/search", {"text": "secret wool"}, x_request_id="one")
            server.ask("GET", "/v1/search?q=secret+socks", x_request_id="two")
            assert server.stop() == 0
            lines = {line["id"]: line for line in server.lines() if line["event"] == "request"}
            assert set(lines) == {"one", "two"}
            assert lines["one"]["status"] == 200
            assert {"time", "method", "route", "ms", "queue_ms", "engine_ms", "model"} <= set(lines["one"])
            assert ("secret" in server.logged()) is told


def counted(server: Running, name: str) -> float:
    text = server.ask("GET", "/metrics")[2].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def test_metrics_cover_all_workers(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        ports = set()
        for number in range(60):
            server.json("POST", "/v1/search", {"text": "wool", "beam": 1 + number % 30})
        for line in wait_for(lambda: len(server.lines()) >= 62) or server.lines():
            ports |= {line["worker"]} if line["event"] == "request" else set()
        assert counted(server, 'beamwood_requests_total{route="/v1/search",status="200"}') == 60
        assert counted(server, 'beamwood_seconds_count{stage="engine"}') == 60
        assert counted(server, "beamwood_beam_count") == 60
        assert counted(server, "beamwood_workers{") == 2
        for stage in ("queue", "engine", "total"):
            text = server.ask("GET", "/metrics")[2].decode()
            buckets = re.findall(rf'beamwood_seconds_bucket{{stage="{stage}",le="[^"]+"}} (\d+)', text)
            assert [int(count) for count in buckets] == sorted(int(count) for count in buckets)
            assert buckets[-1] == "60"


# --- swaps -----------------------------------------------------------------------------------------------------------


def test_a_new_file_takes_over_in_every_worker_and_a_bad_one_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    first, second = shop(), shop(preset="best")
    first.save(path)
    with Running(path, "--token-file", folder / "token", workers=2) as server:
        second.save(path)
        version = bw.load(path).version
        told = server.json("POST", "/v1/admin/reload", **BEARER)
        assert told == {"models": [{"name": "m", "version": version}]}
        for _ in range(20):
            found = server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)
            assert found["version"] == version
            assert same(found["hits"], second.search("wool"))
        damaged = bytearray(path.read_bytes())
        arrays = 8 + int.from_bytes(damaged[:8], "little")
        weights = json.loads(damaged[8:arrays])["tree0/layer0/threads"]
        damaged[arrays + weights["data_offsets"][0]] ^= 1
        (tmp_path / "draft").write_bytes(damaged)
        os.replace(tmp_path / "draft", path)
        error = server.json("POST", "/v1/admin/reload", status=409, **BEARER)["error"]
        assert str(tmp_path) not in error["message"]
        for _ in range(10):
            assert server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)["version"] == version
        first.save(path)
        version = bw.load(path).version
        os.kill(server.process.pid, signal.SIGHUP)
        text = f'beamwood_workers{{model="m",version="{version}"}} 2'
        wait_for(lambda: text in server.ask("GET", "/metrics", **BEARER)[2].decode())


def test_a_new_list_of_a_filter_takes_over_in_every_worker_without_a_new_model(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "feet.txt"
    listed.write_text("socks\nboots\n")
    words = ("--filter", f"feet={listed}", "--token-file", folder / "token")
    with Running(folder / "shop.bw", *words, workers=2) as server:

        def found() -> set[str]:
            hits = server.json("POST", "/v1/search", {"text": "wool", "filter": "feet"}, **BEARER)["hits"]
            return {hit["key"] for hit in hits}

        assert found() == {"socks", "boots"}
        listed.write_text("boots\n")
        server.json("POST", "/v1/admin/reload", **BEARER)
        assert all(found() == {"boots"} for _ in range(20))


# --- load ------------------------------------------------------------------------------------------------------------


def test_more_than_it_can_do_is_turned_away_at_once(tmp_path: Path) -> None:
    large_model().save(tmp_path / "large.bw")
    rng = np.random.default_rng(0)
    features = [[int(i), 1.0] for i in np.sort(rng.choice(20000, 400, replace=False))]
    body = json.dumps({"features": features, "beam": 128, "k": 100}).encode()
    with Running(tmp_path / "large.bw", "--queue-ms", "5") as server:
        expected = [hit["label"] for hit in server.json("POST", "/v1/search", body)["hits"]]
        outcomes: list[tuple[int, float]] = []

        def client() -> None:
            connection = server.connect()
            for _ in range(15):
                begun = time.perf_counter()
                connection.request("POST", "/v1/search", body)
                answer = connection.getresponse()
                data = json.loads(answer.read())
                outcomes.append((answer.status, time.perf_counter() - begun))
                if answer.status == 200:
                    assert [hit["label"] for hit in data["hits"]] == expected
                else:
                    assert answer.status == 503
                    assert int(answer.headers["retry-after"]) >= 1
            connection.close()

        clients = [threading.Thread(target=client) for _ in range(24)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert len(outcomes) == 24 * 15
        assert {status for status, _ in outcomes} == {200, 503}


# --- stopping --------------------------------------------------------------------------------------------------------


def test_sigterm_answers_what_came_and_exits_with_0(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        lost: list[str] = []
        answered = [0]
        stop = threading.Event()

        def client() -> None:
            """Asks on and on; whatever is sent on an open connection must be answered, until the server closes it."""
            while not stop.is_set():
                connection = server.connect()
                try:
                    connection.connect()
                except OSError:
                    return
                try:
                    while True:
                        connection.request("POST", "/v1/search", b'{"text": "wool socks"}')
                        answer = connection.getresponse()
                        answer.read()
                        answered[0] += 1
                        if answer.status != 200:
                            lost.append(str(answer.status))
                        if answer.will_close:
                            break
                except OSError as error:
                    lost.append(repr(error))
                finally:
                    connection.close()

        clients = [threading.Thread(target=client) for _ in range(8)]
        for one in clients:
            one.start()
        time.sleep(0.5)
        assert server.stop() == 0
        stop.set()
        for one in clients:
            one.join()
        assert answered[0] > 50
        assert lost == []


@pytest.mark.parametrize("half_done", [False, True])
def test_who_is_connected_when_the_door_is_shut_is_let_in_and_no_one_else(half_done: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if half_done:  # the last packet of the handshake counts when data follow: the client alone is connected
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 10)
        listener.settimeout(10)
        with socket.create_connection(listener.getsockname()) as client:
            shut(listener)
            client.sendall(b"question")
            taken, _ = listener.accept()
            with taken:
                assert taken.recv(100) == b"question"
        with socket.socket() as late:
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.connect(listener.getsockname())


def test_a_request_that_came_and_was_not_read_yet_is_answered_before_its_connection_is_closed(folder: Path) -> None:
    options = ServeOptions(models={"shop": folder / "shop.bw"}, log="off")

    async def run() -> bytes:
        loop, row = asyncio.get_running_loop(), Metrics(["shop"], 1).row(0)
        routes = Routes(options, Registry(options), AdmissionQueue(options, row, loop), row, None)
        app = App(options, routes, row, Log("off"))
        config = config_of(app, options)
        config.load()
        connection = Connection(config, ServerState(), {}, loop)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            await loop.connect_accepted_socket(lambda: connection, listener.accept()[0])
        with client:
            client.setblocking(False)
            app.drain()
            client.send(b"POST /v1/search HTTP/1.1\r\nhost: x\r\ncontent-length: 16\r\n\r\n" + b'{"text": "wool"}')
            connection.shutdown()  # before the event loop has looked at the socket
            answer = b""
            while part := await asyncio.wait_for(loop.sock_recv(client, 65536), 20):
                answer += part
        routes.admission.close()
        return answer

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"hits":[{' in answer


def test_a_killed_worker_comes_back_while_others_go_on(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        time.sleep(1.0)  # a worker that dies young waits a moment before it is started again
        before = server.worker_pids()
        os.kill(before[0], signal.SIGKILL)
        for _ in range(20):
            assert server.json("POST", "/v1/search", {"text": "wool"})["hits"]
        wait_for(lambda: len(server.worker_pids()) == 2 and before[0] not in server.worker_pids())
        wait_for(lambda: counted(server, "beamwood_workers{") == 2)
        assert server.stop() == 0


def test_labels_of_the_fixture_are_those_of_the_model(model: bw.Model) -> None:
    assert {model.key(label) for label in range(model.n_labels)} == {key for keys in LABELS for key in keys}
