"""dispatch.py — an ASGI application: a request in, the route that answers it, the answer out, counted and logged."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from beamwood.errors import BeamwoodError, FormatError
from beamwood.server.app.access import Access
from beamwood.server.app.handlers import Handler, Handlers
from beamwood.server.app.metrics import WorkerMetrics
from beamwood.server.app.replies import GONE, Gone, Refusal, Reply
from beamwood.server.app.routes import ROUTES, UNKNOWN, UNREAD, Route, Router, operation_of
from beamwood.server.options import ServeOptions
from beamwood.server.process.direct import Direct
from beamwood.server.process.log import Log

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

UNSENT = "beamwood.unsent"  # where a request's scope holds how much of its answer was not handed to the system yet
_PIECE = 64 * 1024  # bytes of an answer that are written at once
_OFTEN_SEEN = frozenset((b"authorization", b"content-length", b"content-type", b"origin", b"x-request-id"))


class Request:
    """One request as handlers see it: `names` are what its path has in the places of its route's braces.

    Handlers write into `log` what is worth a line.
    """

    __slots__ = (
        "begun",
        "headers",
        "id",
        "limit",
        "log",
        "method",
        "names",
        "path",
        "query",
        "receive",
        "route",
        "scope",
    )

    def __init__(self, scope: dict[str, Any], receive: Receive, limit: int) -> None:
        self.begun = time.perf_counter_ns()
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = {n: v for n, v in scope["headers"] if n in _OFTEN_SEEN}
        self.scope, self.receive, self.limit = scope, receive, limit
        self.id = ""
        self.route: Route | None = None
        self.names: dict[str, str] = {}
        self.log: dict[str, Any] = {}

    async def body(self) -> bytes:
        """All of the body, or a 413 as soon as it is known to be too large."""
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > self.limit:
            raise self._too_large()
        message = await self.receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            if len(message.get("body", b"")) > self.limit:
                raise self._too_large()
            return bytes(message.get("body", b""))
        parts, size = [], 0
        while True:
            if message["type"] != "http.request":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limit:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)
            message = await self.receive()

    def _too_large(self) -> Refusal:
        return Refusal(413, "too-large", f"The body is larger than {self.limit:,} bytes. Ask in parts.", close=True)


class App:
    """The application of one worker."""

    def __init__(self, options: ServeOptions, handlers: Handlers, row: WorkerMetrics, log: Log) -> None:
        self._options, self.row, self._log = options, row, log
        self._router = Router(options.page)
        names = {operation for route in ROUTES for operation in route.operations.values()}
        self._handlers: dict[str, Handler] = {name: getattr(handlers, name) for name in names}
        self._access = Access(options)
        self.direct = Direct(options, handlers.admission, row, log, self._access)
        self.direct.show(handlers.registry.all())
        self._draining = False
        self.unread: set[Any] = set()  # connections whose clients read more slowly than we write
        handlers.admission.unread = self._unread_bytes

    def _unread_bytes(self) -> int:
        return sum(connection.unread_bytes() for connection in self.unread)

    def drain(self) -> None:
        """From now on every answer closes its connection."""
        self._draining, self.direct.open = True, False

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request, from its headers to the last byte of its answer."""
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not spoken here")
        request = Request(scope, receive, self._options.max_body)
        request.id = self.direct.id_of(request.headers.get(b"x-request-id"))
        self.row.add("in_flight")
        reply = None
        try:
            reply = await self._answer(request, scope)
            if reply is not None:
                await self._send(request, reply, send)
        finally:
            self.row.add("in_flight", -1.0)
            slow = scope.get("beamwood.slow")  # the server has answered by itself
            status = reply.status if reply is not None else 408 if slow else GONE
            route = UNKNOWN if request.route is None else request.route.path
            self.row.answered(route, status)
            self._note(request, route, status)

    async def _answer(self, request: Request, scope: dict[str, Any]) -> Reply | None:  # noqa: PLR0911 (a way out per kind of error)
        """The reply; None when no one waits for it any more."""
        try:
            self._access.check_form(scope["http_version"], scope["headers"])
            if request.method == "OPTIONS" and self._options.cors:
                return self._preflight()
            request.route, request.names = self._router.find(request.path)
            operation = operation_of(request.route, request.method)
            self._access.check(request.route, request.headers.get(b"authorization"))
            return await self._handlers[operation](request)
        except Refusal as refusal:
            request.log["code"] = refusal.code
            return refusal.reply(request.id)
        except Gone:
            return None
        except FormatError as error:  # found while answering: the file under the model was damaged
            self._log.event("model damaged", id=request.id, message=str(error))
            damaged = Refusal(500, "model-damaged", "The model is damaged; the server needs a fresh copy of its file.")
            return damaged.reply(request.id)
        except BeamwoodError as error:
            request.log["code"] = "bad-input"
            return Refusal(422, "bad-input", str(error)).reply(request.id)
        except Exception:
            self._log.event("error", id=request.id, path=request.path, traceback=traceback.format_exc())
            fault = Refusal(500, "internal", "Something went wrong that is not your fault. The log has its cause.")
            return fault.reply(request.id)

    async def _send(self, request: Request, reply: Reply, send: Send) -> None:
        headers = [
            (b"content-type", reply.content_type),
            (b"content-length", str(len(reply.body) + sum(map(len, reply.rest or ()))).encode()),
            (b"x-request-id", request.id.encode()),
            *reply.headers,
        ]
        if self._options.cors:
            headers += self._access.cors(request.headers.get(b"origin"))
        if self._draining:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body, "more_body": bool(reply.rest)})
        if reply.rest:
            await self._send_on(request.scope, reply.rest, send)

    async def _send_on(self, scope: dict[str, Any], rest: deque[bytes], send: Send) -> None:
        """The rest of a long answer: others get their turn between its pieces, and it waits for slow readers."""
        scope[UNSENT] = sum(map(len, rest))
        while rest:
            piece = rest.popleft()
            for at in range(0, len(piece), _PIECE):
                part = piece[at : at + _PIECE]
                scope[UNSENT] -= len(part)
                await send({"type": "http.response.body", "body": part, "more_body": True})
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    def _preflight(self) -> Reply:
        allowed = (
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", b"authorization, content-type, x-request-id"),
            (b"access-control-max-age", b"600"),
        )
        return Reply(204, b"", headers=allowed)

    def turned_away(self, refusal: Refusal) -> None:
        """Counts and logs an answer that a connection gave by itself, without a request that could be read."""
        self.row.refused(refusal.status)
        self._log.request(refusal.status, {"route": UNREAD, "status": refusal.status, "code": refusal.code})

    def _note(self, request: Request, route: str, status: int) -> None:
        took = round((time.perf_counter_ns() - request.begun) / 1e6, 3)
        fields = {"id": request.id, "method": request.method, "route": route, "status": status, "ms": took}
        self._log.request(status, {**fields, **request.log})
