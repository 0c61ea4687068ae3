"""train_quality.py — real sets and every trainer in; one table of quality, training time, size, latency out.

    python bench/train_quality.py --data ../shared/data          # all that is not in the cache yet
    python bench/train_quality.py --data ../shared/data --table  # only the table, from the cache
    python bench/train_quality.py --sets debian-search --only libpecos beamwood-fast --seeds 0 1 2 3 4
    python bench/train_quality.py --table --results bench/results/train_quality.json   # the run that is checked in

Each trainer runs in a process and (but for beamwood) in a virtual environment of its own, made under
build/rivals. Runs are taken in turns, one at a time, and kept in build/train_quality: a broken-off run goes on where
it stopped. All rank the best 10 labels of the test rows (libmultilabel and bm25s: of the first 5,000), with beam 10
where there is a beam; query time is that of one thread on a batch of 2,000 rows.

Times are CPU seconds of a process on one thread: on an idle machine those are the wall seconds too, and on a shared
one they are the steadier figure (the results keep the wall clock too). A trainer that has used 30 CPU minutes counts as
not finished.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rivals.install import python_of
from support.quality_sets import SETS, matrices, prepared
from support.results import Results

from beamwood.metrics import evaluate

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
TRAINERS = {  # name: the rival whose environment it runs in; none: this one
    "beamwood-fast": None,
    "beamwood-balanced": None,
    "beamwood-best": None,
    "beamwood-balanced-trees": None,  # without the words of labels
    "beamwood-fast-trees": None,
    "libpecos": "libpecos",
    "napkinxc": "napkinxc",
    "omikuji": "omikuji",
    "omikuji-bonsai": "omikuji",
    "libmultilabel": "libmultilabel",
    "bm25s": "bm25s",
}
SEEDED = (  # those that take a seed
    "beamwood-fast",
    "beamwood-balanced",
    "beamwood-best",
    "beamwood-balanced-trees",
    "beamwood-fast-trees",
    "libpecos",
)
MEASURES = ("precision@1", "precision@3", "precision@5", "recall@10")
COLUMNS = ("P@1", "P@3", "P@5", "recall@10", "CPU s", "model MB", "CPU µs per query", "peak MB", "test rows")


def run(trainer: str, name: str, folder: Path, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Train and rank in a process of its own; return quality and cost, or why there is none."""
    threads, limit = args.threads, args.limit * 60
    if trainer == "bm25s" and not (folder / "raw.jsonl.gz").exists():
        return {"failed": "no text"}
    home = TRAINERS[trainer]
    out = Path(tempfile.mkdtemp(prefix=f"{trainer}-{name}-", dir=BUILD))
    command = [
        sys.executable if home is None else str(python_of(home)),
        str(HERE / "rivals" / "quality_rivals.py"),
        trainer,
        str(folder),
        str(out),
        str(threads),
        str(int(limit * threads)),
        str(seed),
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
        why = last[0][:80] if process.returncode > 0 else f"ended from outside by signal {-process.returncode}"
        return {"failed": why, "error": True}
    result = {**json.loads((out / "cost.json").read_text()), **quality(folder, out / "ranked.npz")}
    for made in ("model", "model.bw"):
        if args.models and (out / made).exists():
            kept = args.models / trainer / name / made
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(out / made, kept)
    shutil.rmtree(out)
    return result


def quality(folder: Path, ranked: Path) -> dict[str, Any]:
    found = np.load(ranked)
    Y = matrices(folder, "tst")[1][: len(found["labels"])]
    metrics = evaluate((found["labels"], found["scores"]), Y, at=(1, 3, 5, 10), train_labels=matrices(folder, "trn")[1])
    return {"rows": metrics.rows, "measures": metrics.as_dict()}


def key_of(name: str, trainer: str, threads: int, seed: int) -> str:
    return f"{name}/{trainer}-{threads}" + (f"-seed{seed}" if seed else "")


def seeds_of(trainer: str, seeds: list[int]) -> list[int]:
    return seeds if trainer in SEEDED else [0]


def run_in_turns(args: argparse.Namespace, results: Results) -> None:
    """Seed after seed, each trainer once on each set."""
    for seed in args.seeds:
        for name in args.sets:
            folder = prepared(name, args.data, BUILD / "sets")
            for trainer in args.only:
                key = key_of(name, trainer, args.threads, seed)
                before = results.get(key)
                if seed not in seeds_of(trainer, args.seeds) or (before and not args.again and not before.get("error")):
                    continue
                result = run(trainer, name, folder, args, seed)
                result |= {"load": os.getloadavg()[0], "when": time.strftime("%F %R")}
                results.put(key, result)
                print(f"{name}: {trainer}: {' '.join(cells(result))}", file=sys.stderr, flush=True)


def cells(result: dict[str, Any]) -> list[str]:
    if "failed" in result:
        return [result["failed"], *[""] * (len(COLUMNS) - 1)]
    shown = [f"{100 * result['measures'][m]:.1f}" for m in MEASURES]
    size, peak = result["model_bytes"] / 1e6, result["peak_bytes"] / 1e6
    costs = [f"{result['train_cpu_s']:.0f}", f"{size:.0f}", f"{result['query_us']:.0f}", f"{peak:.0f}"]
    return [*shown, *costs, f"{result['rows']:,}"]


def table(args: argparse.Namespace, results: Results) -> str:
    lines = ["| set | trainer | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    missing = []
    for name in args.sets:
        for trainer in args.only:
            shown, result = trainer, results.get(key_of(name, trainer, args.threads, 0))
            if result is None and (result := results.get(key_of(name, trainer, args.threads + 1, 0))):
                shown = f"{trainer}, {args.threads + 1} threads"
            if result is None:
                missing.append(f"{trainer} on {name}")
            else:
                lines.append(f"| {name} | {shown} | " + " | ".join(cells(result)) + " |")
    not_run = ["", f"Not run: {', '.join(missing)}."] if missing else []
    return "\n".join([*lines, *not_run, "", *spreads(args, results)])


def spreads(args: argparse.Namespace, results: Results) -> list[str]:
    """Mean and standard deviation over the seeds that were run, where there are several."""
    lines = ["| set | trainer | seeds | P@1 | P@3 | P@5 | recall@10 |", "|---|---|---:|" + "---:|" * 4]
    for name in args.sets:
        for trainer in SEEDED:
            found = [results.get(key_of(name, trainer, args.threads, seed)) for seed in range(100)]
            runs = [r["measures"] for r in found if r and "measures" in r]
            if len(runs) < 2:
                continue
            values = [[100 * r[m] for r in runs] for m in MEASURES]
            shown = [f"{np.mean(v):.2f} ± {np.std(v, ddof=1):.2f}" for v in values]
            lines.append(f"| {name} | {trainer} | {len(runs)} | " + " | ".join(shown) + " |")
    return lines if len(lines) > 2 else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--only", nargs="+", default=list(TRAINERS), choices=list(TRAINERS), metavar="TRAINER")
    parser.add_argument("--threads", type=int, default=1, help="threads of training (ranking always uses one)")
    parser.add_argument("--limit", type=float, default=30, help="CPU minutes a thread that training may take")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the trainers that take one")
    parser.add_argument("--results", type=Path, default=BUILD / "train_quality", help="folder, or a kept .json file")
    parser.add_argument("--start", type=Path, help="a kept .json file: what it has is not measured again")
    parser.add_argument("--keep", type=Path, help="write all results to this .json file")
    parser.add_argument("--models", type=Path, help="keep models here, as TRAINER/SET/model or model.bw")
    parser.add_argument("--again", action="store_true", help="run even what is in the cache")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    results = Results(args.results)
    if args.start:
        results.take_over(args.start)
    if not args.table:
        BUILD.mkdir(exist_ok=True)
        run_in_turns(args, results)
    print(table(args, results))
    if args.keep:
        results.keep(args.keep)


if __name__ == "__main__":
    main()
