"""connection.py — the bytes of one connection in, its requests handed on and their answers written out.

Requests go two ways. A search that has come in one piece is answered on the spot when it is short (direct.py): no task,
no queue. Everything else goes uvicorn's way, as a task that runs the application (dispatch.py).

The law: what one connection keeps in memory is bounded, whatever the client sends or does not read. Of requests that
are sent ahead of their answers a few are read, the rest waits as bytes, and no more bytes are taken until those are
used up; the next answer is begun when the one before has gone out. A sweep ends connections that are slow, idle or do
not read; heads that are too long and connections that are too many are refused. What is refused here is counted and
logged like any other answer.
"""

from __future__ import annotations

from array import array
from fcntl import ioctl
from termios import FIONREAD
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from beamwood.server.app.dispatch import UNSENT, App
from beamwood.server.app.replies import Gone, Refusal
from beamwood.server.process.admission import JOB
from beamwood.server.process.direct import is_direct

_LONGEST_HEAD = 64 * 1024
_PIECE = 1024  # bytes that are parsed at a time: some fifty of the shortest requests there are
_PIECE_OF_BACKLOG = 256  # the same for a client that sends ahead, so that others get their turn
_PIECE_OF_BODY = 16 * 1024
_MOST_WAITING = 8  # requests of one connection that are read and not begun
_SHARES = 8  # an answer has to go out in this many read timeouts at most, an equal share in each


