"""`beamwood predict` on a large file against `topk` on rows that are in memory already: rows per second and memory.

    python bench/life/predict_stream.py --data data/library-subjects --rows 2000000 [--preset balanced] [--output jsonl]

Trains a model (kept in --work, with the large file, for the next run), writes --rows rows by repeating the test rows,
and runs in turns: `topk` on the rows as a matrix, `transform` and `topk`, and the command. Memory beside the model is
the largest RssAnon of the command's process, looked at ten times a second; VmHWM is printed beside it.
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
from pathlib import Path

import beamwood as bw

FEW = 100_000  # rows that topk is timed on


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


def predicted(model: Path, large: Path, output: Path, threads: int) -> tuple[float, float, int, int]:
    """Seconds, processor seconds, private bytes and most resident bytes of the command."""
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
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, private, resident


def asked(model_file: Path, data: Path, threads: int, rounds: int) -> tuple[float, float]:
    """Microseconds per row of topk, and of transform and topk."""
    model = bw.load(model_file)
    assert model.text is not None
    texts = texts_of(data, "test.jsonl.gz")
    texts = (texts * (FEW // len(texts) + 1))[:FEW]
    X = model.text.transform(texts, threads=threads)
    model.topk(X, threads=threads)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        begun = time.perf_counter()
        model.topk(X, threads=threads)
        found[0].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        model.topk(model.text.transform(texts, threads=threads), threads=threads)
        found[1].append(time.perf_counter() - begun)
    return statistics.median(found[0]) / FEW * 1e6, statistics.median(found[1]) / FEW * 1e6


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
            topk, both = asked(model, given.data, given.threads, 3)
            bare.append(topk)
            with_text.append(both)
        runs.append(predicted(model, large, output, given.threads))
    per_row = statistics.median(run[0] for run in runs) / given.rows * 1e6
    cpu = statistics.median(run[1] for run in runs) / given.rows * 1e6
    private, resident = max(run[2] for run in runs), max(run[3] for run in runs)
    print(f"predict -o .{given.output}: {given.rows:,} rows, {per_row:.2f} µs per row ({cpu:.2f} µs of processor)")
    print(f"memory: {private / 1e6:.0f} MB beside the model, {resident / 1e6:.0f} MB with its mapped pages")
    if bare:
        topk, both = statistics.median(bare), statistics.median(with_text)
        print(f"topk {topk:.2f} µs per row: predict has {topk / per_row:.0%} of its speed")
        print(f"transform + topk {both:.2f} µs per row: predict has {both / per_row:.0%} of its speed")


if __name__ == "__main__":
    main()
