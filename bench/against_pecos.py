"""Subjects in; our engine beside libpecos on the same weights out: online, as Python calls it, batch, memory.

Both sides must agree to 1e-5 before anything is timed. Then in turns, each after one that does not count, beam 10,
k 10, median of the rounds, in microseconds per query. "engine" is the time inside the native call: what ours reports,
and libpecos' C function with arguments and results prepared beforehand. Ours answers from huge pages, and for
comparison from a mapped file and by the paper's eight variants (without the bound, as the paper has them).

    python bench/against_pecos.py debian-search yso-en winapi-seealso generated-4k generated-150k --data DATA
    python bench/against_pecos.py generated-4k:8 generated-4k:2
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rivals.install import BUILD, running_pecos
from support.subjects import Subject, subject

import beamwood as bw
from beamwood.bench.resident import resident_of
from beamwood.bench.rivals import Pecos
from beamwood.bench.timing import Figures, batch_time, each_time, in_turns, print_header, print_table, save_json

BEAM = K = 10
PAPER = [(matcher, layout) for layout in ("chunk", "column") for matcher in ("march", "binary", "hash", "dense")]
PAPER_ROWS = 40  # the slow ones are timed on fewer rows
THEIRS = ("binary", "hash")
TOLERANCE = 1e-5
TIED_ROWS = 0.01  # share of rows that may differ because an equal score stood at the edge of the beam


def check_agreement(model: Any, pecos: Pecos, X: sp.csr_matrix) -> dict[str, float]:
    """Scores to 1e-5 in every rank, against each of libpecos' types. Gives the share of ranks with equal labels.

    Labels may differ where scores tie to within the tolerance. A tie at the edge of the beam can change a whole
    row, since libpecos keeps the first candidate and we the smallest id, so a few rows may differ.
    """
    mine = model.topk(X, k=K, beam=BEAM, threads=1)
    for matcher, layout in PAPER:
        other = model.using(matcher=matcher, layout=layout, bound=False).topk(X[:200], k=K, beam=BEAM)
        if other[1].tobytes() != mine[1][:200].tobytes():
            raise SystemExit(f"{matcher} {layout} differs from the default: no point in timing it")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in THEIRS:
            out = Path(folder) / f"{kind}.npz"
            pecos.answers(kind, BEAM, K, out)
            theirs = np.load(out)
            padding = np.isneginf(mine[1]) & np.isneginf(theirs["scores"])
            with np.errstate(invalid="ignore"):
                apart = np.where(padding, 0, np.abs(mine[1] - theirs["scores"])).max(axis=1)
            share = float(np.mean(~(apart <= TOLERANCE)))
            if share > TIED_ROWS:
                worst = int(np.argmax(apart))
                raise SystemExit(f"{kind}: {share:.1%} of rows differ from libpecos; row {worst} by {apart[worst]:g}")
            found[f"{kind}, rows apart"] = share
            found[f"{kind}, equal labels"] = float(np.mean(mine[0] == theirs["labels"]))
    return found


def native_times(model: Any, rows: list[Any]) -> list[float]:
    """Microseconds that the engine reports for each row, in time that passes."""
    return [model.topk(row, k=K, beam=BEAM, stats=True)[2].nanoseconds / 1e3 for row in rows]


def door_time(model: Any, rows: list[Any], repeats: int = 9) -> float:
    """Microseconds of a one-row call beyond its native time: the median over some rows.

    Each row is asked until the processor knows it by heart, then with and without `stats` in turns: a first
    call is slower inside, which is not the door's doing.
    """
    ask, beyond = partial(model.topk, k=K, beam=BEAM), []
    for row in rows[:60]:
        each_time(ask, [row] * repeats)
        spent, native = [], []
        for _ in range(repeats):
            spent += each_time(ask, [row], time.perf_counter_ns)
            native += native_times(model, [row])
        beyond.append(np.median(spent) - np.median(native))
    return float(np.median(beyond))


def wall_time(call: Callable[[], object], queries: int) -> float:
    """Microseconds per query of one call on several threads, in time that passes."""
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e3 / queries


def time_both(models: dict[str, Any], pecos: Pecos, X: sp.csr_matrix, given: argparse.Namespace) -> dict[str, Any]:
    """Engine, online, batch and door times, both sides in turns."""
    rows = [X[i] for i in range(min(given.online_rows, X.shape[0]))]
    flat = [sp.csr_array(row).reshape((row.shape[1],)).tocsr() for row in rows]
    huge, n = models["huge"], X.shape[0]
    runs: dict[str, dict[str, Callable[[], Figures]]] = {
        "engine": {},
        "python": {},
        "batch": {},
        "batch, 2 threads": {},
    }
    for name, model in models.items():
        ask = partial(model.topk, X, k=K, beam=BEAM)
        runs["engine"][f"ours {name}"] = partial(native_times, model, rows)
        runs["python"][f"ours {name}"] = partial(each_time, partial(model.topk, k=K, beam=BEAM), rows)
        runs["batch"][f"ours {name}"] = partial(batch_time, ask, n)
        runs["batch, 2 threads"][f"ours {name}"] = partial(wall_time, partial(ask, threads=2), n)
        runs["batch, 2 threads"][f"ours {name}, 1 thread"] = partial(wall_time, ask, n)
    for kind in THEIRS:
        runs["engine"][f"libpecos {kind}"] = partial(pecos.native, kind, BEAM, K, len(rows))
        runs["python"][f"libpecos {kind}"] = partial(pecos.online, kind, BEAM, K, len(rows))
        runs["batch"][f"libpecos {kind}"] = partial(pecos.batch, kind, BEAM, K)
        runs["batch, 2 threads"][f"libpecos {kind}"] = partial(pecos.batch, kind, BEAM, K, 2)
    runs["door"] = {
        "csr row": partial(door_time, huge, rows),
        "1-D csr_array": partial(door_time, huge, flat),
    }
    found = {name: in_turns(part, given.rounds, warm=name != "door") for name, part in runs.items()}
    if given.variants:
        paper: dict[str, Callable[[], Figures]] = {}
        for matcher, layout in PAPER:
            engine = huge.using(matcher=matcher, layout=layout, bound=False)
            paper[f"ours, paper's {matcher} {layout}"] = partial(native_times, engine, rows[:PAPER_ROWS])
        found["engine"] |= in_turns(paper, 2)
    return found


def memory(one: Subject, path: Path) -> dict[str, float]:
    """Resident bytes of both sides, each in a fresh process."""
    found = {"ours map": float(resident_of(path, "auto"))}
    for kind in THEIRS:
        with running_pecos() as pecos:
            found[f"libpecos {kind}"] = pecos.load(kind, one.model_folder)["resident_bytes"]
    return found


def run_subject(one: Subject, given: argparse.Namespace) -> dict[str, Any]:
    """Everything about one subject."""
    path = BUILD / "bench-models" / f"{one.model_folder.name}.bw"
    bw.Model.from_layers(one.layers(), activation="hinge-3").save(path)
    models = {name: bw.load(path, memory=name) for name in ("huge", "map")}
    X = one.queries(given.rows)
    with running_pecos() as pecos, tempfile.TemporaryDirectory() as folder:
        sp.save_npz(Path(folder) / "X.npz", X)
        pecos.queries(Path(folder) / "X.npz")
        for kind in THEIRS:
            pecos.load(kind, one.model_folder)
        agreement = check_agreement(models["huge"], pecos, X)
        times = time_both(models, pecos, X, given)
    stats = models["huge"].topk(X, k=K, beam=BEAM, stats=True)[2]
    work = {name: getattr(stats, name) / X.shape[0] for name in ("blocks", "rows", "bytes")}
    info = models["huge"].info()
    space = memory(one, path)
    path.unlink()
    return {"agreement": agreement, **times, "memory": space, "work": work, "nnz": X.nnz / X.shape[0], "info": info}


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as the best of libpecos, and memory beside its leanest form."""

    def times(part: str, mine: str = "ours huge") -> float:
        best = min(found[part][f"libpecos {kind}"].median for kind in THEIRS)
        return float(best / found[part][mine].median)

    two = found["batch, 2 threads"]
    return {
        "engine": times("engine"),
        "engine, mapped": times("engine", "ours map"),
        "python": times("python"),
        "door, µs": found["door"]["csr row"].median,
        "batch": times("batch"),
        "batch, 2 threads": times("batch, 2 threads"),
        "2 threads over 1": two["ours huge, 1 thread"].median / two["ours huge"].median,
        "memory": found["memory"]["ours map"] / found["memory"]["libpecos binary"],
    }


