"""A model file is cut, emptied or overwritten while the model is in use: an error comes out, the process lives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.models import large_model, large_queries, small_model, small_queries
from support.serving import Running, shop, wait_for

import beamwood as bw

CUT = "was cut, overwritten or could not be read"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.bw"
    large_model().save(path)
    return path


USES: dict[str, Callable[[bw.Model, Path], Any]] = {
    "topk": lambda model, _: model.topk(large_queries(20), 5),
    "one row": lambda model, _: model.topk(large_queries(1), 5),
    "two threads": lambda model, _: model.topk(large_queries(200), 5, threads=2),
    "score": lambda model, _: model.score(large_queries(2), [3, 4]),
    "exact": lambda model, _: model.topk(large_queries(1), 3, exact=True),
    "another layout": lambda model, _: model.using(layout="chunk").topk(large_queries(1), 5),
    "layers": lambda model, _: model.layers(),
    "explain": lambda model, _: model.explain(large_queries(1), 7),
    "compress": lambda model, _: model.compress("u8"),
    "save": lambda model, folder: model.save(folder / "copy.bw"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("left", [0, 100_000])
def test_a_file_that_is_cut_under_a_model_is_an_error(large: Path, use: str, left: int) -> None:
    model = bw.load(large)
    os.truncate(large, left)
    for _ in range(2):
        with pytest.raises(bw.FormatError, match=CUT):
            USES[use](model, large.parent)
    assert sorted(p.name for p in large.parent.iterdir()) == ["large.bw"], "no half copy"


def test_another_model_goes_on(large: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bw"
    small_model().save(other)
    model, neighbour = bw.load(large), bw.load(other)
    expected = neighbour.topk(small_queries())
    os.truncate(large, 0)
    with pytest.raises(bw.FormatError, match=CUT):
        model.topk(large_queries(3))
    assert (neighbour.topk(small_queries())[0] == expected[0]).all()
    del model
    assert (neighbour.topk(small_queries())[1] == expected[1]).all()


def test_a_file_that_is_cut_inside_its_last_page_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "small.bw"
    shop().save(path)
    model = bw.load(path)
    os.truncate(path, path.stat().st_size - 1)

    def noticed() -> bool:
        try:
            model.search("red wool")
        except bw.FormatError as error:
            return CUT in str(error)
        return False

    wait_for(noticed)  # within a tenth of a second, at the next look


def test_words_and_names_of_a_vanished_file_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "small.bw"
    shop().save(path)
    uses: list[Callable[[bw.Model], Any]] = [
        lambda model: model.search("red wool"),
        lambda model: model.search_many(["red wool"]),
        lambda model: model.key(0),
        lambda model: model.label_of("socks"),
        lambda model: model.filter(allow=["socks"]),
        lambda model: model.search("unknown"),
    ]
    content = path.read_bytes()
    for use in uses:
        model = bw.load(path)
        os.truncate(path, 0)
        with pytest.raises(bw.FormatError):
            use(model)
        path.write_bytes(content)


def test_threads_that_search_while_the_file_is_cut_get_answers_or_the_error(large: Path) -> None:
    model = bw.load(large)
    queries = large_queries(5)
    expected = model.topk(queries, 5)
    outcomes: list[str] = []
    started = threading.Barrier(5)

    def search() -> None:
        started.wait()
        while True:
            try:
                labels, scores = model.topk(queries, 5)
            except bw.FormatError as error:
                outcomes.append("cut" if CUT in str(error) else str(error))
                return
            same = (labels == expected[0]).all() and (scores == expected[1]).all()
            if not same:
                outcomes.append("a wrong answer")

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    os.truncate(large, 0)
    for thread in threads:
        thread.join()
    assert outcomes == ["cut"] * 4


def test_a_bus_error_that_is_not_ours_ends_the_process_as_ever(large: Path) -> None:
    script = f"""
import ctypes, mmap, os, beamwood as bw
model = bw.load({str(large)!r})
with open({str(large.parent / "foreign")!r}, "w+b") as file:
    file.truncate(8192)
    page = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    print(page[0])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert found.returncode == -signal.SIGBUS


def test_a_server_whose_file_is_cut_says_so_and_goes_on(tmp_path: Path) -> None:
    path, other = tmp_path / "shop.bw", tmp_path / "other.bw"
    model = shop()
    model.save(path)
    model.save(other)
    content = path.read_bytes()
    with Running("--name", f"shop={path}", "--name", f"other={other}") as server:
        asked = "/v1/search?q=red+wool&model=shop"
        before = server.json("GET", asked)["hits"]
        workers = server.worker_pids()
        os.truncate(path, 0)
        wait_for(lambda: server.ask("GET", asked)[0] == 500)
        for _ in range(20):
            status, _, body = server.ask("GET", asked)
            assert status == 500
            assert json.loads(body)["error"]["code"] == "model-damaged"
            assert server.json("GET", "/v1/search?q=red+wool&model=other")["hits"] == before
        assert server.worker_pids() == workers, "nobody died"
        fresh = tmp_path / "fresh"
        fresh.write_bytes(content)
        os.replace(fresh, path)
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.ask("GET", asked)[0] == 200)
        assert server.json("GET", asked)["hits"] == before
        assert server.worker_pids() == workers
