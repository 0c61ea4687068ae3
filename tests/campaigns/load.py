"""load.py — more questions than the engine can answer in, whom it answered and how soon out."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from support.serving import Running

import beamwood as bw
from campaigns.clients import Wire, demo, memory, percentile

SLOW_FEATURES, SLOW_WORDS = 5_000, 1_200


LEAST_ENGINE = 5e-3  # seconds that a slow question must take, or there is no overload to speak of


def slow_model() -> bw.Model:
    """131,072 labels whose scores no bound can cut short: with a beam of 1,000 a quarter of them is added up."""
    rng = np.random.default_rng(0)
    layers, above = [], 1
    for nodes, a_node in ((64, 2000), (4096, 400), (131072, 60)):
        cells = (rng.integers(0, SLOW_FEATURES, nodes * a_node), np.repeat(np.arange(nodes), a_node))
        values = rng.standard_normal(nodes * a_node).astype(np.float32)
        weights = sp.coo_array((values, cells), shape=(SLOW_FEATURES, nodes)).tocsc()
        layers.append(bw.Layer(weights, np.arange(nodes) * above // nodes))
        above = nodes
    return bw.Model.from_layers(layers, activation="identity")


def slow_questions(count: int = 20) -> list[bytes]:
    """Rows for the slow model that keep its engine busy for milliseconds."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        ids = np.sort(rng.choice(SLOW_FEATURES, SLOW_WORDS, replace=False))
        features = [[int(i), round(float(v), 3)] for i, v in zip(ids, rng.standard_normal(SLOW_WORDS), strict=True)]
        made.append(json.dumps({"features": features, "beam": 1000, "k": 10}).encode())
    return made


async def open_loop(
    server: Running, questions: list[bytes], expected: list[Any], rate: float, seconds: float
) -> dict[Any, Any]:
    """Requests at random moments, whatever the answers do; connections are kept and used again."""
    free: list[Wire] = []
    outcome: dict[str, Any] = {"accepted": [], "refused": [], "wrong": 0, "other": Counter()}

    async def one(number: int, due: float) -> None:
        wire = free.pop() if free else Wire(server.port)
        try:
            status, data = await wire.ask(questions[number])
        except (OSError, asyncio.IncompleteReadError) as error:
            outcome["other"][type(error).__name__] += 1
            return
        took = time.perf_counter() - due
        free.append(wire)
        if status == 200:
            outcome["accepted"].append(took)
            if [hit["label"] for hit in json.loads(data)["hits"]] != expected[number]:
                outcome["wrong"] += 1
        elif status == 503:
            outcome["refused"].append(took)
        else:
            outcome["other"][status] += 1

    chance = random.Random(1)
    running: set[asyncio.Task[None]] = set()
    begun = due = time.perf_counter()
    while due - begun < seconds:
        due += chance.expovariate(rate)
        pause = due - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        task = asyncio.create_task(one(chance.randrange(len(questions)), due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running, return_exceptions=True)
    for wire in free:
        wire.close()
    return outcome


def overload(folder: Path, seconds: float) -> bool:
    """Open loop at 80 % and at ten times what the engine can do."""
    slow_model().save(folder / "slow.bw")
    questions = slow_questions()
    with Running(folder / "slow.bw", "--log", "off", workers=1) as server:
        expected: list[Any] = []
        engine: list[float] = []
        for _ in range(3):
            expected = []
            for body in questions:
                answer = server.json("POST", "/v1/search", body)
                expected.append([hit["label"] for hit in answer["hits"]])
                engine.append(answer["engine_us"] / 1e6)
        capacity = 1 / float(np.median(engine))
        calm = asyncio.run(open_loop(server, questions, expected, 0.8 * capacity, seconds / 2))
        before = memory(server)
        storm = asyncio.run(open_loop(server, questions, expected, 10 * capacity, seconds))
        after = memory(server)
    ratio = percentile(storm["accepted"], 99) / percentile(calm["accepted"], 99)
    print(f"  engine {np.median(engine) * 1e3:.1f} ms, so {capacity:.0f} requests/s")
    for name, found in (("80 %", calm), ("1000 %", storm)):
        print(
            f"  {name:>6}: {len(found['accepted']):,} answered, p50 {percentile(found['accepted'], 50):.1f} ms, "
            f"p99 {percentile(found['accepted'], 99):.1f} ms; {len(found['refused']):,} turned away, "
            f"p99 {percentile(found['refused'], 99):.1f} ms; wrong {found['wrong']}, other {dict(found['other'])}"
        )
    print(f"  p99 of those let in: {ratio:.2f} times that at 80 %; private memory {before:.0f} to {after:.0f} MB")
    swift = ratio <= 2 and percentile(storm["refused"], 99) <= 50
    right = storm["wrong"] == calm["wrong"] == 0 and not storm["other"]
    return bool(np.median(engine) >= LEAST_ENGINE and swift and right and after < 1.2 * before + 20)


def closed(folder: Path, seconds: float) -> bool:
    """The demo model, ten times as many connections as it needs, each asking as fast as it is answered."""
    model, texts = demo(folder / "demo.bw")
    expected = [[(hit.label, np.float32(hit.score)) for hit in model.search(text)] for text in texts]
    counts: Counter[Any] = Counter()

    async def client(port: int, ends: float) -> None:
        wire, chance = Wire(port), random.Random()
        while time.perf_counter() < ends:
            number = chance.randrange(len(texts))
            try:
                status, data = await wire.ask(json.dumps({"text": texts[number]}).encode())
            except (OSError, asyncio.IncompleteReadError) as error:
                counts[type(error).__name__] += 1
                continue
            hits = json.loads(data)["hits"] if status == 200 else []
            right = status != 200 or [(hit["label"], np.float32(hit["score"])) for hit in hits] == expected[number]
            counts[status if right else "wrong"] += 1
        wire.close()

    async def all_of_them(port: int) -> None:
        ends = time.perf_counter() + seconds
        await asyncio.gather(*(client(port, ends) for _ in range(320)))

    with Running(folder / "demo.bw", "--log", "off", workers=2) as server:
        server.json("POST", "/v1/search", {"text": "jazz"})
        before = memory(server)
        asyncio.run(all_of_them(server.port))
        after = memory(server)
    print(f"  320 connections, {seconds:.0f} s: {dict(counts)}; private memory {before:.0f} to {after:.0f} MB")
    return set(counts) <= {200, 503} and counts[200] > 1000 and after < 1.2 * before + 20
