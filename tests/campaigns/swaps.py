"""swaps.py — new files, SIGTERM and killed workers under load in, whether every request was answered right out."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from support.serving import TEXTS, TOKEN, Running, shop, wait_for

import beamwood as bw
from campaigns.clients import Wire, under_load


def two_versions(folder: Path) -> tuple[Path, list[bw.Model], dict[str, dict[str, Any]]]:
    """A file with the first of two models, both of them, and by version what each answers; a token lies beside."""
    path = folder / "m.bw"
    models = [shop(), shop(preset="best")]
    models[0].save(path)
    (folder / "token").write_text(TOKEN)
    expected: dict[str, dict[str, Any]] = {}
    for model in models:
        model.save(folder / "probe.bw")
        version = str(bw.load(folder / "probe.bw").version)
        expected[version] = {t: [(h.label, np.float32(h.score)) for h in model.search(t)] for t in TEXTS}
    return path, models, expected


def put_in_place(path: Path, model: bw.Model, state: str) -> None:
    """A new file in the place of one that is served: a good one, or one that no server may take."""
    if state == "missing":
        path.unlink()
        return
    draft = path.with_name("draft.bw")
    model.save(draft)
    data = bytearray(draft.read_bytes())
    if state == "damaged":
        data[-100] ^= 1  # in the last array: only its checksum tells
    draft.write_bytes(data[: len(data) // 2] if state == "half-copied" else data)
    draft.replace(path)


def swap(folder: Path, swaps: int) -> bool:
    """New files again and again while clients ask, three of four not good; every answer is one version's."""
    path, models, expected = two_versions(folder)
    counts: Counter[Any] = Counter()
    stop = threading.Event()
    token = f"authorization: Bearer {TOKEN}\r\n"

    async def client(port: int) -> None:
        wire, chance = Wire(port), random.Random()
        while not stop.is_set():
            text = chance.choice(TEXTS)
            try:
                status, data = await wire.ask(json.dumps({"text": text}).encode(), token=token)
            except (OSError, asyncio.IncompleteReadError) as error:
                counts[type(error).__name__] += 1
                continue
            if status != 200:
                counts[status] += 1
                continue
            answer = json.loads(data)
            found = [(hit["label"], np.float32(hit["score"])) for hit in answer["hits"]]
            counts["right" if found == expected[answer["version"]][text] else "wrong"] += 1
        wire.close()

    async def clients(port: int) -> None:
        await asyncio.gather(*(client(port) for _ in range(8)))

    with Running(path, "--token-file", folder / "token", "--log", "off", workers=2) as server:
        good, told = 0, Counter[tuple[str, int]]()
        with under_load(stop, lambda: asyncio.run(clients(server.port))):
            wait_for(lambda: counts["right"] > 100)
            for number in range(swaps):
                state = ("good", "damaged", "half-copied", "missing")[number % 4]
                good += state == "good"
                put_in_place(path, models[good % 2 if state == "good" else (good + 1) % 2], state)
                status = server.ask("POST", "/v1/admin/reload", authorization=f"Bearer {TOKEN}")[0]
                told[state, status] += 1
        text = server.ask("GET", "/metrics", authorization=f"Bearer {TOKEN}")[2].decode()
        done = next(line for line in text.splitlines() if line.startswith("beamwood_swaps_total"))
    print(f"  {swaps} new files, 2 workers: {dict(counts)}; {done}; a reload was answered: {dict(told)}")
    kept = all(status == (200 if state == "good" else 409) for state, status in told)
    return kept and set(counts) == {"right"} and done.endswith(f" {2 * good}")


def term(folder: Path, times: int) -> bool:
    """SIGTERM under load, again and again; a request that was sent on a connection is answered."""
    shop().save(folder / "shop.bw")
    counts: Counter[str] = Counter()
    codes: Counter[int] = Counter()

    async def client(port: int, asks: int) -> None:
        while True:
            wire = Wire(port)
            try:
                wire.streams = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
            except (OSError, asyncio.TimeoutError):
                return  # the door is shut
            try:
                for _ in range(asks):  # then a new connection
                    status, _ = await wire.ask(b'{"text": "wool socks"}')
                    counts["answered" if status == 200 else str(status)] += 1
                    if wire.streams is None:
                        break
            except (OSError, asyncio.IncompleteReadError) as error:
                counts[f"lost: {type(error).__name__}"] += 1
            wire.close()

    async def clients(port: int) -> None:
        # When the signal comes some connections are being made, and others stay until the server closes them.
        await asyncio.gather(*(client(port, asks) for asks in (20, sys.maxsize) * 8))

    for number in range(times):
        with Running(folder / "shop.bw", "--log", "off", workers=2) as server:
            load = threading.Thread(target=lambda port=server.port: asyncio.run(clients(port)))
            load.start()
            time.sleep(0.2 + 0.3 * random.Random(number).random())
            codes[server.stop()] += 1
            load.join()
    print(f"  {times} times, 16 clients, 2 workers: {dict(counts)}; exit codes {dict(codes)}")
    return set(counts) == {"answered"} and set(codes) == {0}


def kill(folder: Path, times: int) -> bool:
    """kill -9 of a worker: connections to others go on, and it comes back."""
    shop().save(folder / "shop.bw")
    gone: list[float] = []
    others = 0
    with Running(folder / "shop.bw", "--log", "off", workers=2) as server:
        for _ in range(times):
            time.sleep(1.2)
            victim = random.choice(server.worker_pids())
            begun = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            for _ in range(20):
                others += bool(server.json("POST", "/v1/search", {"text": "wool"})["hits"])
            ready = 'beamwood_workers{model="shop"'

            def back(victim: int = victim, ready: str = ready) -> bool:
                text = server.ask("GET", "/metrics")[2].decode()
                both = any(line.startswith(ready) and line.endswith(" 2") for line in text.splitlines())
                return both and victim not in server.worker_pids() and len(server.worker_pids()) == 2

            wait_for(back, 60)
            gone.append(time.monotonic() - begun)
        code = server.stop()
    print(
        f"  {times} kills: {others} of {20 * times} requests right after them answered; back in {np.median(gone):.1f} s"
    )
    return others == 20 * times and code == 0
