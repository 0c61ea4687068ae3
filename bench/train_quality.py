"""train_quality.py — real sets and every trainer in; one table of quality, training time, size, latency out.

    python bench/train_quality.py --data ../shared/data          # all that is not in the cache yet
    python bench/train_quality.py --data ../shared/data --table  # only the table, from the cache
    python bench/train_quality.py --sets mulan-bibtex --only libpecos --again

Each trainer runs in a process and (but for beamwood) in a virtual environment of its own, made under
build/rivals. Runs are taken in turns, one at a time, and kept in build/train_quality: a broken-off run goes on where
it stopped. All rank the best 10 labels of the test rows (libmultilabel and bm25s: of the first 5,000), with beam 10
where there is a beam; query time is that of one thread on a batch of 2,000 rows.

Times are CPU seconds of a process on one thread: on an idle machine those are the wall seconds too, and on a shared
one they are the steadier figure (the wall clock stands beside them). A trainer that has used 30 CPU minutes counts as
not finished.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from quality_sets import SETS, matrices, prepared
from rivals import pecos_python

from beamwood.metrics import evaluate

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
TRAINERS = {  # name: what pip installs for it; empty: this environment
    "beamwood-fast": [],
    "beamwood-balanced": [],
    "beamwood-best": [],
    "libpecos": ["libpecos"],
    "napkinxc": ["numpy", "scipy", "napkinxc"],
    "omikuji": ["numpy", "scipy", "omikuji"],
    "omikuji-bonsai": ["numpy", "scipy", "omikuji"],
    "libmultilabel": ["numpy", "scipy", "libmultilabel"],
    "bm25s": ["numpy", "scipy", "bm25s"],
}
COLUMNS = ("P@1", "P@3", "P@5", "recall@10", "train s", "cpu s", "model MB", "CPU µs a query", "peak MB", "rows")


def python_of(trainer: str) -> str:
    """Return the interpreter of a trainer's environment, made if it is missing."""
    if not TRAINERS[trainer]:
        return sys.executable
    if trainer == "libpecos":
        return str(pecos_python())
    home = BUILD / "rivals" / trainer.split("-", 1)[0]
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", *TRAINERS[trainer]], check=True)
        (home / "ready").touch()
    return str(python)


def run(trainer: str, name: str, folder: Path, threads: int, limit: float) -> dict[str, Any]:
    """Train and rank in a process of its own; return quality and cost, or why there is none."""
    if trainer == "bm25s" and not (folder / "raw.jsonl.gz").exists():
        return {"failed": "no text"}
    out = Path(tempfile.mkdtemp(prefix=f"{trainer}-{name}-", dir=BUILD))
    command = [
        python_of(trainer),
        str(HERE / "quality_rivals.py"),
        trainer,
        str(folder),
        str(out),
        str(threads),
        str(int(limit * threads)),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    with (out / "log").open("w") as log:
        process = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    if process.returncode == -signal.SIGXCPU:
        shutil.rmtree(out)
        return {"failed": f"not finished in {limit / 60:.0f} CPU minutes a thread"}
    if process.returncode:
        last = (out / "log").read_text().strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        shutil.rmtree(out)
        return {"failed": last[0][:80], "error": True}
    result = {**json.loads((out / "cost.json").read_text()), **quality(folder, out / "ranked.npz")}
    shutil.rmtree(out)
    return result


def quality(folder: Path, ranked: Path) -> dict[str, Any]:
    found = np.load(ranked)
    Y = matrices(folder, "tst")[1][: len(found["labels"])]
    metrics = evaluate((found["labels"], found["scores"]), Y, at=(1, 3, 5, 10), train_labels=matrices(folder, "trn")[1])
    return {"rows": metrics.rows, "measures": metrics.as_dict()}


def cache_file(name: str, trainer: str, threads: int) -> Path:
    return BUILD / "train_quality" / name / f"{trainer}-{threads}.json"


def run_in_turns(args: argparse.Namespace) -> None:
    """Round after round, each trainer once on each set; of several rounds the quickest training is kept."""
    for _ in range(args.rounds):
        for name in args.sets:
            folder = prepared(name, args.data, BUILD / "sets")
            for trainer in args.only:
                file = cache_file(name, trainer, args.threads)
                before = json.loads(file.read_text()) if file.exists() else None
                if before and not args.again and not before.get("error"):
                    continue
                result = run(trainer, name, folder, args.threads, args.limit * 60)
                result |= {
                    "machine": platform.processor() or platform.machine(),
                    "when": time.strftime("%F %R"),
                }
                if before and args.rounds > 1 and before.get("train_s", np.inf) < result.get("train_s", np.inf):
                    result = before
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(result, indent=1))
                print(f"{name}: {trainer}: {' '.join(cells(result))}", file=sys.stderr, flush=True)


def cells(result: dict[str, Any]) -> list[str]:
    if "failed" in result:
        return [result["failed"], *[""] * (len(COLUMNS) - 1)]
    measures = result["measures"]
    shown = [f"{100 * measures[m]:.1f}" for m in ("precision@1", "precision@3", "precision@5", "recall@10")]
    size, peak = result["model_bytes"] / 1e6, result["peak_bytes"] / 1e6
    cpu = f"{result['train_cpu_s']:.1f}" if "train_cpu_s" in result else ""
    costs = [f"{result['train_s']:.1f}", cpu, f"{size:.1f}", f"{result['query_us']:.0f}", f"{peak:.0f}"]
    return [*shown, *costs, f"{result['rows']:,}"]


def table(args: argparse.Namespace) -> str:
    lines = [
        f"Trained on {args.threads} thread(s) of {os.cpu_count()}, {platform.machine()},"
        f" Python {platform.python_version()}; limit {args.limit:g} CPU minutes a thread.",
        "",
        "| set | trainer | " + " | ".join(COLUMNS) + " |",
        "|---|---|" + "---:|" * len(COLUMNS),
    ]
    for name in args.sets:
        for trainer in args.only:
            file = cache_file(name, trainer, args.threads)
            result = json.loads(file.read_text()) if file.exists() else {"failed": "not run"}
            lines.append(f"| {name} | {trainer} | " + " | ".join(cells(result)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--only", nargs="+", default=list(TRAINERS), choices=list(TRAINERS), metavar="TRAINER")
    parser.add_argument("--threads", type=int, default=1, help="threads of training (ranking always uses one)")
    parser.add_argument("--limit", type=float, default=30, help="CPU minutes a thread that training may take")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run even what is in the cache")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    if not args.table:
        BUILD.mkdir(exist_ok=True)
        run_in_turns(args)
    print(table(args))


if __name__ == "__main__":
    main()