class _Flow(FlowControl):
    """Reads on only when all that has been read is used up. uvicorn's own reads on after every answer."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.transport)
        self._connection = connection

    def resume_reading(self) -> None:
        """Reads on, unless requests wait."""
        if not self._connection.has_backlog():
            super().resume_reading()


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
        self._in_head, self._head, self._in_body = True, 0, 0  # bytes of the head and of the body so far
        self._first = False  # whether the request is the first one in what was just read
        self._body: bytes | None = None  # of a request that may be answered on the spot
        self._unparsed = memoryview(b"")  # what was read and not parsed yet
        self._running: Any = None  # the request that the application answers now
        self._held = False  # whether the next request waits until the last answer has gone out
        self._unread: tuple[int, int, float] | None = None  # bytes of an answer at first and by now, and since when
        self.flow = _Flow(self)
        if len(self.connections) > self.max_connections:
            self.refuse(Refusal(503, "too-many-connections", "Ask again later.", retry_after=1))

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of it."""
        self.app.unread.discard(self)
        if self._body is not None:
            self._go_on()  # the application counts it
        self._unparsed = memoryview(b"")
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
            if (job := self._running.scope.get(JOB)) is not None:
                job.abandon(Gone())
        super().connection_lost(exc)
        self.app.row.set("connections", len(self.connections))

    def has_backlog(self) -> bool:
        """Whether there are requests, or bytes of them, that were read and wait."""
        return bool(self.pipeline or self._unparsed)

    def data_received(self, data: bytes) -> None:
        """Some bytes of requests. Only the first may be answered on the spot: others let other connections go first."""
        self._first = True
        if len(data) <= _PIECE and not self._unparsed:
            self._parse(data)
        else:
            self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
            self._parse_on(_PIECE)

    def _parse_on(self, piece: int) -> None:
        """Parses what was read, piece by piece, until enough requests wait."""
        while self._unparsed and len(self.pipeline) < _MOST_WAITING and not self.transport.is_closing():
            size = piece if self._in_head else max(piece, min(_PIECE_OF_BODY, self._length() - self._in_body))
            some, self._unparsed = self._unparsed[:size], self._unparsed[size:]
            self._parse(some)
        if self._unparsed:
            self.flow.pause_reading()
        else:
            self.flow.resume_reading()

    def _parse(self, data: bytes | memoryview) -> None:
        if self._in_head:
            self._head += len(data)
        super().data_received(data)  # type: ignore[arg-type]  # the parser takes any buffer
        if self._body is not None and not self._rest_is_short():
            self._go_on()
        if self._in_head and self._head > _LONGEST_HEAD and not self.transport.is_closing():
            self.refuse(Refusal(431, "head-too-large", f"The head of a request may have {_LONGEST_HEAD:,} bytes."))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """The end of an answer: the next request is begun once that has gone out."""
        if self.flow.write_paused and not self.transport.is_closing():
            self._held = True
            return
        super().on_response_complete()
        if self._unparsed:
            self._parse_on(_PIECE_OF_BACKLOG)

    def pause_writing(self) -> None:
        """More was written than can go out now."""
        super().pause_writing()
        self.app.unread.add(self)

    def resume_writing(self) -> None:
        """Most of what was written has gone out."""
        self.app.unread.discard(self)
        super().resume_writing()
        if self._held:
            self._held = False
            self.on_response_complete()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.receiving, self.answered = self.loop.time(), None
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The end of its head."""
        self._in_head, self._head, self._in_body = False, 0, 0
        if self._first and is_direct(self.url) and self._is_plain():
            self._body = b""
        else:
            super().on_headers_complete()
        self._first = False

    def on_body(self, body: bytes) -> None:
        """Some of its body."""
        self._in_body += len(body)
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
        return 0 < self._length() <= self.app.direct.longest

    def _length(self) -> int:
        """How long the body is to be; 0 if that is not said, or absurd."""
        length = dict(self.headers).get(b"content-length", b"")
        return int(length) if len(length) < 16 and length.isdigit() else 0

    def _go_on(self) -> None:
        """Hands a request that is not answered on the spot to the application."""
        body, self._body = self._body, None
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def sweep(self, now: float, patience: float, idle: float) -> None:
        """Ends the connection if its request, or the reading of its answer, takes too long, or if nothing comes."""
        if self._is_unread(now, patience):
            self.transport.abort()
        elif self.receiving is not None and self.receiving < now - patience and not self.has_backlog():
            if self._body is not None:
                self._go_on()  # the application counts it
            self._too_slow()
        elif self.answered is not None and self.answered < now - idle:
            self.transport.close()

    def unread_bytes(self) -> int:
        """How much of the answers that were made has not gone out."""
        unsent: int = 0 if self._running is None else self._running.scope.get(UNSENT, 0)
        return unsent + self.transport.get_write_buffer_size()

    def _is_unread(self, now: float, patience: float) -> bool:
        """Whether the client has not taken its share of an answer in time."""
        size = self.unread_bytes()
        if size == 0:
            self._unread = None
            return False
        first, marked, since = self._unread or (size, size, now)
        if size > marked:  # one more answer
            first, marked, since = size, size, now
        elif (marked - size) * _SHARES >= first:
            marked, since = size, now
        self._unread = (first, marked, since)
        return now - since > patience

    def _too_slow(self) -> None:
        begun = not self._in_head or self._head > 0
        if not begun or (self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete):
            self.transport.close()
            return
        if not self._in_head:
            self.scope["beamwood.slow"] = True  # type: ignore[typeddict-unknown-key]  # the application counts it
        self.refuse(Refusal(408, "too-slow", "The request did not arrive in time."), counted=not self._in_head)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP."""
        self.refuse(Refusal(400, "bad-http", "This is not a request in HTTP/1.1."))

    def refuse(self, refusal: Refusal, counted: bool = False) -> None:
        """An answer that needs no application, and the end of the connection."""
        if not counted:
            self.app.turned_away(refusal)
        reply = refusal.reply("")
        head = [STATUS_LINE[reply.status], b"content-type: application/json\r\nconnection: close\r\n"]
        head += [b"%b: %b\r\n" % pair for pair in reply.headers]
        self.transport.write(b"".join((*head, b"content-length: %d\r\n\r\n" % len(reply.body), reply.body)))
        self.transport.close()
