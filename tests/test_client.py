"""Claims about beamwood.Client, against a real server and against one that is scripted to be busy."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

import beamwood as bw

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.serving import BEARER, TOKEN, Running, counted, shop, wait_for  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("client")
    shop().save(here / "shop.bw")
    (here / "token").write_text(TOKEN)
    return here


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as running:
        yield running


def test_a_client_answers_as_the_model_does(server: Running) -> None:
    model = shop()
    with bw.Client(server.url, token=TOKEN) as client:
        assert client.search("warm wool socks", k=3) == model.search("warm wool socks", k=3)
        assert client.search("nothing known").known_terms == 0
        assert client.search_many(["wool", "silk"], k=2) == model.search_many(["wool", "silk"], k=2)
        allowed = client.search("wool", allow=["hats"])
        assert [hit.key for hit in allowed] == ["hats"]
        best = model.search("wool", k=1)[0]
        expected = model.explain("wool", best.label).to_dict()
        assert client.explain("wool", best.key) == client.explain("wool", best.label) == expected
        assert client.topk([(0, 1.0)], k=2)
        assert [found["name"] for found in client.models()] == ["shop"]
        assert client.reload()[0]["version"] == client.models()[0]["version"]


def test_what_a_server_refuses_is_an_error_with_its_message(server: Running) -> None:
    with bw.Client(server.url, token=TOKEN) as client:
        with pytest.raises(bw.DataError, match="k: expected a whole number from 1"):
            client.search("wool", k=0)
        with pytest.raises(bw.ServerError, match="no model of that name") as caught:
            client.search("wool", model="none")
        assert caught.value.status == 404
    with bw.Client(server.url) as client, pytest.raises(bw.ServerError, match="Authorization"):
        client.models()
    with bw.Client("http://127.0.0.1:9", retries=0) as client, pytest.raises(bw.ServerError, match="Is the server"):
        client.models()


def test_a_busy_server_is_asked_again_after_the_time_it_names() -> None:
    came: list[float] = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(time.monotonic())
            busy = len(came) < 3
            body = b"{}" if busy else json.dumps({"models": []}).encode()
            self.send_response(503 if busy else 200)
            if busy:
                self.send_header("retry-after", "1")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    scripted = HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=scripted.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{scripted.server_port}"
        with bw.Client(url, retries=3) as client:
            assert client.models() == []
        assert [1.0 <= later - before < 2.0 for before, later in pairwise(came)] == [True, True]
        came.clear()
        with bw.Client(url, retries=0) as client, pytest.raises(bw.ServerError) as caught:
            client.models()
        assert caught.value.status == 503
    finally:
        scripted.shutdown()
        scripted.server_close()


def test_importing_beamwood_imports_no_web_library(tmp_path: Path) -> None:
    code = "import sys, beamwood; print(sorted({'http.client', 'ssl', 'uvicorn', 'uvloop', 'orjson'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout == "[]\n"


def test_connections_are_kept_and_those_that_the_server_closed_are_not_used(folder: Path, server: Running) -> None:
    with bw.Client(server.url, token=TOKEN, retries=0) as client:
        for _ in range(5):
            client.search("wool")
        wait_for(lambda: counted(server, "beamwood_connections", **BEARER) == 2)  # the client's, and the one that asks
    with Running(folder / "shop.bw", "--keep-alive-s", "1") as other, bw.Client(other.url, retries=0) as client:
        client.search("wool")
        wait_for(lambda: counted(other, "beamwood_connections") == 1)
        assert client.search("wool")


def test_threads_share_a_client(server: Running) -> None:
    expected = shop().search("warm wool socks")
    with bw.Client(server.url, token=TOKEN, retries=0) as client, ThreadPoolExecutor(8) as pool:
        assert all(hits == expected for hits in pool.map(lambda _: client.search("warm wool socks"), range(200)))


def test_an_address_may_have_a_path_and_a_proxy_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'{"models": []}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Proxy) as scripted:
        threading.Thread(target=scripted.serve_forever, daemon=True).start()
        here = f"127.0.0.1:{scripted.server_port}"
        try:
            with bw.Client(f"http://{here}/shop/") as client:
                assert client.models() == []
            monkeypatch.setenv("http_proxy", f"http://{here}")
            monkeypatch.setenv("no_proxy", "localhost")
            with bw.Client("http://shop.example:81/x") as client:
                assert client.models() == []
        finally:
            scripted.shutdown()
    assert asked == ["/shop/v1/models", "http://shop.example:81/x/v1/models"]


@pytest.mark.parametrize("url", ["shop.example", "ftp://shop.example", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(bw.SettingsError, match="expected an address like"):
        bw.Client(url)
