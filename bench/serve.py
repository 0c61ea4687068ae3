"""A model in; what HTTP adds to an answer, and how many a second, beside the same server answering a constant, out.

One keep-alive connection, a raw socket: the median of the whole call as the client sees it, less the engine's own time.
Then wrk with many connections, in turns: searches; `/healthz` of the same server (a constant that is routed, counted
and logged like a search); and a constant from bare uvicorn, without any of that. CPU a request is that of all processes
of the server, so it holds on a machine that is busy with other things.

    python bench/serve.py library-subjects.bw        (make demo writes that file; wrk is Debian's package)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from beamwood.bench.timing import print_header, print_table

TEXT = "history of jazz in new orleans"
BODY = json.dumps({"text": TEXT, "k": 10}).encode()
CONSTANT = """
BODY = b"x" * {size}
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"{size}")]

async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({{"type": "http.response.start", "status": 200, "headers": HEADERS}})
    await send({{"type": "http.response.body", "body": BODY}})
"""
WRK_POST = f"wrk.method = 'POST'\nwrk.body = '{BODY.decode()}'\n"
TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that no one listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A server while it runs; its process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        time.sleep(1.5)  # all workers
        yield process.pid
    finally:
        process.terminate()
        process.wait(40)


def cpu_seconds(pid: int) -> float:
    """Of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS + sum(cpu_seconds(int(child)) for child in children)


class OneConnection:
    """Asks the same again and again on one connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(BODY)}\r\n\r\n"
        self.request = head.encode() + BODY

    def ask(self) -> bytes:
        """One call: the body of the answer."""
        self.socket.sendall(self.request)
        data = self.socket.recv(65536)
        while (split := data.find(b"\r\n\r\n")) < 0:
            data += self.socket.recv(65536)
        length = int(re.search(rb"content-length: (\d+)", data[:split])[1])  # type: ignore[index]
        while len(data) < split + 4 + length:
            data += self.socket.recv(65536)
        return data[split + 4 :]

    def overhead(self, calls: int) -> tuple[float, float]:
        """Medians in microseconds: of the whole call, and of the engine."""
        whole, engine = [], []
        for _ in range(calls):
            begun = time.perf_counter_ns()
            answer = self.ask()
            whole.append((time.perf_counter_ns() - begun) / 1e3)
            engine.append(float(answer.rpartition(b'"engine_us":')[2].partition(b",")[0]))
        return statistics.median(whole), statistics.median(engine)


def wrk(url: str, script: Path | None, connections: int, seconds: int, pid: int) -> tuple[float, float]:
    """Requests a second, and microseconds of the server's processors a request."""
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *(["-s", str(script)] if script else []), url]
    before = cpu_seconds(pid)
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pid) - before
    if "Non-2xx" in out or "Socket errors" in out:
        print(out, file=sys.stderr)
    count = int(re.search(r"(\d+) requests in", out)[1])  # type: ignore[index]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])  # type: ignore[index]
    return rate, used / count * 1e6


def main() -> None:
    """Starts both servers, measures in turns, prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("model", type=Path)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=int, default=4)
    options.add_argument("--calls", type=int, default=3000)
    given = options.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not there; install it: apt-get install wrk")
    workers = ["--workers", str(given.workers)]
    port, bare_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "post.lua")
        script.write_text(WRK_POST)
        ours = [sys.executable, "-m", "beamwood", "serve", str(given.model), "--port", str(port), *workers]
        with running(ours, port) as pid:
            one = OneConnection(port)
            for _ in range(500):
                answer = one.ask()
            Path(folder, "constant.py").write_text(CONSTANT.format(size=len(answer)))
            bare = [sys.executable, "-m", "uvicorn", "--app-dir", folder, "constant:app", "--port", str(bare_port)]
            bare += ["--no-access-log", "--log-level", "error", "--lifespan", "off", *workers]
            with running(bare, bare_port) as bare_pid:
                url, bare_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{bare_port}/v1/search"
                runs: dict[str, Callable[[], tuple[float, float]]] = {
                    "search": lambda: wrk(f"{url}/v1/search", script, given.connections, given.seconds, pid),
                    "constant, same server": lambda: wrk(f"{url}/healthz", None, given.connections, given.seconds, pid),
                    "constant, bare uvicorn": lambda: wrk(bare_url, script, given.connections, given.seconds, bare_pid),
                }
                report(runs, one, given.rounds, given.calls)


def report(runs: dict[str, Callable[[], tuple[float, float]]], one: OneConnection, rounds: int, calls: int) -> None:
    """Measures in turns and prints the two tables."""
    calls_found, found = [], {name: [] for name in runs}  # type: ignore[var-annotated]
    for _ in range(rounds):
        calls_found.append(one.overhead(calls))
        for name, run in runs.items():
            found[name].append(run())
    print_header("HTTP", {"query": TEXT, "rounds": rounds})
    whole, engine = (statistics.median(column) for column in zip(*calls_found, strict=True))
    print(f"one connection, p50: whole call {whole:.0f} us, engine {engine:.1f} us, overhead {whole - engine:.0f} us\n")
    medians = {name: tuple(map(statistics.median, zip(*rows, strict=True))) for name, rows in found.items()}
    rate, cpu = medians["search"]
    rows = [[name, f"{a:,.0f}", f"{rate / a:.0%}", f"{b:.0f}", f"{b / cpu:.0%}"] for name, (a, b) in medians.items()]
    print_table(["", "requests/s", "search reaches", "CPU us a request", "of a search's"], rows)


if __name__ == "__main__":
    main()
