"""Long campaigns against a real server, with checked answers: `make test-serve`. Prints what it measured.

    python tests/campaigns/serve.py [overload] [closed] [swap] [term] [kill] [hostile] [slow] [outside] [annif]

All of them when none is named. Exits with 1 when a claim does not hold. Everything stays on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

for _place in Path(__file__).resolve().parents[1:3]:  # tests/ for support, the repository for bench/rivals
    sys.path.insert(0, str(_place))

from support.serving import LABELS, TEXTS, TOKEN, Running, shop, wait_for  # noqa: E402

import beamwood as bw  # noqa: E402
from beamwood import datasets  # noqa: E402
from bench.rivals.install import python_of  # noqa: E402

Answer = tuple[int, bytes]


class Wire:
    """One keep-alive connection of an asyncio client, as thin as can be."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes, path: str = "/v1/search", token: str = "") -> Answer:
        """Status and body; connects when there is no connection."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{token}\r\n"
        writer.write(head.encode() + body)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(lines.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            data = await reader.readexactly(length)
        except BaseException:
            self.close()
            raise
        if b"connection: close" in lines:
            self.close()
        return int(lines[9:12]), data

    def close(self) -> None:
        """Lets go of the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def percentile(values: list[float], share: float) -> float:
    """Of seconds, in milliseconds."""
    return float(np.percentile(values, share)) * 1e3 if values else float("nan")


def memory(server: Running) -> float:
    """Megabytes that belong to the workers alone."""
    total = 0
    for pid in server.worker_pids():
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty"):
                total += int(line.split()[1])
    return total / 1024


# --- overload --------------------------------------------------------------------------------------------------------


SLOW_FEATURES, SLOW_WORDS = 5_000, 300
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


async def open_loop(server: Running, questions: list[bytes], expected: list[Any], rate: float, seconds: float) -> dict:
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
        expected, engine = [], []
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


def demo(path: Path) -> tuple[bw.Model, list[str]]:
    """The model of `make demo`, saved, and texts of library records that it was not trained on."""
    data = datasets.load("library-subjects")
    features = bw.TextFeatures(min_df=2, sublinear_tf=True)
    bw.train_text(data.train_texts, data.train_labels, text=features, preset="fast", progress=False).save(path)
    return bw.load(path), data.test_texts[:2000]


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


# --- swaps and stops -------------------------------------------------------------------------------------------------


def swap(folder: Path, swaps: int) -> bool:
    """New files again and again while clients ask; every answer is one version's."""
    path = folder / "m.bw"
    models = [shop(), shop(preset="best")]
    models[0].save(path)
    (folder / "token").write_text(TOKEN)
    expected: dict[str, dict[str, Any]] = {}
    for model in models:
        model.save(folder / "probe.bw")
        version = str(bw.load(folder / "probe.bw").version)
        expected[version] = {t: [(h.label, np.float32(h.score)) for h in model.search(t)] for t in TEXTS}
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
        load = threading.Thread(target=lambda: asyncio.run(clients(server.port)))
        load.start()
        wait_for(lambda: counts["right"] > 100)
        for number in range(swaps):
            models[(number + 1) % 2].save(path)
            server.json("POST", "/v1/admin/reload", authorization=f"Bearer {TOKEN}")
        stop.set()
        load.join()
        text = server.ask("GET", "/metrics", authorization=f"Bearer {TOKEN}")[2].decode()
        done = next(line for line in text.splitlines() if line.startswith("beamwood_swaps_total"))
    print(f"  {swaps} swaps, 2 workers: {dict(counts)}; {done}")
    return set(counts) == {"right"} and done.endswith(str(2 * swaps))


def term(folder: Path, times: int) -> bool:
    """SIGTERM under load, again and again; a request that was sent on a connection is answered."""
    shop().save(folder / "shop.bw")
    counts: Counter[str] = Counter()
    codes: Counter[int] = Counter()

    async def client(port: int) -> None:
        while True:
            wire = Wire(port)
            try:
                wire.streams = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
            except (OSError, asyncio.TimeoutError):
                return  # the door is shut
            try:
                for _ in range(20):  # then a new connection: some are always being made when the signal comes
                    status, _ = await wire.ask(b'{"text": "wool socks"}')
                    counts["answered" if status == 200 else str(status)] += 1
                    if wire.streams is None:
                        break
            except (OSError, asyncio.IncompleteReadError) as error:
                counts[f"lost: {type(error).__name__}"] += 1
            wire.close()

    async def clients(port: int) -> None:
        await asyncio.gather(*(client(port) for _ in range(16)))

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