def print_subject(one: Subject, found: dict[str, Any]) -> None:
    info = found["info"]
    print(f"## {one.name}, {one.weights} weights, B={one.branching}, {info['nonzeros']:,} non-zeros, ", end="")
    print(f"{info['labels']:,} labels, {found['nnz']:.1f} non-zeros per query\n")
    agreement = "; ".join(f"{what} {share:.3%}" for what, share in found["agreement"].items())
    print(f"scores agree to {TOLERANCE:g}: {agreement}")
    print("per query: " + ", ".join(f"{amount:,.1f} {what}" for what, amount in found["work"].items()) + " touched\n")
    parts = ("engine", "python", "batch", "batch, 2 threads")
    names = dict.fromkeys(name for part in parts for name in found[part])
    rows: list[list[Any]] = []
    for name in names:
        cells: list[Any] = [found[part][name].median if name in found[part] else "" for part in parts]
        space = found["memory"].get(name)
        shown = "" if space is None else f"{space / 2**20:,.1f} MiB, {space / info['nonzeros']:.1f}"
        rows.append([name, *cells, shown])
    print_table(["µs per query", *parts, "resident, bytes per non-zero"], rows)


ASKED = {
    "engine": "12 in the mean, 8 (debian-search 6) at B=32, 8 at B=8, 5 at B=2",
    "python": "20 in the mean",
    "door, µs": "at most 4",
    "batch": "5 in the mean, 3.5 at least at B=32",
    "batch, 2 threads": "the same",
    "2 threads over 1": "1.8",
    "memory": "at most 0.6",
}


