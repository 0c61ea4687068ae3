"""processes.py — logs that no one reads, files that are not good, workers that hang in; a server that goes on out."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from pathlib import Path

from support.serving import BEARER, TOKEN, Running, counted, shop, wait_for

import beamwood as bw


def _replaced(server: Running, victim: int, workers: int, **headers: str) -> None:
    wait_for(lambda: victim not in server.worker_pids() and len(server.worker_pids()) == workers, 60)
    wait_for(lambda: counted(server, "beamwood_workers{", **headers) == workers, 60)


def log(folder: Path, times: int) -> bool:
    """The log on a full disk, its reader gone, its reader stuck: a worker dies, then SIGTERM."""
    shop().save(folder / "shop.bw")
    codes: Counter[tuple[str, int]] = Counter()
    slowest = 0.0
    for number in range(times):
        kind = ("full", "gone", "stuck")[number % 3]
        read, write = os.pipe()
        if kind == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), write)
        with Running(folder / "shop.bw", workers=2, stderr=write) as server:
            if kind == "stuck":
                os.set_blocking(write, False)
                with contextlib.suppress(BlockingIOError):
                    while os.write(write, bytes(4096)):
                        pass
                os.set_blocking(write, True)
            os.close(write)
            if kind == "gone":
                os.close(read)
            victim = server.worker_pids()[0]
            os.kill(victim, signal.SIGKILL)
            _replaced(server, victim, 2)
            begun = time.monotonic()
            codes[kind, server.stop(60)] += 1
            slowest = max(slowest, time.monotonic() - begun)
        if kind != "gone":
            os.close(read)
    print(f"  exit codes {dict(codes)}; the longest stop {slowest:.1f} s")
    return {code for _, code in codes} == {0}


def restart(folder: Path, times: int) -> bool:
    """Damaged, deleted and newer files in place of the one that is served, and workers that are killed."""
    path, token = folder / "m.bw", folder / "token"
    shop().save(path)
    token.write_text(TOKEN)
    version, data = bw.load(path).version, path.read_bytes()
    seen: Counter[str] = Counter()
    with Running(path, "--token-file", token, "--log", "off", workers=2) as server:
        for number in range(times):
            if number % 3 == 0:
                draft = folder / "draft"
                at = len(data) - 1000 - number
                draft.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
                os.replace(draft, path)
                seen[str(server.ask("POST", "/v1/admin/reload", **BEARER)[0])] += 1
            elif number % 3 == 1:
                path.unlink()
            else:
                shop(preset="best").save(path)
            victim = server.worker_pids()[number % 2]
            os.kill(victim, signal.SIGKILL)
            _replaced(server, victim, 2, **BEARER)
            for _ in range(20):
                found = server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)["version"]
                seen["same" if found == version else "other"] += 1
        code = server.stop()
    print(f"  {times} kills: {dict(seen)}; exit code {code}")
    return seen["other"] == 0 and seen["200"] == 0 and code == 0


def no_start(folder: Path) -> bool:
    """The file is truncated in place and the worker dies: the server ends with 1, no one waits for ever."""
    shop().save(folder / "m.bw")
    with Running(folder / "m.bw") as server:
        os.truncate(folder / "m.bw", 100)
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        begun = time.monotonic()
        code = server.process.wait(120)
        last = server.lines()[-1]
    print(f"  exit code {code} after {time.monotonic() - begun:.0f} s; the last line: {last}")
    return code == 1 and last["event"] == "no worker can start"


def hung(folder: Path) -> bool:
    """SIGSTOP of a worker: it is replaced; and SIGTERM while one is stopped."""
    shop().save(folder / "m.bw")
    with Running(folder / "m.bw", "--log", "off", workers=2) as server:
        victim = server.worker_pids()[0]
        begun = time.monotonic()
        os.kill(victim, signal.SIGSTOP)
        _replaced(server, victim, 2)
        back = time.monotonic() - begun
        os.kill(server.worker_pids()[0], signal.SIGSTOP)
        begun = time.monotonic()
        code = server.stop(60)
        took = time.monotonic() - begun
    print(f"  replaced after {back:.0f} s; SIGTERM with a stopped worker: code {code} after {took:.0f} s")
    return code == 0 and took < 20


def abort(folder: Path, times: int) -> bool:
    """Asked, reloaded and stopped, again and again: always 0."""
    (folder / "token").write_text(TOKEN)
    codes: Counter[int] = Counter()
    aborted = 0
    for number in range(times):
        shop().save(folder / "m.bw")
        with Running(folder / "m.bw", "--token-file", folder / "token", workers=1 + number % 2) as server:
            for _ in range(1 + number % 4):
                server.json("POST", "/v1/search", {"text": "wool", "exact": True}, **BEARER)
            shop(preset="best").save(folder / "m.bw")
            server.json("POST", "/v1/admin/reload", **BEARER)
            codes[server.stop()] += 1
            aborted += "terminate" in server.logged()
    print(f"  {times} times: exit codes {dict(codes)}, {aborted} with a word of termination")
    return set(codes) == {0} and not aborted
