"""hostile.py — requests that no ordinary client sends in, what became of them out."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.serving import TOKEN, Running, shop

from campaigns.clients import percentile


def hostile(folder: Path, cases: int) -> bool:
    """schemathesis over the server's own OpenAPI document."""
    shop().save(folder / "shop.bw")
    (folder / "token").write_text(TOKEN)
    with Running(folder / "shop.bw", "--token-file", folder / "token", "--log", "errors", workers=2) as server:
        tool = Path(sys.executable).with_name("schemathesis")
        each = max(1, cases // 4)  # operations with few parameters run out of new cases long before
        command = [str(tool), "run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}"]
        command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"]
        command += ["--phases", "examples,coverage,fuzzing", "--mode", "all", "-n", str(each), "--no-color"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        text = server.ask("GET", "/metrics", authorization=f"Bearer {TOKEN}")[2].decode()
        by_status: Counter[str] = Counter()
        for line in text.splitlines():
            if line.startswith("beamwood_requests_total"):
                by_status[line.partition('status="')[2][:3]] += int(line.rpartition(" ")[2])
        alive = server.json("POST", "/v1/search", {"text": "wool"}, authorization=f"Bearer {TOKEN}")["hits"]
    print("  " + "\n  ".join(ran.stdout.strip().splitlines()[-14:]))
    print(f"  answers by status: {dict(by_status)}")
    bad = sum(count for status, count in by_status.items() if status >= "500" and status != "503")
    return bool(alive) and bad == 0 and sum(by_status.values()) >= cases and ran.returncode == 0


SLOW_BODY = b'{"text": "wool socks"}'


async def creep(port: int, number: int, ends: float) -> str:
    """A client that sends byte by byte: every other one in the head, the rest in the body. What became of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 22\r\n"
    sent = head if number % 2 else head + b"\r\n" + SLOW_BODY
    answer = asyncio.ensure_future(reader.read(12))
    try:
        for at in range(len(sent)):
            if time.monotonic() > ends:
                return "still there"
            if number % 2 or at > len(head) + 2:
                await asyncio.sleep(0.4)
            if answer.done():
                return answer.result().decode() or "closed"
            writer.write(sent[at : at + 1])
        return "sent all"
    except OSError:
        return "closed"
    finally:
        answer.cancel()
        writer.close()


def crowd(port: int, clients: int, seconds: float, told: Any) -> None:
    """Many of them, in a process of their own: the ordinary client must not wait for their share of Python."""

    async def all_of_them() -> list[str]:
        ends = time.monotonic() + seconds
        return await asyncio.gather(*(creep(port, number, ends) for number in range(clients)))

    told.put(asyncio.run(all_of_them()))


def slow(folder: Path, clients: int) -> bool:
    """Slow clients hold connections open, byte by byte, while ordinary ones are timed: without them, with, without."""
    shop().save(folder / "shop.bw")

    def ordinary(server: Running, seconds: float) -> list[float]:
        found, connection, ends = [], server.connect(), time.monotonic() + seconds
        while time.monotonic() < ends:
            begun = time.perf_counter()
            connection.request("POST", "/v1/search", SLOW_BODY)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            found.append(time.perf_counter() - begun)
            time.sleep(0.0005)
        return found

    with Running(folder / "shop.bw", "--log", "off", "--read-timeout-ms", "5000", workers=2) as server:
        alone = ordinary(server, 5)
        told: Any = multiprocessing.Queue()
        others = multiprocessing.Process(target=crowd, args=(server.port, clients, 14, told))
        others.start()
        time.sleep(2.0)
        beside = ordinary(server, 10)
        became = Counter(told.get(timeout=60))
        others.join()
        alone += ordinary(server, 5)
    print(f"  ordinary client alone: p50 {percentile(alone, 50):.2f} ms, p99 {percentile(alone, 99):.2f} ms")
    print(f"  beside {clients} slow ones: p50 {percentile(beside, 50):.2f} ms, p99 {percentile(beside, 99):.2f} ms")
    print(f"  what became of the slow ones: {dict(became)}")
    near = all(percentile(beside, share) < 2 * percentile(alone, share) + 1 for share in (50, 99))
    return near and "still there" not in became


def outside(folder: Path) -> bool:
    """From another network namespace, joined to this one by a pair of virtual cards: closed unless asked for."""
    shop().save(folder / "shop.bw")
    (folder / "token").write_text(TOKEN)
    space, here, there = "beamwood-test", "10.213.7.1", "10.213.7.2"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def reach(port: int, host: str, token: str = "") -> str:
        code = (
            "import http.client as h, sys\n"
            f"c = h.HTTPConnection('{host}', {port}, timeout=3)\n"
            f"try:\n c.request('GET', '/v1/models', headers={{'authorization': 'Bearer {token}'}})\n"
            " print(c.getresponse().status)\nexcept OSError as e: print(type(e).__name__)"
        )
        ran = ["ip", "netns", "exec", space, sys.executable, "-c", code]
        return subprocess.run(ran, capture_output=True, text=True, check=False).stdout.strip()

    try:
        ip("netns", "add", space)
        ip("link", "add", "bw-here", "type", "veth", "peer", "name", "bw-there", "netns", space)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  NOT RUN: this machine makes no network namespaces ({error})")
        return False
    try:
        ip("addr", "add", f"{here}/30", "dev", "bw-here")
        ip("link", "set", "bw-here", "up")
        ip("-n", space, "addr", "add", f"{there}/30", "dev", "bw-there")
        ip("-n", space, "link", "set", "bw-there", "up")
        with Running(folder / "shop.bw", "--log", "off") as server:
            usual = reach(server.port, here)
        words = ("--host", here, "--token-file", folder / "token", "--log", "off")
        with Running(folder / "shop.bw", *words) as server:
            without, with_token = reach(server.port, here), reach(server.port, here, TOKEN)
    finally:
        subprocess.run(["ip", "netns", "del", space], check=False)
    print(f"  from another namespace: default {usual}; --host with a token: without it {without}, with it {with_token}")
    return usual == "ConnectionRefusedError" and without == "401" and with_token == "200"