def print_summary(results: dict[str, dict[str, Any]]) -> None:
    """Times as fast as libpecos' best, a column a subject, and the geometric mean over the subjects."""
    table = {name: ratios(found) for name, found in results.items()}
    whats = list(next(iter(table.values())))
    rows = []
    for what in whats:
        values = [table[name][what] for name in table]
        mean = math.exp(sum(map(math.log, values)) / len(values))
        rows.append([what, *values, mean, ASKED.get(what, "")])
    print_table(["times as fast as libpecos' best", *table, "geometric mean", "asked"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME[:BRANCHING]")
    parser.add_argument("--data", type=Path, help="folder of the real subjects")
    parser.add_argument("--variants", action="store_true", help="also the paper's eight variants")
    parser.add_argument("--generated", action="store_true", help="generated weights, nothing is trained")
    parser.add_argument("--rows", type=int, default=3_000, help="queries in the batch")
    parser.add_argument("--online-rows", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with running_pecos() as pecos:
        settings = {**vars(given), "beam": BEAM, "k": K, "libpecos": pecos.versions()}
    print_header("Against libpecos", settings)
    results = {}
    for words in given.names:
        name, _, branching = words.partition(":")
        weights = "generated" if given.generated else "trained"
        one = subject(name, int(branching or 32), given.data, weights)
        one.prepare()
        results[words] = run_subject(one, given)
        print_subject(one, results[words])
        save_json(given.json, {"settings": settings, "results": results})
    print_summary(results)


if __name__ == "__main__":
    main()
