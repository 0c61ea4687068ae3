"""attacks.py — one client or a few that take all they can get in, what ordinary ones see meanwhile out."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.serving import Running, shop, wait_for

from campaigns.clients import demo, memory, percentile

QUESTION = b'{"text": "wool socks"}'
Attack = Callable[[int, float, Any], None]
Client = Callable[[Running, float], list[float]]


@contextmanager
def on_a_machine_of_its_own() -> Iterator[bool]:
    """The client that is measured stands for one elsewhere: it waits for the server, not for a turn of its own.

    On few cores the system makes any program wait for others' turns, a tick of 4 ms at worst, whether the server or
    someone else keeps them busy: `spin` shows how long. Needs the right to real-time turns; without it, says False.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print(
            "  no right to real-time turns here: the client shares its turns with everybody on this machine", flush=True
        )
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def ordinary(server: Running, seconds: float) -> list[float]:
    """Seconds that each question of a client took who asks one after the other."""
    with on_a_machine_of_its_own():
        return shared(server, seconds)


def shared(server: Running, seconds: float) -> list[float]:
    """The same of a client that takes turns with all others on this machine."""
    found, connection, ends = [], server.connect(), time.monotonic() + seconds
    while time.monotonic() < ends:
        begun = time.perf_counter()
        connection.request("POST", "/v1/search", QUESTION)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        found.append(time.perf_counter() - begun)
        time.sleep(0.0005)
    connection.close()
    return found