# --- hostile ---------------------------------------------------------------------------------------------------------


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
    """Many of them, in a process of their own: the honest client must not wait for their share of Python."""

    async def all_of_them() -> list[str]:
        ends = time.monotonic() + seconds
        return await asyncio.gather(*(creep(port, number, ends) for number in range(clients)))

    told.put(asyncio.run(all_of_them()))


def slow(folder: Path, clients: int) -> bool:
    """Slow clients hold connections open, byte by byte, while honest ones are timed: without them, with, without."""
    shop().save(folder / "shop.bw")

    def honest(server: Running, seconds: float) -> list[float]:
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
        alone = honest(server, 5)
        told: Any = multiprocessing.Queue()
        others = multiprocessing.Process(target=crowd, args=(server.port, clients, 14, told))
        others.start()
        time.sleep(2.0)
        beside = honest(server, 10)
        became = Counter(told.get(timeout=60))
        others.join()
        alone += honest(server, 5)
    print(f"  honest client alone: p50 {percentile(alone, 50):.2f} ms, p99 {percentile(alone, 99):.2f} ms")
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


# --- Annif -----------------------------------------------------------------------------------------------------------


def annif(folder: Path) -> bool:
    """A real Annif with a project of backend http aimed at the server: suggestions and `annif eval`."""
    python = python_of("annif")  # in build/rivals, where it is installed when it is not there yet
    shop().save(folder / "shop.bw")
    prefix = "http://example.org/shop/"
    keys = sorted({key for keys in LABELS for key in keys})
    (folder / "vocab.tsv").write_text("".join(f"<{prefix}{key}>\t{key}\n" for key in keys))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, (text, labels) in enumerate(zip(TEXTS, LABELS, strict=True)):
        (corpus / f"{number}.txt").write_text(text)
        (corpus / f"{number}.tsv").write_text("".join(f"<{prefix}{key}>\t{key}\n" for key in labels))
    with Running(folder / "shop.bw", "--uri-prefix", prefix, "--log", "off") as server:
        (folder / "projects.cfg").write_text(
            f"[shop]\nname=Shop\nlanguage=en\nbackend=http\nendpoint={server.url}/v1/projects/shop/suggest\n"
            "vocab=shop\nlimit=10\n"
        )

        def run(*words: str, given: str | None = None) -> str:
            command = [python, python.with_name("annif"), *words]
            ran = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr[-2000:]
            return ran.stdout

        run("load-vocab", "shop", "--language", "en", "vocab.tsv")
        suggested = run("suggest", "shop", given="warm wool socks")
        measured = run("eval", "shop", str(corpus))
    print("  annif suggest: " + " | ".join(line.replace("\t", " ") for line in suggested.splitlines()[:3]))
    figures = [line for line in measured.splitlines() if line.startswith(("F1@5", "NDCG", "Precision@1", "Documents"))]
    print("  annif eval: " + " | ".join(" ".join(line.split()) for line in figures))
    best = suggested.splitlines()[0].split("\t")
    expected = shop().search("warm wool socks", 1)[0]
    return best[1] == expected.key and f"<{prefix}{expected.key}>" == best[0]


def main() -> None:
    """Runs the campaigns that are named."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--swaps", type=int, default=200)
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--slow", type=int, default=500)
    given = options.parse_args()
    campaigns: dict[str, Callable[[Path], bool]] = {
        "overload": lambda folder: overload(folder, given.seconds),
        "closed": lambda folder: closed(folder, given.seconds),
        "swap": lambda folder: swap(folder, given.swaps),
        "term": lambda folder: term(folder, given.times),
        "kill": lambda folder: kill(folder, 10),
        "hostile": lambda folder: hostile(folder, given.cases),
        "slow": lambda folder: slow(folder, given.slow),
        "outside": outside,
        "annif": annif,
    }
    unknown = set(given.names) - set(campaigns)
    if unknown:
        sys.exit(f"not known: {', '.join(sorted(unknown))}; there are: {', '.join(campaigns)}")
    failed = []
    for name in given.names or campaigns:
        print(f"{name}: {(campaigns[name].__doc__ or globals()[name].__doc__).splitlines()[0]}", flush=True)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                held = campaigns[name](Path(folder))
            except Exception as error:
                print(f"  {type(error).__name__}: {str(error)[:1500]}")
                held = False
        print(f"  {'holds' if held else 'DOES NOT HOLD'} ({time.monotonic() - begun:.0f} s)\n", flush=True)
        failed += [] if held else [name]
    sys.exit(f"did not hold: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
