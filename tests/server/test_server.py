"""Claims about a real server over real sockets: logs, swaps, load, stopping."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import beamwood as bw

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

from support.models import large_model  # noqa: E402
from support.serving import BEARER, Running, counted, same, shop, wait_for  # noqa: E402
from uvicorn.server import ServerState  # noqa: E402

from beamwood.server.app.dispatch import App  # noqa: E402
from beamwood.server.app.handlers import Handlers  # noqa: E402
from beamwood.server.app.metrics import ServerMetrics  # noqa: E402
from beamwood.server.options import ServeOptions  # noqa: E402
from beamwood.server.process.admission import AdmissionQueue  # noqa: E402
from beamwood.server.process.connection import Connection  # noqa: E402
from beamwood.server.process.log import Log  # noqa: E402
from beamwood.server.process.registry import Registry  # noqa: E402
from beamwood.server.process.supervisor import shut  # noqa: E402
from beamwood.server.process.worker import config_of  # noqa: E402

# --- logs ------------------------------------------------------------------------------------------------------------


def test_logs_are_json_and_keep_queries_to_themselves(folder: Path) -> None:
    for words, told in (((), False), (("--log-queries",), True)):
        with Running(folder / "shop.bw", *words) as server:
            server.ask("POST", "/v1/search", {"text": "secret wool"}, x_request_id="one")
            server.ask("GET", "/v1/search?q=secret+socks", x_request_id="two")
            assert server.stop() == 0
            lines = {line["id"]: line for line in server.lines() if line["event"] == "request"}
            assert set(lines) == {"one", "two"}
            assert lines["one"]["status"] == 200
            assert {"time", "method", "route", "ms", "queue_ms", "engine_ms", "model"} <= set(lines["one"])
            assert ("secret" in server.logged()) is told


# --- swaps -----------------------------------------------------------------------------------------------------------


def test_a_new_file_takes_over_in_every_worker_and_a_bad_one_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.bw"
    first, second = shop(), shop(preset="best")
    first.save(path)
    with Running(path, "--token-file", folder / "token", workers=2) as server:
        second.save(path)
        version = bw.load(path).version
        told = server.json("POST", "/v1/admin/reload", **BEARER)
        assert told == {"models": [{"name": "m", "version": version}]}
        for _ in range(20):
            found = server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)
            assert found["version"] == version
            assert same(found["hits"], second.search("wool"))
        damaged = bytearray(path.read_bytes())
        arrays = 8 + int.from_bytes(damaged[:8], "little")
        weights = json.loads(damaged[8:arrays])["tree0/layer0/threads"]
        damaged[arrays + weights["data_offsets"][0]] ^= 1
        (tmp_path / "draft").write_bytes(damaged)
        os.replace(tmp_path / "draft", path)
        error = server.json("POST", "/v1/admin/reload", status=409, **BEARER)["error"]
        assert str(tmp_path) not in error["message"]
        for _ in range(10):
            assert server.json("POST", "/v1/search", {"text": "wool"}, **BEARER)["version"] == version
        first.save(path)
        version = bw.load(path).version
        os.kill(server.process.pid, signal.SIGHUP)
        text = f'beamwood_workers{{model="m",version="{version}"}} 2'
        wait_for(lambda: text in server.ask("GET", "/metrics", **BEARER)[2].decode())


def test_a_new_list_of_a_filter_takes_over_in_every_worker_without_a_new_model(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "feet.txt"
    listed.write_text("socks\nboots\n")
    words = ("--filter", f"feet={listed}", "--token-file", folder / "token")
    with Running(folder / "shop.bw", *words, workers=2) as server:

        def found() -> set[str]:
            hits = server.json("POST", "/v1/search", {"text": "wool", "filter": "feet"}, **BEARER)["hits"]
            return {hit["key"] for hit in hits}

        assert found() == {"socks", "boots"}
        listed.write_text("boots\n")
        server.json("POST", "/v1/admin/reload", **BEARER)
        assert all(found() == {"boots"} for _ in range(20))


# --- load ------------------------------------------------------------------------------------------------------------


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


# --- stopping --------------------------------------------------------------------------------------------------------


def test_sigterm_answers_what_came_and_exits_with_0(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        lost: list[str] = []
        answered = [0]
        stop = threading.Event()

        def client() -> None:
            """Asks on and on; whatever is sent on an open connection must be answered, until the server closes it."""
            while not stop.is_set():
                connection = server.connect()
                try:
                    connection.connect()
                except OSError:
                    return
                try:
                    while True:
                        connection.request("POST", "/v1/search", b'{"text": "wool socks"}')
                        answer = connection.getresponse()
                        answer.read()
                        answered[0] += 1
                        if answer.status != 200:
                            lost.append(str(answer.status))
                        if answer.will_close:
                            break
                except OSError as error:
                    lost.append(repr(error))
                finally:
                    connection.close()

        clients = [threading.Thread(target=client) for _ in range(8)]
        for one in clients:
            one.start()
        time.sleep(0.5)
        assert server.stop() == 0
        stop.set()
        for one in clients:
            one.join()
        assert answered[0] > 50
        assert lost == []


@pytest.mark.parametrize("half_done", [False, True])
def test_who_is_connected_when_the_door_is_shut_is_let_in_and_no_one_else(half_done: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if half_done:  # the last packet of the handshake counts when data follow: the client alone is connected
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 10)
        listener.settimeout(10)
        with socket.create_connection(listener.getsockname()) as client:
            shut(listener)
            client.sendall(b"question")
            taken, _ = listener.accept()
            with taken:
                assert taken.recv(100) == b"question"
        with socket.socket() as late:
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.connect(listener.getsockname())


def test_a_request_that_came_and_was_not_read_yet_is_answered_before_its_connection_is_closed(folder: Path) -> None:
    options = ServeOptions(models={"shop": folder / "shop.bw"}, log="off")

    async def run() -> bytes:
        loop, row = asyncio.get_running_loop(), ServerMetrics(["shop"], 1).row(0)
        handlers = Handlers(options, Registry(options), AdmissionQueue(options, row, loop), row, None)
        app = App(options, handlers, row, Log("off"))
        config = config_of(app, options)
        config.load()
        connection = Connection(config, ServerState(), {}, loop)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            await loop.connect_accepted_socket(lambda: connection, listener.accept()[0])
        with client:
            client.setblocking(False)
            app.drain()
            client.send(
                b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n\r\n" + b'{"text": "wool"}'
            )
            connection.shutdown()  # before the event loop has looked at the socket
            answer = b""
            while part := await asyncio.wait_for(loop.sock_recv(client, 65536), 20):
                answer += part
        handlers.admission.close()
        return answer

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"hits":[{' in answer


def test_a_killed_worker_comes_back_while_others_go_on(folder: Path) -> None:
    with Running(folder / "shop.bw", workers=2) as server:
        time.sleep(1.0)  # a worker that dies young waits a moment before it is started again
        before = server.worker_pids()
        os.kill(before[0], signal.SIGKILL)
        for _ in range(20):
            assert server.json("POST", "/v1/search", {"text": "wool"})["hits"]
        wait_for(lambda: len(server.worker_pids()) == 2 and before[0] not in server.worker_pids())
        wait_for(lambda: counted(server, "beamwood_workers{") == 2)
        assert server.stop() == 0