def _spin(port: int, seconds: float, told: Any) -> None:
    """Keeps a processor busy and asks nothing."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass
    told.put(Counter())


def _crowded(
    server: Running, attack: Attack, attackers: int, seconds: float, client: Client
) -> tuple[list[float], Counter[Any]]:
    """What a client saw beside some that do this, and what they saw."""
    told: Any = multiprocessing.Queue()
    others = [multiprocessing.Process(target=attack, args=(server.port, seconds + 1, told)) for _ in range(attackers)]
    for other in others:
        other.start()
    time.sleep(1.0)
    found, seen = client(server, seconds), Counter[Any]()
    for _ in others:
        seen += told.get(timeout=120)
    for other in others:
        other.join()
    return found, seen


def beside(server: Running, attack: Attack, attackers: int, seconds: float) -> tuple[bool, Counter[Any]]:
    """Ordinary clients without an attack, beside it and without it; whether p99 stays, and what the attackers saw."""
    calm = ordinary(server, seconds / 2)
    before = memory(server)
    most = before

    def watched(server: Running, seconds: float) -> list[float]:
        nonlocal most
        found = ordinary(server, seconds)
        most = memory(server)
        return found

    attacked, seen = _crowded(server, attack, attackers, seconds, watched)
    calm += ordinary(server, seconds / 2)
    ratio = percentile(attacked, 99) / percentile(calm, 99)
    print(f"  ordinary client alone: p50 {percentile(calm, 50):.2f} ms, p99 {percentile(calm, 99):.2f} ms")
    print(
        f"  beside {attackers} attackers: p50 {percentile(attacked, 50):.2f} ms, p99 {percentile(attacked, 99):.2f} ms "
        f"({ratio:.1f} times); private memory {before:.0f} to {most:.0f} MB"
    )
    print(f"  the attackers saw: {dict(seen)}")
    return percentile(attacked, 99) <= 2 * percentile(calm, 99) + 1 and most < before + 100, seen


def _pipeliner(port: int, seconds: float, told: Any) -> None:
    request = b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\n"
    answered = 0
    with socket.create_connection(("127.0.0.1", port)) as client:
        ends = time.monotonic() + seconds

        def send() -> None:
            while time.monotonic() < ends:
                client.sendall(request * 1000)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        while part := client.recv(1 << 20):
            answered += part.count(b"HTTP/1.1 404")
            if time.monotonic() > ends + 5:
                break
        client.close()
    told.put(Counter(answers=answered))


def pipeline(folder: Path, seconds: float) -> bool:
    """Two connections that send requests without end, ahead of their answers."""
    shop().save(folder / "shop.bw")
    with Running(folder / "shop.bw", "--log", "off") as server:
        held, seen = beside(server, _pipeliner, 2, seconds)
    return held and seen["answers"] > 1000


def unread(folder: Path) -> bool:
    """Twelve clients that ask for the longest answers and read none of them."""
    _, _ = demo(folder / "demo.bw")
    body = json.dumps({"texts": ["history music war england art france"] * 100, "k": 1000, "beam": 1000}).encode()
    head = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
    with Running(folder / "demo.bw", "--log", "off", "--read-timeout-ms", "3000") as server:
        ordinary(server, 1)
        before = memory(server)
        clients = [socket.create_connection((server.host, server.port)) for _ in range(12)]
        for client in clients:
            client.sendall(head + body)
        time.sleep(2.0)
        most = memory(server)
        calm = ordinary(server, 3)
        wait_for(lambda: memory(server) < before + 30, 60)
        after = memory(server)
        for client in clients:
            client.close()
    print(f"  private memory {before:.0f} MB before, {most:.0f} MB with 12 that do not read, {after:.0f} MB afterwards")
    print(f"  ordinary client meanwhile: p99 {percentile(calm, 99):.2f} ms")
    return most < before + 150


def _long_asker(port: int, seconds: float, told: Any) -> None:
    bodies = [
        json.dumps({"text": "history of music " * 60_000}).encode(),
        json.dumps({"texts": ["history of music"] * 1000, "k": 100}).encode(),
        json.dumps({"features": [[1, 1.0]] * 100_000}).encode(),
    ]
    seen: Counter[Any] = Counter()
    ends, number = time.monotonic() + seconds, 0
    with socket.create_connection(("127.0.0.1", port)) as client:
        while time.monotonic() < ends:
            body = bodies[number % len(bodies)]
            client.sendall(
                b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
            data = client.recv(1 << 16)
            status, rest = data[9:12].decode(), data.partition(b"\r\n\r\n")
            length = int(rest[0].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            left = length - len(rest[2])
            while left > 0:
                left -= len(client.recv(1 << 20))
            seen[status] += 1
            number += 1
    told.put(seen)


def long(folder: Path, seconds: float) -> bool:
    """Texts of 1 MB, 1,000 texts with 100 hits each, rows of 100,000 features, one after the other."""
    demo(folder / "demo.bw")
    with Running(folder / "demo.bw", "--log", "off", workers=2) as server:
        held = beside(server, _long_asker, 2, seconds)[0]
        for name, attack in (("the same attackers", _long_asker), ("two programs that ask nothing", _spin)):
            found = _crowded(server, attack, 2, seconds / 4, shared)[0]
            print(f"  a client that takes turns with {name}: p99 {percentile(found, 99):.2f} ms")
        return held


def endless(folder: Path) -> bool:
    """Questions of many seconds end at their time limit, and when their client leaves."""
    _, texts = demo(folder / "demo.bw")
    texts = [(text * 40)[:1000] for text in texts] * 10  # 20,000
    words = ("--log", "off", "--max-texts", "20000", "--max-hits", "10000000", "--max-body", "40000000")
    body = json.dumps({"texts": texts, "k": 100, "exact": True}).encode()
    with Running(folder / "demo.bw", *words, "--timeout-ms", "300") as server:
        took, statuses = [], Counter[int]()
        for _ in range(10):
            begun = time.perf_counter()
            statuses[server.ask("POST", "/v1/search", body)[0]] += 1
            took.append(time.perf_counter() - begun)
    with Running(folder / "demo.bw", *words, "--timeout-ms", "600000") as server:
        connection = server.connect()
        connection.request("POST", "/v1/search", body)
        time.sleep(1.0)
        connection.close()
        begun = time.perf_counter()
        next_one = server.ask("POST", "/v1/search", json.dumps({"text": "music", "exact": True}).encode())[0]
        waited = time.perf_counter() - begun
    print(f"  limit 300 ms: {dict(statuses)}, the longest {max(took) * 1e3:.0f} ms")
    print(f"  after its client left, the next question waited {waited * 1e3:.0f} ms: {next_one}")
    return set(statuses) <= {503} and max(took) < 1.5 and waited < 1.5 and next_one == 200
