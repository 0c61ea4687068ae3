"""`beamwood predict` on a large file against `topk` on rows that are in memory already: rows per second and memory.

    python bench/life/predict_stream.py --data data/library-subjects --rows 2000000 [--preset balanced] [--output jsonl]

Trains a model (kept in --work, with the large file, for the next run), writes --rows rows by repeating the test rows,
and runs in turns: `topk` on the rows as a matrix, `transform` and `topk`, and the command. No call is given a row
twice: copies of a row in one call find the weights in the cache, which rows of a real file do not (library-subjects,
balanced: 21 µs per row in place of 26). Speeds are compared by processor time, which a shared machine leaves as it is,
and by the clock. Memory beside the model is the largest RssAnon of the command's process, looked at ten times a second;
VmHWM is printed beside it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import beamwood as bw

FEW = 100_000  # rows that topk is timed on


class Spent(NamedTuple):
    """Seconds by the clock and of the processor."""

    clock: float
    processor: float

    def over(self, rows: int) -> Spent:
        """The same in microseconds per row."""
        return Spent(self.clock / rows * 1e6, self.processor / rows * 1e6)


def texts_of(data: Path, name: str) -> list[str]:
    with gzip.open(data / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def prepare(data: Path, work: Path, preset: str, rows: int) -> tuple[Path, Path]:
    """The model and the large file, made once."""
    work.mkdir(parents=True, exist_ok=True)
    model, large = work / f"{preset}.bw", work / f"rows-{rows}.jsonl"
    if not model.exists():
        records = bw.read_records(data / "train.jsonl.gz")
        bw.train_text(records.texts, records.labels, preset=preset, progress=False).save(model)
    if not large.exists():
        lines = [json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts_of(data, "test.jsonl.gz"))]
        block = "".join(lines)
        with open(large, "w", encoding="utf-8") as out:
            whole, rest = divmod(rows, len(lines))
            for _ in range(whole):
                out.write(block)
            out.write("".join(lines[:rest]))
    return model, large


def memory_of(pid: int) -> tuple[int, int]:
    """Private bytes now and the most that was resident so far."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "VmHWM"):
            found[name] = int(value.split()[0]) * 1024
    return found.get("RssAnon", 0), found.get("VmHWM", 0)


def predicted(model: Path, large: Path, output: Path, threads: int) -> tuple[Spent, int, int]:
    """What the command takes, its private bytes and its most resident bytes."""
    words = [sys.executable, "-m", "beamwood", "predict", model, large, "-o", output, "--force", "-q", "-t", threads]
    begun = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)))
    private = resident = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = status
            break
        now, most = memory_of(process.pid)
        private, resident = max(private, now), max(resident, most)
        time.sleep(0.1)
    if status:
        raise SystemExit("beamwood predict failed")
    return Spent(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime), private, resident


def median(of: list[Spent]) -> Spent:
    """The middle of each."""
    return Spent(*(statistics.median(each) for each in zip(*of, strict=True)))


def asked(model_file: Path, data: Path, threads: int) -> tuple[Spent, Spent]:
    """What topk takes per row, and what transform and topk take."""
    model = bw.load(model_file)
    text = model.text
    assert text is not None
    texts = texts_of(data, "test.jsonl.gz")
    X = text.transform(texts, threads=threads)
    model.topk(X, threads=threads)
    calls = max(1, FEW // len(texts))
    bare = spent(lambda: model.topk(X, threads=threads), calls)
    both = spent(lambda: model.topk(text.transform(texts, threads=threads), threads=threads), calls)
    return bare.over(calls * len(texts)), both.over(calls * len(texts))


def spent(call: Callable[[], object], calls: int) -> Spent:
    """What so many calls take."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return Spent(time.perf_counter() - clock, time.process_time() - processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/library-subjects"))
    parser.add_argument("--work", type=Path, default=Path("build/predict-stream"))
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--output", default="jsonl", help="jsonl, csv, parquet or npz")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prepare", action="store_true", help="only train and write the large file")
    parser.add_argument("--only-run", action="store_true", help="only the command: memory of a long run")
    given = parser.parse_args()
    model, large = prepare(given.data, given.work, given.preset, given.rows)
    if given.prepare:
        return
    print(f"{platform.machine()}, {given.threads} threads, beamwood {bw.__version__}, {given.preset}, k 10, beam 10")
    output = given.work / f"answers.{given.output}"
    runs, bare, with_text = [], [], []
    for _ in range(1 if given.only_run else given.rounds):
        if not given.only_run:
            topk, both = asked(model, given.data, given.threads)
            bare.append(topk)
            with_text.append(both)
        runs.append(predicted(model, large, output, given.threads))
    whole = median([run[0] for run in runs]).over(given.rows)
    private, resident = max(run[1] for run in runs), max(run[2] for run in runs)
    print("µs per row by the clock and of the processor; the speed of predict beside each, by either")
    print(f"predict -o .{given.output}, {given.rows:,} rows: {whole.clock:.2f} and {whole.processor:.2f}")
    for name, found in (("topk", bare), ("transform + topk", with_text)):
        if found:
            one = median(found)
            share = f"{one.clock / whole.clock:.0%} and {one.processor / whole.processor:.0%}"
            print(f"{name}: {one.clock:.2f} and {one.processor:.2f}; predict has {share} of its speed")
    print(f"memory: {private / 1e6:.0f} MB beside the model, {resident / 1e6:.0f} MB with its mapped pages")


if __name__ == "__main__":
    main()
