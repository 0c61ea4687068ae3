"""Requests whose ingress dies with them: what stands before a proxy, and an application that ends silently."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from beamwood.ray.again import AskAgain

BODY = [b"red ", b"wool"]


class Silent:
    """Reads the whole body and ends without an answer, as Ray's proxy does when the ingress died, so many times."""

    def __init__(self, times: int, started: bool = False) -> None:
        self.bodies: list[bytes] = []
        self._times, self._started = times, started

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)
        if len(self.bodies) <= self._times and not self._started:
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if not self._started:
            await send({"type": "http.response.body", "body": body})


def told(app: Any, parts: list[bytes], gone: bool = False) -> list[dict[str, Any]]:
    """What a client is sent."""
    sent: list[dict[str, Any]] = []
    messages: Any = [
        {"type": "http.request", "body": part, "more_body": n + 1 < len(parts)} for n, part in enumerate(parts)
    ]
    messages = [*messages[:-1], {"type": "http.disconnect"}] if gone else messages

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(AskAgain(app)({"type": "http"}, receive, send))
    return sent


def test_a_request_that_was_not_answered_is_asked_once_more_with_its_whole_body() -> None:
    app = Silent(1)
    assert [one["status"] for one in told(app, BODY) if "status" in one] == [200]
    assert app.bodies == [b"red wool", b"red wool"]


def test_an_answer_is_left_alone_and_one_that_broke_off_is_not_asked_again() -> None:
    for app in (Silent(0), Silent(0, started=True)):
        assert told(app, BODY)[0]["status"] == 200
        assert len(app.bodies) == 1


@pytest.mark.parametrize(("parts", "asked"), [(BODY, 2), ([b"x" * (1 << 20), b"x"], 1)])
def test_what_cannot_be_answered_is_a_503_that_says_so(parts: list[bytes], asked: int) -> None:
    app = Silent(9)
    start, body = told(app, parts)
    assert start["status"] == 503
    assert (b"retry-after", b"1") in start["headers"]
    assert json.loads(body["body"])["error"]["code"] == "ingress-died"
    assert len(app.bodies) == asked


def test_a_client_that_went_away_is_not_asked_for() -> None:
    app = Silent(9)
    told(app, BODY, gone=True)
    assert not app.bodies
