"""Claims about one connection: what it may keep in memory, what it is refused, and that all of it is counted."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.serving import LABELS, Running, counted, peak_memory, shop, wait_for  # noqa: E402

FILLER = b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("connection") / "shop.bw"
    shop().save(path)
    with Running(path, "--read-timeout-ms", "700") as running:
        yield running


def client_of(server: Running) -> socket.socket:
    return socket.create_connection((server.host, server.port), 20)


def received(client: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def test_requests_sent_ahead_are_all_answered_in_order_in_bounded_memory(server: Running) -> None:
    asked = 40_000
    server.json("GET", "/healthz")
    before = peak_memory(server)
    with client_of(server) as client:

        def send() -> None:
            for first in range(0, asked, 1000):
                names = range(first, first + 1000)
                client.sendall(
                    b"".join(
                        b"GET /nope HTTP/1.1\r\nhost: localhost\r\nx-request-id: n-%d\r\n\r\n" % number
                        for number in names
                    )
                )
            client.sendall(
                b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-request-id: last\r\n\r\n"
            )

        sender = threading.Thread(target=send)
        sender.start()
        names = re.findall(rb"x-request-id: (\S+)\r", received(client))
        sender.join()
    assert names == [b"n-%d" % number for number in range(asked)] + [b"last"]
    assert peak_memory(server) - before < 40 << 20  # 2 KB per request, all read at once, would be 84 MB


@pytest.mark.parametrize("gap", [1, 700, 4096])
def test_bodies_sent_ahead_in_any_pieces_are_answered_as_one_by_one(server: Running, gap: int) -> None:
    questions = [json.dumps({"text": "wool " * (1 + number % 400)}).encode() for number in range(60)]
    sent = b"".join(
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n%b\r\n"
        % (len(q), b"connection: close\r\n" * last)
        + q
        for q, last in ((q, number == 59) for number, q in enumerate(questions))
    )
    sent = sent[:3000] if gap == 1 else sent
    with client_of(server) as client:
        for at in range(0, len(sent), gap):
            client.sendall(sent[at : at + gap])
        if gap == 1:  # byte by byte the last request stays a piece
            client.shutdown(socket.SHUT_WR)
        answer = received(client)
    whole = sent.count(b"POST") - (gap == 1)
    assert answer.count(b"HTTP/1.1 200 OK") >= whole - 1
    assert answer.count(b"HTTP/1.1") == answer.count(b"HTTP/1.1 200 OK") + answer.count(b"HTTP/1.1 4")


def test_an_answer_that_no_one_reads_is_not_kept_for_ever(tmp_path: Path) -> None:
    labels = sorted({key for keys in LABELS for key in keys})
    shop().with_names(names=[f"{key} " + "x" * 1000 for key in labels], keys=labels).save(tmp_path / "long.bw")
    question = json.dumps({"texts": ["wool socks"] * 1000, "k": 9, "beam": 100}).encode()
    with Running(tmp_path / "long.bw", "--read-timeout-ms", "500") as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((server.host, server.port))
        client.sendall(
            b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(question) + question
        )
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        wait_for(lambda: counted(server, "beamwood_connections") == 1)  # the one that asks for the metrics
        assert len(received(client)) < 4 << 20  # what the system had taken; the rest of 9 MB is gone


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        (400, [b"what is this\r\n\r\n"]),
        (431, [b"GET / HTTP/1.1\r\n" + FILLER * 1300 + b"\r\n"]),  # 69 KB, in one piece
        (431, [b"GET / HTTP/1.1\r\n"] + [FILLER * 100] * 13 + [b"\r\n"]),  # the same in several
        (408, [b"GET /v1/models HTTP/1.1\r\nhost:"]),
        (408, [b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{"]),
    ],
)
def test_what_is_refused_below_the_application_is_counted_and_logged_once(
    server: Running, status: int, sent: list[bytes]
) -> None:
    def lines() -> int:
        return sum(line.get("status") == status for line in server.lines())

    name = f'beamwood_errors_total{{status="{status}"}}'
    before, logged = counted(server, name), lines()
    with client_of(server) as client:
        for piece in sent:
            client.sendall(piece)
        assert client.recv(4096).startswith(b"HTTP/1.1 %d " % status)
    assert counted(server, name) == before + 1
    wait_for(lambda: lines() == logged + 1)


def test_a_head_just_within_the_limit_is_read(server: Running) -> None:
    with client_of(server) as client:
        client.sendall(
            b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n" + FILLER * 1150 + b"\r\n"
        )  # 61 KB
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
