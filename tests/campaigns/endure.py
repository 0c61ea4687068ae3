"""endure.py — hours of mixed questions and reloads in, whether memory, files and threads stay flat out (promise 11)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from support.serving import TEXTS, TOKEN, Running

from campaigns.clients import Wire, memory, under_load
from campaigns.swaps import two_versions

HEADER = f"authorization: Bearer {TOKEN}\r\n"
SAMPLES = 40  # of memory, open files and threads; the first quarter is the time to warm up
GROWTH = 1.1  # what the mean of the last quarter may have of the mean of the second


def endure(folder: Path, seconds: float) -> bool:
    """Searches, batches, explanations, errors and cut connections, with new files all the time."""
    path, models, expected = two_versions(folder)
    counts: Counter[Any] = Counter()
    stop = threading.Event()
    taken: list[tuple[float, float, float]] = []
    with Running(path, "--token-file", folder / "token", "--log", "off", workers=2) as server:
        ends, number = time.monotonic() + seconds, 0
        with under_load(stop, lambda: asyncio.run(_clients(server, expected, counts, stop))):
            while time.monotonic() < ends:
                number += 1
                models[number % 2].save(path)
                server.json("POST", "/v1/admin/reload", authorization=f"Bearer {TOKEN}")
                time.sleep(seconds / SAMPLES)
                taken.append(_sample(server))
        code = server.stop()
    held, told = _flat(taken)
    print(f"  {seconds:.0f} s, {number} reloads: {dict(counts)}; {told}; exit code {code}")
    return (
        held and code == 0 and counts["right"] > 0 and not counts.keys() - {"right", "refused as it should be", "cut"}
    )


async def _clients(server: Running, expected: dict[str, dict[str, Any]], counts: Counter[Any], stop: Any) -> None:
    await asyncio.gather(*(_client(server, expected, counts, stop, seed) for seed in range(6)))


async def _client(
    server: Running, expected: dict[str, dict[str, Any]], counts: Counter[Any], stop: threading.Event, seed: int
) -> None:
    """Asks one thing after another, as they fall; compares every answer that has hits with its version's."""
    wire, chance = Wire(server.port), random.Random(seed)
    while not stop.is_set():
        text, kind = chance.choice(TEXTS), chance.choice(("text", "texts", "exact", "explain", "error", "cut"))
        if kind == "cut":
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n\r\n{")
            writer.close()
            counts["cut"] += 1
            continue
        body = {
            "text": {"text": text},
            "texts": {"texts": [text] * 20},
            "exact": {"text": text, "exact": True},
            "explain": {"text": text, "label": 0},
            "error": {"text": text, "k": "many"},
        }[kind]
        address = "/v1/explain" if kind == "explain" else "/v1/search"
        try:
            status, data = await wire.ask(json.dumps(body).encode(), address, HEADER)
        except (OSError, asyncio.IncompleteReadError) as error:
            counts[type(error).__name__] += 1
            continue
        counts[_verdict(kind, text, status, data, expected, counts)] += 1
    wire.close()


def _verdict(
    kind: str, text: str, status: int, data: bytes, expected: dict[str, dict[str, Any]], counts: Counter[Any]
) -> str:
    """What is to be said of an answer."""
    if kind == "error":
        return "refused as it should be" if 400 <= status < 500 else f"an error with {status}"
    if status != 200:
        return f"{kind}: {status} {json.loads(data)['error']['code']} (the {sum(counts.values()):,}th question)"
    answer = json.loads(data)
    if kind in ("explain", "exact"):  # exact answers may differ from a beam's; that they come is the claim
        return "right" if answer["version"] in expected else "of no version"
    lists = answer["results"] if kind == "texts" else [answer]
    found = [[(hit["label"], np.float32(hit["score"])) for hit in one["hits"]] for one in lists]
    return "right" if all(one == expected[answer["version"]][text] for one in found) else "wrong"


def _sample(server: Running) -> tuple[float, float, float]:
    """Megabytes, open files and threads of the workers."""
    pids = server.worker_pids()
    files = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    return memory(server), files, sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)


def _flat(taken: list[tuple[float, float, float]]) -> tuple[bool, str]:
    """Whether the last quarter has no more than the second, and both in words."""
    quarter = max(1, len(taken) // 4)
    second = np.mean(taken[quarter : 2 * quarter] or taken, axis=0)
    last = np.mean(taken[-quarter:], axis=0)
    told = ", ".join(
        f"{name} {a:.1f} then {b:.1f}" for name, a, b in zip(("MB", "files", "threads"), second, last, strict=True)
    )
    return bool((last <= GROWTH * second + 2).all()), told
