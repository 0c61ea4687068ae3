"""handlers.py — a request in, its reply out: one method per operation of routes.py, of the same name."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from beamwood.server import page
from beamwood.server.app import annif, answers, monitors, openapi
from beamwood.server.app.metrics import WorkerMetrics
from beamwood.server.app.replies import Refusal, Reply, as_json
from beamwood.server.app.schema import RequestReader, SearchRequest
from beamwood.server.options import ServeOptions
from beamwood.server.process.admission import AdmissionQueue, Done
from beamwood.server.process.registry import Registry, Served

if TYPE_CHECKING:
    from beamwood.server.app.dispatch import Request

Handler = Callable[["Request"], Awaitable[Reply]]
_SHORT_BODY = 16 * 1024  # bytes that are read in a fraction of a millisecond
Reload = Callable[[], Awaitable[dict[str, Any]]]


class Handlers:
    """What the server does. `ready` is what /readyz says."""

    def __init__(
        self, options: ServeOptions, registry: Registry, admission: AdmissionQueue, row: WorkerMetrics, reload: Reload
    ) -> None:
        self._options, self.registry, self.admission, self._row = options, registry, admission, row
        self._reload, self._reader = reload, RequestReader(options)
        self._files = page.files() if options.page else {}
        self.ready = True

    # --- questions ---------------------------------------------------------------------------------------------------

    async def search(self, request: Request) -> Reply:
        """A question as JSON."""
        return await self._search(request, await self._read(request, self._reader.search))

    async def search_by_query(self, request: Request) -> Reply:
        """A question in the query string."""
        return await self._search(request, self._reader.search_query(request.query))

    async def _read(self, request: Request, read: Callable[[bytes], SearchRequest]) -> SearchRequest:
        """The question in a body. To read a long one takes long: that is work like any other."""
        body = await request.body()
        self.admission.check_room()
        if len(body) <= _SHORT_BODY:
            return read(body)
        done = await self.admission.ask(lambda check: read(body), "read", len(body), request.scope)
        question: SearchRequest = done.answer
        return question

    async def _search(self, request: Request, question: SearchRequest) -> Reply:
        served = self.registry.get(question.model)
        question = answers.settled(served, question)
        if self._options.log_queries:
            request.log["query"] = question.text or question.texts
        kind, units = answers.kind_of(served, question), answers.units_of(question)
        work = partial(answers.search, served, question)
        done = await self.admission.ask(work, kind, units, request.scope)
        return self._finished(request, served, question, done)

    async def explain(self, request: Request) -> Reply:
        """How a label came to its score."""
        question = await self._read(request, self._reader.explain)
        served = self.registry.get(question.model)
        if self._options.log_queries:
            request.log["query"] = question.text
        kind, units = (served.name, "explain"), answers.units_of(question)
        done = await self.admission.ask(partial(answers.explain, served, question), kind, units, request.scope)
        return self._finished(request, served, question, done)

    def _finished(self, request: Request, served: Served, question: SearchRequest, done: Done) -> Reply:
        answer: answers.Answer = done.answer
        queue, engine = done.queue, answer.nanoseconds
        total = time.perf_counter_ns() - request.begun
        self._row.searched(queue, engine, total, question.beam, question.rows)
        request.log |= {"model": served.name, "queue_ms": round(queue / 1e6, 3), "engine_ms": round(engine / 1e6, 3)}
        pieces = answers.content(served, answer, queue)
        return Reply(200, pieces.popleft(), rest=pieces)

    # --- what there is -----------------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Reply:
        """All models."""
        return as_json({"models": [served.description for served in self.registry.all()]})

    async def label(self, request: Request) -> Reply:
        """One label by its number or its key; `by` says which where digits could be either."""
        given, asked = request.names["label"], self._reader.label_query(request.query)
        served = self.registry.get(asked.get("model"))
        digits = given.isascii() and given.isdecimal()
        by = asked.get("by", "number" if digits else "key")
        if by == "key":
            label = served.model.label_of(given)
        else:
            label = int(given) if digits and len(given) <= 12 and int(given) < served.model.n_labels else None
        if label is None:
            raise Refusal(
                404,
                "unknown-label",
                f"No label has the {by} {given[:80]!r}; expected the key of a label, or a number from 0 to "
                f"{served.model.n_labels - 1}. With ?by=key digits are read as a key.",
            )
        found = {"label": label, "key": served.model.key(label), "name": served.model.name(label)}
        return as_json({"model": served.name, "version": served.version, **found})

    # --- for Annif ---------------------------------------------------------------------------------------------------

    async def projects(self, request: Request) -> Reply:
        """All models as Annif's projects."""
        return as_json({"projects": [annif.describe(served) for served in self.registry.all()]})

    async def project(self, request: Request) -> Reply:
        """One of them."""
        return as_json(annif.describe(self.registry.get(request.names["project"])))

    async def suggest(self, request: Request) -> Reply:
        """Suggestions for a text."""
        if request.headers.get(b"content-type", b"").startswith(b"multipart/"):
            raise Refusal(415, "form-expected", "Send the fields as application/x-www-form-urlencoded.", close=True)
        text, limit, threshold = self._reader.suggest(await request.body())
        served = self.registry.get(request.names["project"])
        question = answers.settled(served, SearchRequest(served.name, limit, self._options.beam or 0, text=text))
        work = partial(annif.suggest, served, text, limit, threshold, question.beam, self._options.uri_prefix)
        kind, units = (served.name, "suggest"), answers.units_of(question)
        done = await self.admission.ask(work, kind, units, request.scope)
        self._finished(request, served, question, done)
        return Reply(200, *done.answer.fields)

    # --- for those who run it ----------------------------------------------------------------------------------------

    async def reload(self, request: Request) -> Reply:
        """Reads the model files again, in every worker."""
        await request.body()
        return as_json(await self._reload())

    async def healthz(self, request: Request) -> Reply:
        """Whether the process lives."""
        return Reply(200, b'{"status":"ok"}')

    async def readyz(self, request: Request) -> Reply:
        """Whether it should be sent requests."""
        if self.ready:
            return Reply(200, b'{"status":"ready"}')
        raise Refusal(503, "stopping", "The server is about to stop.", retry_after=1)

    async def metrics(self, request: Request) -> Reply:
        """Numbers for Prometheus."""
        self.gather()
        baselines = {served.name: served.baselines for served in self.registry.all()}
        return Reply(200, self._row.metrics.text(baselines), b"text/plain; version=0.0.4; charset=utf-8")

    def gather(self) -> None:
        """Takes over what this worker's models counted of their queries."""
        for number, served in enumerate(self.registry.all()):
            self._row.monitored(number, monitors.taken(served.model))

    async def openapi(self, request: Request) -> Reply:
        """What this server answers to, for programs."""
        return as_json(openapi.document(self._options))

    async def page(self, request: Request) -> Reply:
        """A file of the page."""
        assert request.route is not None
        return self._files[request.route.path]
