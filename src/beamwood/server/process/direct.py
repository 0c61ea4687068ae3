"""direct.py — a plain search request in, all bytes of its answer out, on the spot, in one native call.

Most requests are short searches: a task, a queue and a thread would cost more than the answer, and so would the Python
to read, count and log it. The law: an answer from here is the one that the application (dispatch.py) would give,
counted and logged the same. Whatever is not plain, not short or not good gets None here and goes there, where the
reason is told.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from beamwood import _core
from beamwood.server.app.access import Access
from beamwood.server.app.answers import kind_of
from beamwood.server.app.metrics import WorkerMetrics
from beamwood.server.app.replies import Refusal
from beamwood.server.app.routes import ROUTES
from beamwood.server.app.schema import SearchRequest
from beamwood.server.options import ServeOptions
from beamwood.server.process.admission import AdmissionQueue
from beamwood.server.process.log import Log
from beamwood.server.process.registry import Served

_LONGEST = 64 * 1024  # bytes of a body that may be answered on the spot
_ROUTE = next(route for route in ROUTES if route.operations.get("GET") == "search_by_query")
_ADDRESS = _ROUTE.path.encode()
_ASKING = _ADDRESS + b"?"
_WIDTHS = 33  # of beams in bits


class Direct:
    """Answers plain requests of one worker. While it is not `open`, the application does."""

    def __init__(
        self, options: ServeOptions, admission: AdmissionQueue, row: WorkerMetrics, log: Log, access: Access
    ) -> None:
        self._admission, self._access = admission, access
        reader = _core.QuestionReader(options.k, options.beam or 0, options.max_k, options.max_beam)
        self._native = _core.ShortSearches(reader, admission.costs, row.searches, log.lines, secrets.token_hex(6))
        self._native.hosts = sorted(options.hosts)
        self.longest = min(_LONGEST, options.max_body)
        self._guarded = options.token is not None
        self.open = not (options.cors or options.log_queries)
        self.id_of = self._native.id_of  # what a request is called, by the name it brought or a new one

    def show(self, models: Iterable[Served]) -> None:
        """From now on these are the models. The first one that was ever shown answers when none is named."""
        for served in models:
            text = served.model.text
            parts = served.model.native_parts() if text is not None and text.tokenizer is None else ()
            parts = parts if parts and parts[0] is not None else ()  # its labels may lie elsewhere
            questions = [SearchRequest(None, 1, (1 << width) - 1) for width in range(_WIDTHS)]
            kinds = [self._admission.number_of(kind_of(served, question)) for question in questions]
            self._native.put(served.name, parts, served.head.decode(), kinds, served.model.beam)

    def set_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """The headers that every answer has: the date."""
        self._native.head = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in headers)

    def answer(self, method: bytes, url: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes | None:
        """Head and body of the answer to a request whose address is_direct, or None."""
        if not self.open or len(body) > self.longest or (self._guarded and not self._may_pass(headers)):
            return None
        if method == b"POST":
            return self._native.answer(True, b"", headers, body)
        return self._native.answer(False, url[len(_ASKING) :], headers, b"") if method == b"GET" else None

    def _may_pass(self, headers: list[tuple[bytes, bytes]]) -> bool:
        try:
            self._access.check(_ROUTE, dict(headers).get(b"authorization"))
        except Refusal:
            return False
        return True


def is_direct(url: bytes) -> bool:
    """Whether requests to this address may be answered on the spot."""
    return url == _ADDRESS or (url.startswith(_ASKING) and b"#" not in url)
