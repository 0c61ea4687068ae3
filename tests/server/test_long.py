"""Long questions and long answers: read without Python's lock, sent piece by piece, bounded."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
    pytest.importorskip(needed)

import orjson  # noqa: E402
from support.serving import LABELS, TEXTS, Running, counted, wait_for  # noqa: E402

import beamwood as bw  # noqa: E402
from beamwood import _core  # noqa: E402
from beamwood.server.app.replies import Refusal  # noqa: E402
from beamwood.server.app.schema import RequestReader  # noqa: E402
from beamwood.server.options import ServeOptions  # noqa: E402

READER = RequestReader(ServeOptions(models={"m": Path("m.bw")}))
ODD = ["1", "-1", "01", "1.0", "1e2", "1e39", "-0", "0.1", "2147483648", "null", '"1"', "[]", "[1]", "1,2", "", " 7 "]


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose keys are so long that an answer can be of any length."""
    path = tmp_path_factory.mktemp("wordy") / "wordy.bw"
    labels = [[key + "-" * 2000 for key in keys] for keys in LABELS]
    bw.train_text(TEXTS, labels, progress=False, preset="fast", max_leaf=3, branching=2).save(path)
    return path


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ODD), st.sampled_from(ODD)), max_size=5), st.sampled_from(["", " ", "\n"]))
def test_pairs_that_native_code_reads_are_those_that_json_has(pairs: list[tuple[str, str]], space: str) -> None:
    array = "[" + f",{space}".join(f"[{index},{space}{value}]" for index, value in pairs) + "]"
    body = f'{{"k":{space}3,{space}"features"{space}:{array}}}'.encode()
    ids, values, start, end, *_ = _core.read_pairs(body)
    if end:
        assert body[start:end] == array.encode()
        expected = orjson.loads(array)
        assert ids.tolist() == [index for index, _ in expected]
        assert all(type(index) is int for index, _ in expected)
        assert values.tolist() == [np.float32(value) for _, value in expected]
        return
    with contextlib.suppress(Refusal):  # what it does not read, the full reader decides about
        row = READER.search(body).features
        assert row is not None
        assert row.ids.tolist() == [index for index, _ in orjson.loads(array)]


def test_a_field_that_stands_twice_is_refused() -> None:
    with pytest.raises(Refusal, match="features: expected once, found twice"):
        READER.search(b'{"features": [[1, 1]], "features": [[2, 1]]}')


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"texts": [' + b'"",' * 30_000 + b'""]}', "more than 21,100 values"),
        (b'{"text": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "more than 21,100 values"),
        (b'{"features": [' + b"[1,1]," * 20_000 + b'["x",1]]}', r"features\[20000\]: expected a pair"),
        (b'{"features": [' + b"[1,1]," * 20_000, r"features\[20000\]: expected a pair"),
        (b'{"features": [[1,1],[2]]}', r"features\[1\]: expected a pair"),
        (b'{"features": "x"}', "features: expected a list"),
    ],
)
def test_what_would_take_python_long_is_refused_before_it_does(body: bytes, message: str) -> None:
    with pytest.raises(Refusal, match=message) as caught:
        READER.search(body)
    assert caught.value.status == 422


def test_many_features_are_read_and_added_up(folder: Path) -> None:
    model = bw.load(folder / "numbers.bw")
    pairs = [[index, 0.25] for index in range(model.n_features)] * 1000
    row = np.full((1, model.n_features), 250.0, np.float32)
    expected = model.topk(row, 5)[0][0].tolist()
    with Running(folder / "numbers.bw", "--log", "off") as server:
        found = server.json("POST", "/v1/search", {"features": pairs, "k": 5})
    assert [hit["label"] for hit in found["hits"]] == [label for label in expected if label >= 0]


def test_a_long_answer_comes_whole_in_pieces(wordy: Path) -> None:
    model = bw.load(wordy)
    texts = TEXTS * 60
    with Running(wordy, "--log", "off", "--timeout-ms", "60000") as server:
        status, headers, data = server.ask("POST", "/v1/search", {"texts": texts, "k": 10})
    assert status == 200
    assert len(data) == int(headers["content-length"]) > 4 << 20
    results: list[Any] = json.loads(data)["results"]
    expected = [[hit.key for hit in hits] for hits in model.search_many(texts, 10)]
    assert [[hit["key"] for hit in result["hits"]] for result in results] == expected


def test_an_answer_beyond_64_mb_is_refused(wordy: Path) -> None:
    with Running(wordy, "--log", "off", "--timeout-ms", "60000", "--max-texts", "5000") as server:
        error = server.json("POST", "/v1/search", {"texts": TEXTS * 500, "k": 10}, status=422)["error"]
        assert "longer than 67,108,864 bytes; ask in parts" in error["message"]
        assert server.json("POST", "/v1/search", {"text": "wool"})["hits"]


def test_a_client_that_reads_too_slowly_loses_its_long_answer(wordy: Path) -> None:
    body = json.dumps({"texts": TEXTS * 90, "k": 10}).encode()
    words = ("--log", "off", "--timeout-ms", "60000", "--read-timeout-ms", "400")
    with Running(wordy, *words) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((server.host, server.port))
        client.sendall(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        assert client.recv(64)  # the first bytes, and no more
        wait_for(lambda: counted(server, "beamwood_connections ") == 1)  # only the one that asks for the counts
        assert server.json("POST", "/v1/search", {"text": "wool"})["hits"]


def test_a_thread_that_gives_way_is_nicer_than_its_process_and_no_more_so_each_time() -> None:
    found: list[tuple[int, int]] = []

    def look() -> None:
        for changes in (0, 1, 2):
            for _ in range(changes):
                _core.give_way()
            found.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))

    usual = os.getpriority(os.PRIO_PROCESS, os.getpid())
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    nicer = min(19, usual + 10)
    assert found == [(os.SCHED_OTHER, usual), (os.SCHED_OTHER, nicer), (os.SCHED_OTHER, nicer)]


def test_engine_threads_make_way_for_the_event_loop(wordy: Path) -> None:
    with Running(wordy, "--log", "off") as server:
        [worker] = server.worker_pids()
        nice = {int(task): os.getpriority(os.PRIO_PROCESS, int(task)) for task in os.listdir(f"/proc/{worker}/task")}
        loop = nice.pop(worker)
        assert loop == os.getpriority(os.PRIO_PROCESS, os.getpid())
        assert min(19, loop + 10) in nice.values()
