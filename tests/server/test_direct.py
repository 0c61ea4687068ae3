"""Claims about the server's quick way: it reads, answers, counts and logs a plain search as the application does."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.models import small_model  # noqa: E402
from support.serving import TOKEN, Running, shop, wait_for  # noqa: E402

from beamwood import _core  # noqa: E402
from beamwood.server.app.replies import Refusal  # noqa: E402
from beamwood.server.app.schema import RequestReader, SearchRequest  # noqa: E402
from beamwood.server.options import ServeOptions  # noqa: E402

BODIES = [
    b'{"text": "red wool socks", "k": 10, "beam": 20}', b'{"k":1,"text":"a"}', b'{"text": "", "model": "shop"}',
    b'{"text": "\\u00fc \\ud83c\\udf32 \\" \\\\ \\/ \\n \\ud800"}', '{"text": "wärme 🌲", "beam": 1000}'.encode(),
    b' {\n"text"\t:\r"x" , "k" : 1000 } ', b'{"text": "a", "k": 1e1}', b'{"text": "a", "k": 010}', b'{"text": null}',
]  # fmt: skip
QUERIES = [
    b"q=red+wool+socks&k=10&beam=20", b"q=%C3%BC%20%2B&model=shop", b"k=1&q=", b"q=a&k=007", b"q=a%zz", b"q=a&&k=1",
    b"q=a;b=c", b"q=%ff", b"q=a&q=b",
]  # fmt: skip


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """The same with a few bytes changed, put in or left out."""
    data = bytearray(seed)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        what = bytes([chance.choice(b'{}":,\\ux0129.eE-+%&=#;abc\x00\n\xff\xc3\xbc ')])
        data[at : at + chance.randrange(2)] = what * chance.randrange(3)
    return bytes(data)


@pytest.mark.parametrize(("posted", "seeds"), [(True, BODIES), (False, QUERIES)])
def test_what_is_read_quickly_means_the_same_to_the_full_reader(posted: bool, seeds: list[bytes]) -> None:
    options = ServeOptions(models={"shop": Path("shop.bw")})
    quick = _core.QuestionReader(options.k, options.beam or 0, options.max_k, options.max_beam)
    full = RequestReader(options).search if posted else RequestReader(options).search_query
    chance, plain = random.Random(0), 0
    for number in range(30_000):
        words = mutated(seeds[number % len(seeds)], chance)
        found: Any = quick.read(posted, words)
        if found is None:
            continue
        plain += 1
        try:
            asked = full(words)
        except Refusal as refusal:
            raise AssertionError(f"{words!r} was read as {found}, but {refusal.message}") from None
        assert found == (asked.text, asked.k, asked.beam, asked.model or ""), words
        assert asked == SearchRequest(asked.model, asked.k, asked.beam, asked.text)
    assert plain > 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("direct")
    shop().save(here / "shop.bw")
    small_model().save(here / "numbers.bw")
    (here / "token").write_text(TOKEN)
    return here


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with Running(folder / "shop.bw", "--name", f"numbers={folder / 'numbers.bw'}") as running:
        for _ in range(50):  # until it is known to be short
            running.json("POST", "/v1/search", {"text": "wool"})
        yield running


class Talk:
    """A connection that stays open."""

    def __init__(self, server: Running) -> None:
        self.socket = socket.create_connection((server.host, server.port), 20)
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()

    def send(self, head: bytes, body: bytes = b"") -> None:
        length = b"content-length: %d\r\n" % len(body) if body else b""
        self.socket.sendall(head + b"\r\nhost: localhost\r\n" + length + b"\r\n" + body)

    def read(self) -> tuple[bytes, list[bytes], Any]:
        """Status, names of the headers, and the body without its times."""
        first = self.stream.readline()
        lines = list(iter(self.stream.readline, b"\r\n"))
        headers = dict(line.strip().split(b": ", 1) for line in lines)
        body = json.loads(self.stream.read(int(headers[b"content-length"])))
        return first, [*headers], {name: value for name, value in body.items() if not name.endswith("_us")}


POST, GET = b"POST /v1/search HTTP/1.1", b"GET /v1/search?q=warm+wool+socks&k=3 HTTP/1.1"
BODY = b'{"text": "warm wool socks", "k": 3}'


def counted(server: Running) -> int:
    text = server.ask("GET", "/metrics")[2].decode()
    expected = ('beamwood_requests_total{route="/v1/search",status="200"} ', 'beamwood_seconds_count{stage="total"} ')
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(expected))


@pytest.mark.parametrize(("head", "body"), [(POST, BODY), (GET, b"")])
def test_both_ways_answer_count_and_log_the_same(server: Running, head: bytes, body: bytes) -> None:
    before = counted(server)
    with Talk(server) as talk:
        talk.send(head + b"\r\nx-request-id: quick", body)
        quick = talk.read()
        talk.send(head + b"\r\nx-request-id: full\r\nconnection: close", body)
        full = talk.read()
    assert quick[0] == full[0] == b"HTTP/1.1 200 OK\r\n"
    assert quick[2] == full[2]
    assert set(full[1]) - set(quick[1]) == {b"connection"}
    assert counted(server) == before + 4
    wait_for(lambda: "full" in server.logged())
    lines = {line["id"]: line for line in server.lines() if line.get("id") in ("quick", "full")}
    assert set(lines["quick"]) == set(lines["full"])
    for name in ("event", "worker", "method", "route", "status", "model", "queue_ms"):
        assert lines["quick"][name] == lines["full"][name]
    assert lines["quick"]["time"][:10] == lines["full"]["time"][:10]


def test_requests_in_pieces_and_in_a_row_are_answered_in_order(server: Running) -> None:
    with Talk(server) as talk:
        talk.send(POST, BODY)
        alone = talk.read()
        asked = b"%b\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b"
        talk.socket.sendall(b"".join(asked % (POST, len(body), body) for body in (BODY, b'{"text": 1}', BODY)))
        first, second, third = talk.read(), talk.read(), talk.read()
        assert first[2] == third[2] == alone[2]
        assert b" 422 " in second[0]
        whole = asked % (POST, len(BODY), BODY)
        for cut in range(1, len(whole), 7):
            talk.socket.sendall(whole[:cut])
            assert server.json("POST", "/v1/search", BODY)["hits"] == alone[2]["hits"]
            talk.socket.sendall(whole[cut:])
            assert talk.read()[2] == alone[2]


def test_a_model_without_words_is_not_passed_over(folder: Path, server: Running) -> None:
    assert server.json("POST", "/v1/search", {"text": "wool", "model": "shop"})["model"] == "shop"
    assert server.json("POST", "/v1/search", {"text": "a", "model": "numbers"}, status=422)["error"]["field"] == "text"
    with Running(folder / "numbers.bw", "--name", f"shop={folder / 'shop.bw'}") as other:
        for _ in range(50):
            assert other.json("POST", "/v1/search", {"text": "wool", "model": "shop"})["model"] == "shop"
        assert other.json("POST", "/v1/search", {"text": "wool"}, status=422)["error"]["field"] == "text"


def test_the_quick_way_is_guarded_too(folder: Path) -> None:
    with Running(folder / "shop.bw", "--token-file", folder / "token") as server:
        for _ in range(50):
            server.json("POST", "/v1/search", BODY, authorization=f"bearer {TOKEN}")
        for wrong in ({}, {"authorization": TOKEN}, {"authorization": f"Bearer {TOKEN}x"}):
            server.json("POST", "/v1/search", BODY, status=401, **wrong)
            server.json("GET", "/v1/search?q=wool", status=401, **wrong)
