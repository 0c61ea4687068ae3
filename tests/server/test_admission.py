"""Claims about the admission queue: who is let in, and when a question that runs is ended."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.models import large_model, large_queries, small_model, small_queries  # noqa: E402
from support.serving import Running  # noqa: E402

from beamwood import _core  # noqa: E402
from beamwood.server.app.metrics import ServerMetrics  # noqa: E402
from beamwood.server.app.replies import Gone, Refusal  # noqa: E402
from beamwood.server.options import ServeOptions  # noqa: E402
from beamwood.server.process.admission import JOB, AdmissionQueue  # noqa: E402


def test_more_than_it_can_do_is_turned_away_at_once(tmp_path: Path) -> None:
    large_model().save(tmp_path / "large.bw")
    rng = np.random.default_rng(0)
    features = [[int(i), 1.0] for i in np.sort(rng.choice(20000, 400, replace=False))]
    body = json.dumps({"features": features, "beam": 128, "k": 100}).encode()
    with Running(tmp_path / "large.bw", "--queue-ms", "5") as server:
        expected = [hit["label"] for hit in server.json("POST", "/v1/search", body)["hits"]]
        outcomes: list[tuple[int, float]] = []

        def client() -> None:
            connection = server.connect()
            for _ in range(15):
                begun = time.perf_counter()
                connection.request("POST", "/v1/search", body)
                answer = connection.getresponse()
                data = json.loads(answer.read())
                outcomes.append((answer.status, time.perf_counter() - begun))
                if answer.status == 200:
                    assert [hit["label"] for hit in data["hits"]] == expected
                else:
                    assert answer.status == 503
                    assert int(answer.headers["retry-after"]) >= 1
            connection.close()

        clients = [threading.Thread(target=client) for _ in range(24)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert len(outcomes) == 24 * 15
        assert {status for status, _ in outcomes} == {200, 503}


async def ended(leave: bool) -> tuple[object, int]:
    """How work that would go on for ever ended, and how often it has asked whether to go on."""
    options = ServeOptions(models={"m": Path("m.bw")}, timeout_ms=200.0)
    queue = AdmissionQueue(options, ServerMetrics(["m"], 1).row(0), asyncio.get_running_loop())
    asked, stopped = [0], threading.Event()

    def work(check: Callable[[], None]) -> None:
        try:
            while True:
                check()
                asked[0] += 1
                time.sleep(0.001)
        finally:
            stopped.set()

    scope: dict[str, Any] = {}
    waiting = asyncio.ensure_future(queue.ask(work, "kind", 1e6, scope))
    while not asked[0]:
        await asyncio.sleep(0.001)
    if leave:
        scope[JOB].abandon(Gone())
    found = (await asyncio.gather(waiting, return_exceptions=True))[0]
    await asyncio.to_thread(stopped.wait, 20)
    queue.close()
    assert queue.is_closed
    return found, asked[0]


def test_a_question_that_runs_ends_at_its_time_limit() -> None:
    error, asked = asyncio.run(ended(leave=False))
    assert isinstance(error, Refusal)
    assert (error.status, error.code) == (503, "too-late")
    assert asked > 1


def test_a_question_ends_when_its_client_has_left() -> None:
    error, asked = asyncio.run(ended(leave=True))
    assert isinstance(error, Gone)
    assert asked < 150


async def answered(queue: AdmissionQueue) -> Any:
    """The answer to a short question, asked until the thread has time: on a busy machine it may take some turns."""
    for _ in range(100):
        try:
            return (await queue.ask(lambda _: 7, "another kind", 1e6)).answer
        except Refusal:
            continue
    raise AssertionError("the thread was never free")


def test_native_code_that_runs_ends_at_the_time_limit() -> None:
    model, X = large_model(), large_queries(100_000)  # minutes of work, in one call

    async def ask() -> object:
        options = ServeOptions(models={"m": Path("m.bw")}, timeout_ms=200.0)
        queue = AdmissionQueue(options, ServerMetrics(["m"], 1).row(0), asyncio.get_running_loop())
        begun = threading.Event()

        def work(_: Callable[[], None]) -> Any:
            begun.set()
            return model.topk(X, 1000, 1000)

        found = (await asyncio.gather(queue.ask(work, "kind", 1e6), return_exceptions=True))[0]
        assert begun.is_set()
        assert await answered(queue) == 7  # the one thread is free
        queue.close()
        assert queue.is_closed
        return found

    error = asyncio.run(ask())
    assert isinstance(error, Refusal)
    assert (error.status, error.code) == (503, "too-late")


def test_all_work_of_a_request_has_one_time_limit() -> None:
    async def ask() -> BaseException:
        options = ServeOptions(models={"m": Path("m.bw")}, timeout_ms=300.0)
        queue = AdmissionQueue(options, ServerMetrics(["m"], 1).row(0), asyncio.get_running_loop())
        scope: dict[str, Any] = {}
        for _ in range(1000):  # each of them short enough
            try:
                await queue.ask(lambda _: time.sleep(0.01), "kind", 1e6, scope)
            except Refusal as error:
                queue.close()
                return error
        raise AssertionError("it had as much time as it asked for")

    assert getattr(asyncio.run(ask()), "code", None) == "too-late"


@pytest.mark.parametrize("layout", ["cascade", "chunk", "column"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_stop_ends_searches_of_its_own_thread_only(layout: str, exact: bool) -> None:
    model, X = small_model(activation="sigmoid").using(layout=layout), small_queries()
    stop = _core.Stop()
    stop.set()
    with stop, pytest.raises(_core.Stopped):
        model.topk(X, exact=exact)
    with stop:
        found = []
        other = threading.Thread(target=lambda: found.append(model.topk(X, exact=exact)))
        other.start()
        other.join()
    assert len(found) == 1
    assert len(model.topk(X, exact=exact)[0]) == X.shape[0]


def test_long_texts_and_many_hits_are_more_work() -> None:
    units = _core.Costs.units
    assert units(1, 20, 10) < 2
    assert units(1, 1 << 20, 10) > 1000
    assert units(1000, 0, 100) > 100 * units(1, 0, 100)
    costs = _core.Costs()
    kind = costs.add()
    costs.learn(kind, 10_000.0)  # a short search
    assert costs.of(kind, units(1, 100, 10)) < _core.Costs.short < costs.of(kind, units(1, 64 << 10, 10))


async def after_a_slow_first(others: int) -> list[object]:
    """How questions were refused that came at once: of a kind never timed, and of one whose first was slow."""
    options = ServeOptions(models={"m": Path("m.bw")}, queue_ms=50.0, threads=1)
    queue = AdmissionQueue(options, ServerMetrics(["m"], 1).row(0), asyncio.get_running_loop())
    never = (queue.ask(lambda _: None, "another", 26.0) for _ in range(others))  # twenty texts, of a kind never timed
    found = await asyncio.gather(*never, return_exceptions=True)
    await queue.ask(lambda _: time.sleep(0.2), "kind")
    found += await asyncio.gather(*(queue.ask(lambda _: None, "kind") for _ in range(others)), return_exceptions=True)
    queue.close()
    return [one for one in found if isinstance(one, BaseException)]


def test_neither_an_untimed_nor_a_slow_first_question_turns_others_away() -> None:
    assert asyncio.run(after_a_slow_first(6)) == []


def test_more_hits_than_an_answer_may_hold_are_refused(folder: Path) -> None:
    with Running(folder / "shop.bw", "--log", "off") as server:
        error = server.json("POST", "/v1/search", {"texts": ["wool"] * 1000, "k": 1000}, status=422)["error"]
        assert error["field"] == "k"
        assert "at most 100,000" in error["message"]
        assert len(server.json("POST", "/v1/search", {"texts": ["wool"] * 1000, "k": 100})["results"]) == 1000
