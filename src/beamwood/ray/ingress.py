"""ingress.py — HTTP requests in, the answers of a model that was cut out: the routes of `beamwood serve`, over shards.

The law: an answer is whole, or an error names the shards that are missing, or, where partial=true asked for that, its
`coverage` says what it rests on. Partial answers are not counted among the others, and no cache may keep them.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from beamwood.errors import BeamwoodError
from beamwood.ray.cluster import same_version
from beamwood.server.app import answers
from beamwood.server.app.dispatch import App, Request
from beamwood.server.app.handlers import Handlers
from beamwood.server.app.metrics import ServerMetrics
from beamwood.server.app.replies import Refusal, Reply
from beamwood.server.app.schema import RequestReader, SearchRequest
from beamwood.server.options import ServeOptions
from beamwood.server.process.admission import AdmissionQueue, Done, Work
from beamwood.server.process.log import Log
from beamwood.server.process.registry import Served
from beamwood.shards.gather import Coverage, ShardsMissing
from beamwood.shards.part import OtherBuild
from beamwood.shards.sharded import Sharded
from beamwood.shards.wire import Ask, Told

Shard = Callable[[bytes], Any]  # sends a question to a shard; what comes has result(timeout_s=…), bytes too


class Asking:
    """Asks shards that are elsewhere, all at once; one that died is asked once more: another replica may live."""

    def __init__(self, shards: list[Shard], seconds: float) -> None:
        self._shards, self._seconds = shards, seconds

    def __call__(self, asks: Mapping[int, Ask]) -> Mapping[int, Told | BaseException]:
        ends = time.monotonic() + self._seconds
        first = self._told(asks, ends)
        again = {shard: asks[shard] for shard, told in first.items() if self._may_live(told)}
        return {**first, **self._told(again, ends)} if again else first

    def _told(self, asks: Mapping[int, Ask], ends: float) -> dict[int, Told | BaseException]:
        sent: dict[int, Any] = {}
        for shard, ask in asks.items():
            try:
                sent[shard] = self._shards[shard](pickle.dumps(ask, protocol=5))
            except Exception as error:
                sent[shard] = error
        return {shard: self._result(one, ends) for shard, one in sent.items()}

    @staticmethod
    def _result(sent: Any, ends: float) -> Told | BaseException:
        if isinstance(sent, BaseException):
            return sent
        try:
            told = pickle.loads(sent.result(timeout_s=max(0.001, ends - time.monotonic())))
        except Exception as error:
            return error
        return told if isinstance(told, Told) else TypeError(type(told).__name__)

    @staticmethod
    def _may_live(told: Told | BaseException) -> bool:
        return not isinstance(told, (Told, TimeoutError, BeamwoodError))


class OneModel:
    """The registry of a server that has one model, which was cut."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def get(self, name: str | None) -> Served:
        """The model, whose name may be given."""
        if name not in (None, self._served.name):
            raise Refusal(404, "unknown-model", f"There is no model of that name; there are: {self._served.name}.")
        return self._served

    def all(self) -> list[Served]:
        """The only one."""
        return [self._served]


class OnThreads(AdmissionQueue):
    """Questions wait for other machines, so none is answered on the event loop; what waits has no need to give way."""

    _gives_way = False

    def ask_here(self, work: Work, kind: Hashable, units: float = 1.0) -> Done | None:
        """None: none is short."""
        return None


class ShardHandlers(Handlers):
    """The handlers of a server whose model was cut."""

    def __init__(self, options: ServeOptions, registry: Any, admission: AdmissionQueue, row: Any) -> None:
        super().__init__(options, registry, admission, row, self._no_reload)
        self._reader = RequestReader(options, partial=True)

    async def _no_reload(self) -> dict[str, Any]:
        raise Refusal(403, "forbidden", "A model that was cut is replaced as a whole: deploy its new folder.")

    async def suggest(self, request: Request) -> Reply:
        """Suggestions for a text."""
        reply: Reply = await whole(super().suggest(request))
        return reply

    async def _search(self, request: Request, question: SearchRequest) -> Reply:
        if not question.partial:
            reply: Reply = await whole(super()._search(request, question))
            return reply
        served = self.registry.get(question.model)
        question = answers.settled(served, question)
        asked = served.model.partial()  # type: ignore[attr-defined]  # a Sharded
        work = partial(answers.search, replace(served, model=asked.model), question)
        kind, units = answers.kind_of(served, question), answers.units_of(question)
        done = await whole(self.admission.ask(work, kind, units, request.scope))
        covered: Coverage = asked.coverage
        request.log |= {"model": served.name, "missing_shards": list(covered.missing)}
        if covered.exact:
            self._row.searched(done.queue, done.answer.nanoseconds, done.queue, question.beam, question.rows)
        return declared(answers.content(served, done.answer, done.queue), covered)


async def whole(answering: Any) -> Any:
    """An answer that needs all shards; a 503 names those that are missing."""
    try:
        return await answering
    except ShardsMissing as error:
        raise Refusal(503, "shards-missing", str(error), retry_after=1) from None
    except OtherBuild as error:
        raise Refusal(503, "mixed-builds", str(error), retry_after=1) from None


def declared(pieces: deque[bytes], covered: Coverage) -> Reply:
    """An answer with what it covers."""
    pieces[-1] = pieces[-1][:-1] + b',"coverage":' + orjson.dumps(covered.describe()) + b"}"
    share = covered.labels / covered.full
    headers = ((b"x-coverage", f"{share:.6f}".encode()), (b"cache-control", b"no-store"))
    return Reply(200, pieces.popleft(), headers=headers, rest=pieces)


def own_path(scope: Mapping[str, Any]) -> bytes:
    """The path of a request below the prefix that the application has in Ray Serve, percent-encoded as it came."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.removeprefix(scope.get("root_path", "").rstrip("/").encode()) or b"/"


class Ingress:
    """What takes HTTP requests in a Ray Serve application. One process, one event loop, some threads that wait."""

    def __init__(self, version: str, folder: str, name: str, seconds: float, threads: int, *shards: Any) -> None:
        same_version(version)
        sending: list[Shard] = [shard.tell.remote for shard in shards]
        model = Sharded(folder, send=Asking(sending, seconds))
        self._served = Served(name, model, model.version, {}, "")  # type: ignore[arg-type]  # answers as a model does
        self._options = ServeOptions(
            models={name: Path(folder)}, workers=1, threads=threads, timeout_ms=2e3 * seconds, allow_hosts=("*",),
            open_to_all=True, log="errors",
        )  # fmt: skip
        self._app: App | None = None

    async def __call__(self, request: Any) -> Any:
        """One request, as Starlette hands it over."""
        from starlette.responses import Response

        if self._app is None:
            self._app = self._started(asyncio.get_running_loop())
        head: dict[str, Any] = {}
        body: list[bytes] = []

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            else:
                body.append(message.get("body", b""))

        await self._app({**request.scope, "raw_path": own_path(request.scope)}, request.receive, send)
        made = Response(b"".join(body), head.get("status", 500))
        made.raw_headers = list(head.get("headers", ()))
        return made

    def _started(self, loop: asyncio.AbstractEventLoop) -> App:
        row = ServerMetrics([self._served.name], 1).row(0)
        row.set("ready", 1.0)
        admission = OnThreads(self._options, row, loop)
        registry: Any = OneModel(self._served)
        return App(self._options, ShardHandlers(self._options, registry, admission, row), row, Log("errors", 0))
