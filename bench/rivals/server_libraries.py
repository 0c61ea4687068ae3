"""server_libraries.py — a model in; what the server's own routes and counts take beside those of libraries, out.

Processor time of one thread, in turns, medians. Routes: whole requests inside the application, no sockets, every answer
computed on the spot by the same code; around Starlette stands the same check of heads, id, counts and log as ours has.
Counts: what one search adds, and one scrape of two workers.

    pip install starlette msgspec prometheus_client
    python bench/rivals/server_libraries.py shop.bw        (any model that knows words)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp())

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from beamwood.server.app import answers
from beamwood.server.app.access import Access
from beamwood.server.app.dispatch import App
from beamwood.server.app.handlers import Handlers
from beamwood.server.app.metrics import BEAMS, BOUNDS, STAGES, ServerMetrics
from beamwood.server.app.schema import SearchRequest
from beamwood.server.options import ServeOptions
from beamwood.server.process.admission import AdmissionQueue, Done
from beamwood.server.process.handover import OpenFiles
from beamwood.server.process.log import Log
from beamwood.server.process.registry import Registry

ROUNDS, CALLS = 11, 300
TEXT = "warm wool socks"
CASES = {
    "a label by its number": ("GET", "/v1/labels/3", None),
    "an exact search": ("POST", "/v1/search", {"text": TEXT, "exact": True}),
    "16 texts": ("POST", "/v1/search", {"texts": [TEXT] * 16}),
    "an explanation": ("POST", "/v1/explain", {"text": TEXT, "label": 0}),
}


class Asked(msgspec.Struct, forbid_unknown_fields=True):  # type: ignore[call-arg, misc]
    """The fields of a request, as msgspec checks them."""

    text: str | None = None
    texts: list[str] | None = None
    model: str | None = None
    k: int = 10
    beam: int = 10
    exact: bool = False
    label: int | str | None = None


async def on_the_spot(work: Callable[[Any], Any], *_: Any) -> Done:
    """In the place of the admission queue, so that no thread is in what is measured."""
    return Done(work(lambda: None), 0, 0)


class Framework:
    """The same answers from Starlette and msgspec."""

    def __init__(self, options: ServeOptions, handlers: Handlers, row: Any, log: Log, id_of: Any) -> None:
        self.handlers, self.row, self.log, self.id_of = handlers, row, log, id_of
        self.access, self.decoder = Access(options), msgspec.json.Decoder(Asked)
        self.inner = Starlette(
            routes=[
                Route("/v1/search", self.question, methods=["POST"]),
                Route("/v1/explain", self.question, methods=["POST"]),
                Route("/v1/labels/{label}", self.label),
            ]
        )

    async def question(self, request: Request) -> Response:
        """A search or an explanation."""
        asked = self.decoder.decode(await request.body())
        served = self.handlers.registry.get(asked.model)
        question = SearchRequest(served.name, asked.k, asked.beam, asked.text, asked.texts, None, asked.exact)
        work = answers.search
        if asked.label is not None:
            question, work = question._replace(label=asked.label), answers.explain
        done = await on_the_spot(partial(work, served, question))
        self.row.searched(0, done.answer.nanoseconds, 0, question.beam, question.rows)
        return Response(answers.content(served, done.answer, 0), media_type="application/json")

    async def label(self, request: Request) -> Response:
        """One label."""
        served = self.handlers.registry.get(request.query_params.get("model"))
        label = int(request.path_params["label"])
        found = {"label": label, "key": served.model.key(label), "name": served.model.name(label)}
        body = msgspec.json.encode({"model": served.name, "version": served.version, **found})
        return Response(body, media_type="application/json")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """What ours does around a handler."""
        self.row.add("in_flight")
        name, statuses = self.id_of(dict(scope["headers"]).get(b"x-request-id")), []
        self.access.check_form(scope["http_version"], scope["headers"])

        async def count(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                message["headers"].append((b"x-request-id", name.encode()))
            await send(message)

        await self.inner(scope, receive, count)
        self.row.add("in_flight", -1.0)
        self.row.answered("/v1/search", statuses[0])
        self.log.request(statuses[0], {"id": name, "method": scope["method"], "status": statuses[0]})


async def ask(app: Any, method: str, path: str, body: bytes) -> None:
    """One request; the answer goes nowhere."""
    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    scope = {"type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "root_path": ""}

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200, message

    await app({**scope, "raw_path": path.encode(), "query_string": b"", "headers": headers}, receive, send)


async def compare(name: str, ways: Mapping[str, Callable[[], Awaitable[None]]], calls: int) -> None:
    """Medians of both, in turns."""
    took: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(ROUNDS):
        for way in sorted(ways, reverse=number % 2 == 1):
            begun = time.thread_time_ns()
            for _ in range(calls):
                await ways[way]()
            took[way].append((time.thread_time_ns() - begun) / calls / 1e3)
    print(f"{name:24s}" + "".join(f"{way}: {statistics.median(took[way]):8.2f} µs   " for way in ways))


async def counts(metrics: ServerMetrics) -> None:
    """What a search counts, and a scrape."""
    row = metrics.row(0)
    requests = Counter("beamwood_requests", "x", ["route", "status"]).labels("/v1/search", "200")
    in_flight, rows = Gauge("beamwood_in_flight", "x", multiprocess_mode="livesum"), Counter("beamwood_rows", "x")
    seconds = Histogram("beamwood_seconds", "x", ["stage"], buckets=BOUNDS)
    stages, beam = [seconds.labels(stage) for stage in STAGES], Histogram("beamwood_beam", "x", buckets=BEAMS)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)

    async def ours() -> None:
        row.add("in_flight")
        row.add("in_flight", -1.0)
        row.answered("/v1/search", 200)
        row.searched(0, 20_000, 100_000, 10, 1)

    async def theirs() -> None:
        in_flight.inc()
        in_flight.dec()
        requests.inc()
        for stage, took in zip(stages, (0.0, 2e-5, 1e-4), strict=True):
            stage.observe(took)
        beam.observe(10)
        rows.inc()

    async def our_scrape() -> None:
        metrics.text()

    async def their_scrape() -> None:
        generate_latest(registry)

    await compare("counting a search", {"ours": ours, "prometheus_client": theirs}, 2000)
    await compare("a scrape", {"ours": our_scrape, "prometheus_client": their_scrape}, 20)


async def measure(path: Path) -> None:
    """All of it."""
    options = ServeOptions(models={"m": path}, workers=1, log="off")
    metrics, log = ServerMetrics(["m"], 2), Log("off")
    row = metrics.row(0)
    admission: Any = AdmissionQueue(options, row, asyncio.get_running_loop())
    admission.ask = on_the_spot

    async def no_reload() -> dict[str, Any]:
        return {}

    handlers = Handlers(options, Registry(options, OpenFiles.of(options)), admission, row, no_reload)
    ours = App(options, handlers, row, log)
    theirs = Framework(options, handlers, row, log, ours.direct.id_of)
    for name, (method, address, question) in CASES.items():
        body = b"" if question is None else json.dumps(question).encode()
        ways = {
            way: partial(ask, app, method, address, body)
            for way, app in (("ours", ours), ("Starlette and msgspec", theirs))
        }
        await compare(name, ways, CALLS)
    await counts(metrics)
    admission.close()


def main() -> None:
    """Reads the command line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("model", type=Path)
    asyncio.run(measure(options.parse_args().model))


if __name__ == "__main__":
    main()
