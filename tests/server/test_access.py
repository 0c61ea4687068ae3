"""Claims about who may ask a real server, and which servers are refused before they start."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.serving import BEARER, TOKEN, Running

from beamwood.server.app.routes import ROUTES


def test_a_token_guards_everything_but_health_and_the_page(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        for route in ROUTES:
            if route.open or route.file is not None:  # with every file that the page and /docs load
                assert server.ask("GET", route.path)[0] == 200, route.path
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
    packages = "'uvicorn<0.55,>=0.53' 'uvloop>=0.19' 'httptools>=0.6.1' 'orjson>=3.9'"
    assert ran.stderr == f"error: serve needs packages that are not installed: uvloop. Run: pip install {packages}\n"


# --- the head of a request -------------------------------------------------------------------------------------------

SEARCH = b"GET /v1/search?q=wool HTTP/1.1"


def answer_to(server: Running, head: bytes, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to these very bytes."""
    with socket.create_connection((server.host, server.port), 20) as client:
        client.sendall(head + b"\r\n\r\n" + body)
        with client.makefile("rb") as stream:
            status = int(stream.readline().split()[1])
            headers = dict(line.strip().lower().split(b": ", 1) for line in iter(stream.readline, b"\r\n"))
            return status, json.loads(stream.read(int(headers[b"content-length"])))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8000"])
def test_a_server_of_this_machine_answers_to_its_names(server: Running, host: str) -> None:
    for _ in range(2):
        assert answer_to(server, SEARCH + f"\r\nhost: {host}".encode())[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhostx", "[::2]", "localhost:1:2", ""])
@pytest.mark.parametrize("head", [SEARCH, b"GET /healthz HTTP/1.1", b"GET / HTTP/1.1", b"POST /v1/search HTTP/1.1"])
def test_other_sites_cannot_ask_it_under_their_own_name(server: Running, head: bytes, host: str) -> None:
    for _ in range(30):  # until searches are known to be short
        server.json("GET", "/v1/search?q=wool")
    status, body = answer_to(server, head + f"\r\nhost: {host}".encode())
    assert (status, body["error"]["code"]) == (403, "host-not-allowed")
    assert "--allow-host" in body["error"]["message"]


def test_more_hosts_are_answered_to_where_they_are_allowed(folder: Path) -> None:
    for words, allowed in (
        (("--allow-host", "Shop.example"), {"shop.example", "localhost"}),
        (("--allow-host", "*"), {"shop.example", "localhost", "evil.example"}),
        (("--token-file", folder / "token"), {"shop.example", "localhost", "evil.example"}),
    ):
        with Running(folder / "shop.bw", *words) as server:
            for host in ("shop.example", "localhost", "evil.example"):
                head = SEARCH + f"\r\nauthorization: Bearer {TOKEN}\r\nhost: {host}:80".encode()
                assert answer_to(server, head)[0] == (200 if host in allowed else 403), (words, host)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (SEARCH, 400),
        (SEARCH + b"\r\nhost: localhost\r\nhost: localhost", 400),
        (SEARCH + b"\r\nhost: localhost\r\nauthorization: Bearer a\r\nauthorization: Bearer b", 400),
        (b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip, chunked", 501),
        (b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ntransfer-encoding: gzip", None),
        (b"GET /v1/search?q=wool HTTP/2.0\r\nhost: localhost", 505),
        (b"GET /v1/search?q=wool HTTP/1.0", 200),
    ],
)
def test_heads_that_can_be_read_in_two_ways_are_refused(server: Running, head: bytes, status: int | None) -> None:
    for _ in range(30):
        server.json("GET", "/v1/search?q=wool")
    chunked = b"10\r\n" + b'{"text": "wool"}' + b"\r\n0\r\n\r\n" if b"chunked" in head else b""
    found, body = answer_to(server, head, chunked)
    assert found == status if status is not None else 400 <= found < 600
    assert ("error" in body) == (found != 200)
