"""connection.py — the bytes of one connection in, its requests handed on and their answers written out.

Requests go two ways. A search that has come in one piece is answered on the spot when it is short (direct.py): no task,
no queue. Everything else goes uvicorn's way, as a task that runs the application (dispatch.py). What is ours besides is
patience: connections that are slow, idle, too long or too many are ended by a sweep.
"""

from __future__ import annotations

from array import array
from fcntl import ioctl
from termios import FIONREAD
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from beamwood.server.app.dispatch import App
from beamwood.server.app.replies import Refusal
from beamwood.server.process.direct import is_direct

_LONGEST_HEAD = 64 * 1024


class Connection(HttpToolsProtocol):
    """One connection. Knows since when a request has been arriving, so that a sweep can end what takes too long."""

    max_connections = 10_000
    app: App

    def connection_made(self, transport: Any) -> None:
        """Takes the connection, unless there are too many."""
        super().connection_made(transport)
        self.app.row.set("connections", len(self.connections))
        self.receiving: float | None = self.loop.time()
        self.answered: float | None = None  # when the last request was answered on the spot
        self._in_head, self._head = True, 0
        self._first = False  # whether the request is the first one in what was just read
        self._body: bytes | None = None  # of a request that may be answered on the spot
        if len(self.connections) > self.max_connections:
            self.refuse(Refusal(503, "too-many-connections", "Ask again later.", retry_after=1))

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of it."""
        if self._body is not None:
            self._go_on()  # the application counts it
        super().connection_lost(exc)
        self.app.row.set("connections", len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Some bytes of requests. Only the first may be answered on the spot: others let other connections go first."""
        if self._in_head:
            self._head += len(data)
        self._first = True
        super().data_received(data)
        if self._body is not None and not self._rest_is_short():
            self._go_on()
        if self._in_head and self._head > _LONGEST_HEAD and not self.transport.is_closing():
            self.refuse(Refusal(431, "head-too-large", f"The head of a request may have {_LONGEST_HEAD:,} bytes."))

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.receiving, self.answered = self.loop.time(), None
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The end of its head."""
        self._in_head, self._head = False, 0
        if self._first and is_direct(self.url) and self._is_plain():
            self._body = b""
        else:
            super().on_headers_complete()
        self._first = False

    def on_body(self, body: bytes) -> None:
        """Some of its body."""
        if self._body is not None:
            self._body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Its last byte."""
        self.receiving, self._in_head = None, True
        if self._body is not None:
            answer = self.app.direct.answer(self.parser.get_method(), self.url, self.headers, self._body)
            if answer is not None:
                self._body, self.answered = None, self.loop.time()
                self.transport.write(answer)
                return
            self._go_on()
        super().on_message_complete()

    def shutdown(self) -> None:
        """Ends the connection after the request that is under way, or that has come and was not read yet."""
        if self._body is not None:
            self._go_on()
        if not self._has_unread():
            super().shutdown()

    def _has_unread(self) -> bool:
        """Whether bytes wait in the socket: closing it would lose them. While the server drains, answers close."""
        waiting = array("i", [0])
        try:
            ioctl(self.transport.get_extra_info("socket").fileno(), FIONREAD, waiting)
        except OSError:  # the socket is closed
            return False
        return waiting[0] > 0

    def _is_plain(self) -> bool:
        """Whether nothing stands in the way of an answer on the spot: no other answer, no more than HTTP/1.1 wants."""
        parser = self.parser
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not (self.expect_100_continue or self.flow.write_paused or parser.should_upgrade())
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
        )

    def _rest_is_short(self) -> bool:
        """Whether the rest of a body, which is still to come, is worth waiting for here."""
        length = dict(self.headers).get(b"content-length", b"")
        return len(length) < 8 and length.isdigit() and int(length) <= self.app.direct.longest

    def _go_on(self) -> None:
        """Hands a request that is not answered on the spot to the application."""
        body, self._body = self._body, None
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def sweep(self, slow: float, idle: float) -> None:
        """Ends the connection if its request began to arrive before `slow`, or it has been idle since before `idle`."""
        if self.receiving is not None and self.receiving < slow:
            if self._body is not None:
                self._go_on()  # the application counts it
            self._too_slow()
        elif self.answered is not None and self.answered < idle:
            self.transport.close()

    def _too_slow(self) -> None:
        begun = not self._in_head or self._head > 0
        if not begun or (self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete):
            self.transport.close()
            return
        if not self._in_head:
            self.scope["beamwood.slow"] = True  # type: ignore[typeddict-unknown-key]  # for the application's log
        self.refuse(Refusal(408, "too-slow", "The request did not arrive in time."))

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP."""
        self.refuse(Refusal(400, "bad-http", "This is not a request in HTTP/1.1."))

    def refuse(self, refusal: Refusal) -> None:
        """An answer that needs no application, and the end of the connection."""
        reply = refusal.reply("")
        head = [STATUS_LINE[reply.status], b"content-type: application/json\r\nconnection: close\r\n"]
        head += [b"%b: %b\r\n" % pair for pair in reply.headers]
        self.transport.write(b"".join((*head, b"content-length: %d\r\n\r\n" % len(reply.body), reply.body)))
        self.transport.close()
