"""A size in; how soon a model file of that size answers, and what memory that takes, out.

A file of at least 1 GB is made from generated layers once. Then, in fresh processes with the file in the
page cache: load and first answer in milliseconds; resident memory after 1, 100 and 10,000 queries; the
share of the pages that two processes have in common.

    python bench/ready.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import generate
import scipy.sparse as sp
from resident import resident
from rivals import BUILD
from timing import print_header, print_table, save_json

import beamwood as bw

FEATURES, BRANCHING, NNZ_PER_LABEL = 300_000, 32, 160.0
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
    """The child process: prints what it measured, waits for a line, prints its share of the pages."""
    X = sp.csr_matrix(sp.load_npz(queries))
    rows = [X[i] for i in range(STEPS[-1])]
    before = resident()
    started = time.perf_counter()
    model = bw.load(model_path)
    loaded = time.perf_counter()
    model.topk(rows[0], k=10, beam=10)
    answered = time.perf_counter()
    found: dict[str, Any] = {"load_ms": (loaded - started) * 1e3, "first_ms": (answered - loaded) * 1e3}
    found["ready_ms"], done = (answered - started) * 1e3, 1
    for step in STEPS:
        for row in rows[done:step]:
            model.topk(row, k=10, beam=10)
        done, found[f"resident after {step}"] = step, resident() - before
    print(json.dumps(found), flush=True)
    sys.stdin.readline()
    print(json.dumps(mapping_of(model_path)), flush=True)


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


def first_line(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    answer: dict[str, Any] = json.loads(child.stdout.readline())
    return answer


def pair(model_path: Path, queries: Path) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
    """Two processes at the same time: what each measured, and their shares of the file's pages."""
    children = [start(model_path, queries) for _ in range(2)]
    measured = [first_line(child) for child in children]
    shares = [json.loads(child.communicate("\n")[0]) for child in children if child.stdin]
    return measured, shares


def warm(path: Path) -> None:
    """Brings the file into the page cache."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


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
    warm(path)
    alone = []
    for _ in range(given.rounds):
        child = start(path, queries)
        alone.append(first_line(child))
        child.communicate("\n")
    _, shares = pair(path, queries)
    report(size, alone, shares)
    save_json(given.json, {"settings": settings, "alone": alone, "pair": shares})


def report(size: int, alone: list[dict[str, Any]], shares: list[dict[str, int]]) -> None:
    middle = {key: statistics.median(found[key] for found in alone) for key in alone[0]}
    rows: list[list[Any]] = [
        ["load + first answer, ms", middle["ready_ms"], f"at most {ASKED_MS:g}"],
        ["of it load, ms", middle["load_ms"], ""],
        ["of it first answer, ms", middle["first_ms"], ""],
    ]
    for step in STEPS:
        part = middle[f"resident after {step}"]
        rows.append(
            [f"resident after {step:,} queries", f"{part / 2**20:.1f} MiB, {part / size:.1%} of the file", ""]
        )
    for i, share in enumerate(shares):
        both = f"{share['Rss'] / 2**20:.1f} MiB resident, {share['Pss'] / 2**20:.1f} MiB its share"
        rows.append([f"process {i + 1} of 2, the file's pages", both, "half each"])
    print_table(["", "measured", "asked"], rows)


if __name__ == "__main__":
    main()
