"""again.py — requests of Ray Serve's HTTP proxies in, their answers out, also where the ingress died with the request.

A proxy hands a request to an ingress and, when that dies, ends without an answer: a bare 500. Nothing that a model is
asked changes anything, so such a request is asked once more, of another ingress or the one that was started instead;
then it is a 503 that says so. Ray Serve takes this in where RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH names it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

WHERE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
WHAT = "beamwood.ray.again:middlewares"
_MOST = 1 << 20  # bytes of a body that are kept to be sent again

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


def middlewares() -> list[Any]:
    """What a proxy puts before its application."""
    from starlette.middleware import Middleware

    return [Middleware(AskAgain)]


class AskAgain:
    """An ASGI application before another one, which may end without an answer."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(receive, send)
        for _ in range(2):
            await self._app(dict(scope), request.receive, request.send)
            if request.answered:
                return
            if not request.from_the_start():
                break
        await _refused(send)


class _Request:
    """A request whose body can be read once more, as long as nothing was answered."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._kept: list[Message] = []
        self._size = self._next = 0
        self.answered = self._gone = False

    async def receive(self) -> Message:
        """The next message of the client."""
        if self._next < len(self._kept):
            self._next += 1
            return self._kept[self._next - 1]
        message = await self._receive()
        self._gone = self._gone or message["type"] == "http.disconnect"
        self._size += len(message.get("body", b""))
        if not self._gone and self._size <= _MOST:
            self._kept.append(message)
            self._next += 1
        return message

    async def send(self, message: Message) -> None:
        """A message to the client."""
        self.answered = True
        await self._send(message)

    def from_the_start(self) -> bool:
        """Whether the request can be read again: the client waits, and the body was not too long to keep."""
        self._next = 0
        return not self._gone and self._size <= _MOST


async def _refused(send: Send) -> None:
    message = "The process that had the request died, and so did the next one. Ask again."
    body = json.dumps({"error": {"code": "ingress-died", "message": message}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", b"1"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
