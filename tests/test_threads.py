"""Many threads, forks and Ctrl-C: a model is shared, a call neither hangs nor holds the interpreter."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import laws
import numpy as np
import pytest
from support.models import large_model, large_queries, small_model, small_queries
from support.processes import interrupted, without_coverage

import beamwood as bw

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def large() -> bw.Model:
    return large_model()


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `count` Python threads return that start together."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize("engine", [{}, {"matcher": "dense"}, {"matcher": "hash", "layout": "column"}])
def test_eight_threads_share_one_model_and_get_the_same_bits(engine: dict[str, str]) -> None:
    model = small_model().using(**engine)
    X = small_queries(120)
    expected = model.topk(X, 7, 4)

    def ask(number: int) -> None:
        for turn in range(30):
            laws.check_same(model.topk(X, 7, 4, 1 + (number + turn) % 3), expected, number, turn)
            row = (number * 31 + turn) % 120
            laws.check_same(
                model.topk(X[row : row + 1], 7, 4), (expected[0][row : row + 1], expected[1][row : row + 1])
            )

    in_threads(8, ask)


def worked_by_thread() -> dict[str, float]:
    """Seconds of processor time of every thread of this process so far."""
    spent = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "schedstat").read_text().split()
        spent[task.name] = int(fields[0]) / 1e9
    return spent


def test_threads_of_one_call_share_its_work(large: bw.Model) -> None:
    X = large_queries(4000)
    alone = large.topk(X, beam=40)
    shares: list[float] = []
    for _ in range(10):  # on a busy machine one of them may get no turn for a while
        before = worked_by_thread()
        laws.check_same(large.topk(X, beam=40, threads=2), alone)
        spent = sorted((now - before.get(name, 0.0) for name, now in worked_by_thread().items()), reverse=True)
        shares.append(spent[1] / (spent[0] + spent[1]))
        if shares[-1] > 0.25:
            return
    raise AssertionError(f"the second thread did at most {max(shares):.0%} of the work")


def test_short_calls_end_while_a_long_one_on_the_same_model_goes_on(large: bw.Model) -> None:
    X = large_queries(20_000)
    short = X[:1]
    large.topk(short)
    running = threading.Event()
    ended = threading.Event()

    def ask_long() -> None:
        running.set()
        large.topk(X, beam=40)
        ended.set()

    thread = threading.Thread(target=ask_long)
    thread.start()
    running.wait()
    during = 0
    while not ended.is_set():
        large.topk(short)
        during += not ended.is_set()
    thread.join()
    assert during > 20, f"{during} short calls ended meanwhile: they waited for the long one"


def test_a_program_ends_while_a_daemon_thread_is_in_a_call(tmp_path: Path) -> None:
    """Python before 3.14 unwinds such a thread, which C++ answers by ending the process."""
    program = """
import sys, threading, time
import beamwood as bw
model = bw.index_text(["red wool socks", "blue hat"] * 500)
def ask():
    while True:
        model.search_many(["red socks"] * 500)
for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_other_python_threads_run_during_a_long_call(large: bw.Model) -> None:
    X = large_queries(4000)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    clock = threading.Thread(target=tick)
    clock.start()
    begin = time.perf_counter()
    large.using(matcher="march").topk(X, beam=32)
    end = time.perf_counter()
    done.set()
    clock.join()
    during = [at for at in ticks if begin < at < end]
    assert end - begin > 0.05, "the call is too short to show anything"
    assert len(during) > (end - begin) / 0.02  # a held interpreter lock would let none through


def run_child(code: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Python code that may fork amid threads, in a process of its own, in reach of the test models."""
    path = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", path + code],
        env=without_coverage(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def test_a_forked_child_predicts_after_its_parent_did() -> None:
    run = run_child("""
import os, signal
from support.models import small_model, small_queries
model, X = small_model(), small_queries(500)
expected = [a.tobytes() for a in model.topk(X, threads=2)]
for _ in range(20):
    child = os.fork()
    if not child:
        signal.alarm(20)
        found = [a.tobytes() for a in model.topk(X, threads=2)]
        os._exit(found != expected)
    assert os.waitpid(child, 0)[1] == 0
    assert [a.tobytes() for a in model.topk(X, threads=2)] == expected
print("done")
""")
    assert run.stdout == "done\n", run.stderr


def test_a_fork_amid_calls_of_other_threads_leaves_a_child_that_predicts() -> None:
    run = run_child("""
import os, signal, threading, warnings
warnings.simplefilter("ignore")
from support.models import small_model, small_queries
model, X = small_model(), small_queries(300)
expected = [a.tobytes() for a in model.topk(X, threads=2)]
stop = threading.Event()
def busy():
    while not stop.is_set(): model.topk(X[:20], threads=2); model.topk(X[:1])
threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads: t.start()
bad = 0
for _ in range(60):
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit([a.tobytes() for a in model.topk(X, threads=2)] != expected)
    bad += os.waitpid(child, 0)[1] != 0
stop.set()
for t in threads: t.join()
print("bad", bad)
""")
    assert run.stdout == "bad 0\n", run.stderr


@pytest.mark.filterwarnings("ignore:.*fork")
def test_multiprocessing_by_fork_works_after_threads() -> None:
    run = run_child("""
import multiprocessing, warnings
warnings.simplefilter("ignore")
from support.models import small_model, small_queries
model, X = small_model(), small_queries(200)
expected = model.topk(X, threads=2)[0]
def ask(i): return bool((model.topk(X, threads=2)[0] == expected).all())
with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(ask, range(8)) == [True] * 8)
""")
    assert run.stdout == "True\n", run.stderr


@pytest.mark.parametrize("how", ["", ", threads=2", ", exact=True, k=100"])
@pytest.mark.parametrize("engine", ['matcher="binary"', 'matcher="march", layout="column"'])
def test_ctrl_c_stops_a_long_call(how: str, engine: str) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import scipy.sparse as sp, numpy as np, time
from support.models import large_model, large_queries
model, X = large_model().using({engine}), large_queries(2000)
X = X[np.arange(60_000) % 2000]
print("asking", flush=True)
try:
    model.topk(X, beam=64{how})
    print("finished")
except KeyboardInterrupt:
    print("stopped")
    small = X[:3]
    model.topk(small{how})
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asking\n"
    time.sleep(0.5)
    said, spent = interrupted(process)
    try:
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.stdout.close()
    assert said == "stopped\n"
    assert spent < 1.0 * (2 if "threads=2" in how else 1)


def test_a_model_may_be_dropped_while_a_thread_asks_it(tmp_path: Path) -> None:
    small_model().save(tmp_path / "model.bw")
    expected = small_model().topk(small_queries(200))[0]
    for _ in range(20):
        model: Any = bw.load(tmp_path / "model.bw")
        found: list[Any] = []
        thread = threading.Thread(target=lambda ask=model.topk, to=found: to.append(ask(small_queries(200), threads=2)))
        thread.start()
        del model
        thread.join()
        assert np.array_equal(found[0][0], expected)
