"""A size in; how soon a model file of that size answers, and what memory that takes, out.

A file of at least 1 GB is made from generated layers once. Then, in fresh processes: load and first answer
in milliseconds, with the file in the page cache and without; memory after 1, 100 and 10,000 queries; the
share of the pages that two processes have in common. Memory is private (nobody else can use it) or pages of
the file. Linux maps what lies around a touched page as well, up to 2 MB when the page cache holds the file
in large pieces: with a cold cache the pages of the file are nearer to what was touched.

    python bench/ready.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from rivals.install import BUILD

import beamwood as bw
from beamwood.bench import generate
from beamwood.bench.timing import print_header, print_table, save_json

FEATURES, BRANCHING, NNZ_PER_LABEL = 300_000, 32, 190.0
ASKED_MS = 20.0
STEPS = (1, 100, 10_000)


def model_file(labels: int) -> Path:
    """The model file, made when it is not there yet."""
    path = BUILD / "bench-models" / f"ready-{labels}.bw"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        layers = generate.model_layers(labels, FEATURES, BRANCHING, nnz_per_label=NNZ_PER_LABEL)
        bw.Model.from_layers(layers, activation="hinge-3").save(path)
    return path


def query_file(labels: int) -> Path:
    """As many queries as the longest step needs, about the labels of the model."""
    path = BUILD / "bench-models" / f"ready-{labels}.npz"
    if not path.exists():
        made = generate.dataset(labels, FEATURES, STEPS[-1], nnz_per_row=20)
        sp.save_npz(path, made.X, compressed=False)
    return path


def answer_alone(model_path: Path, queries: Path) -> None:
    """The child process: prints what it measured; after a line of input, its share of the file's pages."""
    X = sp.csr_matrix(sp.load_npz(queries))
    rows = [X[i] for i in range(STEPS[-1])]
    before = memory_of_process()
    started = time.perf_counter()
    model = bw.load(model_path)
    loaded = time.perf_counter()
    model.topk(rows[0], k=10, beam=10)
    answered = time.perf_counter()
    found: dict[str, Any] = {"load": (loaded - started) * 1e3, "first": (answered - loaded) * 1e3}
    done = 1
    for step in STEPS:
        for row in rows[done:step]:
            model.topk(row, k=10, beam=10)
        done, now = step, memory_of_process()
        found |= {f"{kind} after {step}": now[kind] - before[kind] for kind in now}
    print(json.dumps(found), flush=True)
    sys.stdin.readline()
    print(json.dumps(mapping_of(model_path)), flush=True)
    sys.stdin.read()  # keeps the pages until the other process has counted its share


def memory_of_process() -> dict[str, int]:
    """Bytes of this process that are private, and that are pages of files."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    kinds = {"private": "RssAnon", "file": "RssFile"}
    return {kind: int(lines[name].split()[0]) * 1024 for kind, name in kinds.items()}


def mapping_of(path: Path) -> dict[str, int]:
    """Resident and proportional bytes of the pages of one mapped file in this process."""
    found, inside = {"Rss": 0, "Pss": 0}, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            inside = line.endswith(str(path.resolve()))
        elif inside and first[:-1] in found:
            found[first[:-1]] += int(line.split()[1]) * 1024
    return found


def start(model_path: Path, queries: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(model_path), str(queries)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def next_line(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    answer: dict[str, Any] = json.loads(child.stdout.readline())
    return answer


def alone(model_path: Path, queries: Path) -> dict[str, Any]:
    """What one process measured."""
    child = start(model_path, queries)
    measured = next_line(child)
    child.communicate()
    return measured


def pair(model_path: Path, queries: Path) -> list[dict[str, int]]:
    """The shares of the file's pages of two processes that have it open at the same time."""
    children = [start(model_path, queries) for _ in range(2)]
    for child in children:
        next_line(child)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    shares = [next_line(child) for child in children]
    for child in children:
        child.communicate()
    return shares


def warm(path: Path) -> None:
    """Brings the file into the page cache."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def cool(path: Path) -> None:
    """Asks the system to drop the file from the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return answer_alone(*given.child)
    path, queries = model_file(given.labels), query_file(given.labels)
    size = path.stat().st_size
    settings = {
        "labels": given.labels,
        "features": FEATURES,
        "branching": BRANCHING,
        "file bytes": f"{size:,}",
    }
    print_header("Ready at once", {**settings, "rounds": given.rounds, "beam": 10, "k": 10})
    found: dict[str, list[dict[str, Any]]] = {}
    for state, prepare in (("cold", cool), ("warm", warm)):
        found[state] = []
        for _ in range(given.rounds):
            prepare(path)
            found[state].append(alone(path, queries))
    shares = pair(path, queries)
    report(size, found, shares)
    save_json(given.json, {"settings": settings, **found, "pair": shares})


def report(size: int, found: dict[str, list[dict[str, Any]]], shares: list[dict[str, int]]) -> None:
    """One table: warm and cold beside each other, then the two processes."""
    middle = {s: {key: statistics.median(f[key] for f in runs) for key in runs[0]} for s, runs in found.items()}
    rows: list[list[Any]] = []
    for what, keys in (("load + first answer, ms", ("load", "first")), ("of it load, ms", ("load",))):
        asked = f"at most {ASKED_MS:g} warm" if len(keys) == 2 else ""
        rows.append([what, *(float(sum(middle[s][key] for key in keys)) for s in ("warm", "cold")), asked])
    for step in STEPS:
        for kind in ("private", "file"):
            parts = [middle[s][f"{kind} after {step}"] for s in ("warm", "cold")]
            cells = [f"{part / 2**20:.1f} MiB, {part / size:.1%}" for part in parts]
            rows.append([f"{kind} memory after {step:,} queries, share of the file's size", *cells, ""])
    for i, share in enumerate(shares):
        cells = [f"{share['Rss'] / 2**20:.1f} MiB, its share {share['Pss'] / 2**20:.1f}", ""]
        rows.append([f"process {i + 1} of 2, pages of the file", *cells, "half each"])
    print_table(["", "warm", "cold", "asked"], rows)


if __name__ == "__main__":
    main()
