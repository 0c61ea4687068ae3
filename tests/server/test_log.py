"""The log of a real server whose reader is stuck: what waits is bounded, what is lost is counted."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

from support.serving import Running, peak_memory


def test_a_stuck_reader_of_the_log_costs_lines_that_are_counted_and_bounded_memory(folder: Path) -> None:
    asked, name = 60_000, b"x" * 60
    reading, writing = os.pipe()
    said: list[bytes] = []

    def read() -> None:
        while some := os.read(reading, 1 << 16):
            said.append(some)

    with Running(folder / "shop.bw", stderr=writing) as server:
        os.close(writing)
        server.json("GET", "/healthz")
        before = peak_memory(server)
        with socket.create_connection((server.host, server.port)) as client:
            request = b"GET /nope HTTP/1.1\r\nhost: localhost\r\nx-request-id: %s\r\n\r\n" % name
            last = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            sender = threading.Thread(target=client.sendall, args=(request * asked + last,))
            sender.start()
            while client.recv(1 << 20):
                pass
            sender.join()
        grown = peak_memory(server) - before
        reader = threading.Thread(target=read)
        reader.start()
        assert server.stop() == 0
        reader.join()
    os.close(reading)
    lines = [json.loads(line) for line in b"".join(said).splitlines()]
    lost = sum(line["count"] for line in lines if line["event"] == "log lines lost")
    kept = sum(line["event"] == "request" and line["route"] == "other" for line in lines)
    assert lost > 0
    assert kept + lost >= asked
    assert grown < 32 << 20  # 8 MB wait, 8 are on their way; line by line it was 190
