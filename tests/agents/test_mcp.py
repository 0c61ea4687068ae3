"""test_mcp.py — lines as agents and others write them in; what `beamwood mcp` answers out."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beamwood as bw
from beamwood.mcp.protocol import LONGEST_LINE, VERSIONS, Session
from beamwood.mcp.tools import tools_of

TEXTS = ["red wool socks", "blue wool hat", "red cotton shirt", "green cotton socks"]
LABELS = [["socks", "wool"], ["hats", "wool"], ["shirts"], ["socks"]]


@pytest.fixture(scope="module")
def shop() -> bw.Model:
    return bw.train_text(TEXTS, LABELS, progress=False)


@pytest.fixture
def session(shop: bw.Model) -> Session:
    return Session(tools_of(shop, "shop.bw"), "how to")


def ask(session: Session, method: str, **params: Any) -> dict[str, Any]:
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
    answer = session.answer(line)
    assert answer is not None
    assert answer["id"] == 7
    return answer


def call(session: Session, name: str, **arguments: Any) -> dict[str, Any]:
    answer = ask(session, "tools/call", name=name, arguments=arguments)
    assert isinstance(answer["result"], dict)
    return answer["result"]


def test_a_client_learns_the_version_and_the_tools(session: Session) -> None:
    for asked, expected in (("2024-11-05", "2024-11-05"), ("1999-01-01", VERSIONS[0]), (None, VERSIONS[0])):
        answer = ask(session, "initialize", protocolVersion=asked, capabilities={}, clientInfo={"name": "a"})
        assert answer["result"]["protocolVersion"] == expected
    tools = ask(session, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["search", "explain", "info"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    assert ask(session, "ping")["result"] == {}


def test_tools_answer_as_the_model_does(session: Session, shop: bw.Model) -> None:
    found = call(session, "search", text="warm wool hat", k=2)
    assert not found["isError"]
    hits = shop.search("warm wool hat", k=2)
    assert [(hit["key"], hit["score"]) for hit in found["structuredContent"]["hits"]] == [
        (hit.key, hit.score) for hit in hits
    ]
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    why = call(session, "explain", text="wool hat", label="hats")["structuredContent"]
    assert why["score"] == shop.explain("wool hat", "hats").score
    assert call(session, "info")["structuredContent"]["labels"] == 4


def test_the_numbers_of_an_encoder_are_one_word_to_an_agent() -> None:
    letters = "abcdehlorstw"
    features = bw.TextFeatures(encoder=lambda texts: np.array([[text.count(c) for c in letters] for text in texts]))
    how: dict[str, Any] = {"block_weights": {"words": 1, "meaning": 1}, "lexical": True, "prune": 0}
    model = bw.train_text(TEXTS, LABELS, features, progress=False, **how)
    told = call(Session(tools_of(model, "shop.bw"), ""), "explain", text="wool hat", label="hats")["structuredContent"]
    shares = [share for tree in told["trees"] for step in tree["steps"] for share in step["shares"]]
    assert [share["word"] for share in shares].count("(meaning)") == len(told["trees"])
    exact = model.explain("wool hat", "hats").trees[0].steps[0].shares
    summed = next(share["product"] for share in shares if share["word"] == "(meaning)")
    assert summed == sum(share.product for share in exact if share.word == "(meaning)")
    assert {share["word"] for share in told["words"]["shares"]} == {"wool", "hat"}


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("search", {"text": 3}, "expected a string"),
        ("search", {"text": "wool", "k": 0}, "k is 0"),
        ("search", {"text": "wool", "k": 10**9}, "expected a whole number"),
        ("search", {"text": "wool", "k": "many"}, "k is 'many'"),
        ("explain", {"text": "wool", "label": "no such"}, "no such"),
        ("explain", {"text": "wool", "label": 3}, "expected the key"),
    ],
)
def test_what_a_tool_cannot_do_is_said_to_the_agent(
    session: Session, name: str, arguments: dict[str, Any], says: str
) -> None:
    result = call(session, name, **arguments)
    assert result["isError"]
    assert says in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": 1, "method": 5}', -32600),
        (b'{"id": 1, "method": "resources/list"}', -32601),
        (b'{"id": 1, "method": "tools/call", "params": []}', None),
        (b'{"id": 1, "method": "tools/call", "params": [1]}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "rm"}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": {}}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "search"}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"x": 1}}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": "wool"}}', -32602),
    ],
)
def test_what_is_not_the_protocol_gets_a_code(session: Session, line: bytes, code: int | None) -> None:
    answer = session.answer(line)
    assert answer is not None
    assert answer["error"]["code"] == (code or -32602)


def test_notifications_answers_and_empty_lines_get_no_answer(session: Session) -> None:
    for line in (b"\n", b'{"method": "notifications/initialized"}', b'{"id": 3, "result": {}}'):
        assert session.answer(line) is None


def test_a_line_over_the_limit_is_refused_and_the_next_one_answered(session: Session) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    out = io.BytesIO()
    session.serve(io.BytesIO(b"x" * (2 * LONGEST_LINE + 5) + b"\n" + ping), out)
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first["error"]["code"] == -32600
    assert second["result"] == {}


def test_the_verb_speaks_only_the_protocol_and_ends_with_its_input(shop: bw.Model, tmp_path: Path) -> None:
    shop.save(tmp_path / "shop.bw")
    request = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "search"}}
    request["params"]["arguments"] = {"text": "wool \ud800"}  # type: ignore[index]
    ran = subprocess.run(
        [sys.executable, "-m", "beamwood", "mcp", str(tmp_path / "shop.bw")],
        input=json.dumps(request).encode() + b"\n",
        capture_output=True,
        check=True,
    )
    (line,) = ran.stdout.splitlines()
    assert json.loads(line)["result"]["structuredContent"]["hits"][0]["key"] == "wool"


def test_a_model_that_reads_no_texts_is_refused_in_one_line(tmp_path: Path) -> None:
    layer = bw.Layer(sp.eye(3, format="csc", dtype="f4"), [0, 0, 0])
    bw.Model.from_layers([layer]).save(tmp_path / "plain.bw")
    ran = subprocess.run(
        [sys.executable, "-m", "beamwood", "mcp", str(tmp_path / "plain.bw")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
