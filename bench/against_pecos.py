"""Subjects in; our engine beside libpecos on the same weights out: batch, online, the door, memory.

Both sides must agree to 1e-5 before anything is timed. Then in turns, one thread, beam 10, k 10, median of
the rounds, in microseconds a query.

    python bench/against_pecos.py generated-4k winapi-seealso --data DATA
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from subjects import Subject, subject

import beamwood as bw
from beamwood.bench.resident import resident_of
from beamwood.bench.rivals import BUILD, Pecos
from beamwood.bench.timing import Figures, Time, batch_time, each_time, in_turns, print_header, print_table, save_json

BEAM = K = 10
OURS = ("binary", "hash", "dense", "auto")
THEIRS = ("binary", "hash")
TOLERANCE = 1e-5
TIED_ROWS = 0.01  # share of rows that may differ because an equal score stood at the edge of the beam


def engines(model: Any) -> dict[str, Any]:
    """Our engines by name; "auto" chooses for itself."""
    return {name: model.using(matcher=name, layout="chunk") if name != "auto" else model for name in OURS}


def check_agreement(model: Any, pecos: Pecos, X: sp.csr_matrix) -> dict[str, float]:
    """Scores to 1e-5 in every rank, against each of libpecos' types. Gives the share of ranks with equal labels.

    Labels may differ where scores tie to within the tolerance. A tie at the edge of the beam can change a whole
    row, since libpecos keeps the first candidate and we the smallest id, so a few rows may differ.
    """
    mine = model.topk(X, k=K, beam=BEAM, threads=1)
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


def time_both(model: Any, pecos: Pecos, X: sp.csr_matrix, given: argparse.Namespace) -> dict[str, dict[str, Time]]:
    """Batch, online, native and door times, both sides in turns."""
    rows = [X[i] for i in range(min(given.online_rows, X.shape[0]))]
    flat = [sp.csr_array(row).reshape((row.shape[1],)).tocsr() for row in rows]
    runs: dict[str, dict[str, Callable[[], Figures]]] = {"batch": {}, "online": {}, "native": {}}
    for name, engine in engines(model).items():
        ask = partial(engine.topk, k=K, beam=BEAM)
        runs["batch"][f"ours {name}"] = partial(batch_time, partial(ask, X), X.shape[0])
        runs["online"][f"ours {name}"] = partial(each_time, ask, rows)
        runs["native"][f"ours {name}"] = partial(native_times, engine, rows)
    for kind in THEIRS:
        runs["batch"][f"libpecos {kind}"] = partial(pecos.batch, kind, BEAM, K)
        runs["online"][f"libpecos {kind}"] = partial(pecos.online, kind, BEAM, K, len(rows))
        runs["native"][f"libpecos {kind}"] = partial(pecos.native, kind, BEAM, K, len(rows))
    runs["door"] = {
        "csr row": partial(door_time, model, rows),
        "1-D csr_array": partial(door_time, model, flat),
    }
    return {name: in_turns(part, given.rounds) for name, part in runs.items()}


def memory(one: Subject, model: Any) -> dict[str, float]:
    """Resident bytes of both sides, each in a fresh process."""
    path = BUILD / "bench-models" / f"{one.model_folder.name}.bw"
    model.save(path)
    found = {f"ours {name}": float(resident_of(path, name)) for name in ("binary", "hash")}
    for kind in THEIRS:
        with Pecos() as pecos:
            found[f"libpecos {kind}"] = pecos.load(kind, one.model_folder)["resident_bytes"]
    return found


def run_subject(one: Subject, given: argparse.Namespace) -> dict[str, Any]:
    """Everything about one subject."""
    layers = one.layers()
    nnz = sum(layer.weights.nnz for layer in layers)
    model = bw.Model.from_layers(layers, activation="hinge-3")
    del layers
    X = one.queries(given.rows)
    with Pecos() as pecos, tempfile.TemporaryDirectory() as folder:
        sp.save_npz(Path(folder) / "X.npz", X)
        pecos.queries(Path(folder) / "X.npz")
        for kind in THEIRS:
            pecos.load(kind, one.model_folder)
        agreement = check_agreement(model, pecos, X)
        times = time_both(model, pecos, X, given)
    return {"nnz": nnz, "agreement": agreement, **times, "memory": memory(one, model), "info": model.info()}


def claims(found: dict[str, Any]) -> list[list[Any]]:
    """What, measured, asked for, met. Times as fast: ratio of medians, in brackets that of best rounds."""
    batch, online, space = found["batch"], found["online"], found["memory"]
    best = min((online[f"libpecos {kind}"] for kind in THEIRS), key=lambda t: t.median)
    pairs = [
        (f"batch, {n}: times as fast as libpecos {n}", batch[f"libpecos {n}"], batch[f"ours {n}"], 1.3) for n in THEIRS
    ]
    pairs += [(f"online, {n}: times as fast as libpecos' best", best, online[f"ours {n}"], 3.0) for n in THEIRS]
    rows = [
        [
            what,
            f"{theirs.median / mine.median:.2f} ({theirs.low / mine.low:.2f})",
            f"at least {asked:g}",
            _met(theirs.median / mine.median >= asked),
        ]
        for what, theirs, mine, asked in pairs
    ]
    less = [(f"door, {name}, µs", t.median, 8.0) for name, t in found["door"].items()]
    less += [
        ("memory, binary over libpecos binary", space["ours binary"] / space["libpecos binary"], 0.75),
        ("memory, hash over our binary", space["ours hash"] / space["ours binary"], 1.4),
    ]
    return rows + [[what, f"{value:.2f}", f"at most {asked:g}", _met(value <= asked)] for what, value, asked in less]


def _met(holds: bool) -> str:
    return "yes" if holds else "NO"


def print_subject(one: Subject, found: dict[str, Any]) -> None:
    print(f"## {one.name}, {one.weights} weights, B={one.branching}, {found['nnz']:,} non-zeros\n")
    agreement = "; ".join(f"{what} {share:.3%}" for what, share in found["agreement"].items())
    print(f"scores agree to {TOLERANCE:g}: {agreement}\n")
    names = list(found["batch"])
    rows = [[name, *(found[part][name].median for part in ("batch", "online", "native"))] for name in names]
    for row in rows:
        bytes_of = found["memory"].get(row[0])
        row.append("" if bytes_of is None else f"{bytes_of / 2**20:,.1f} MiB, {bytes_of / found['nnz']:.1f}")
    print_table(["µs a query", "batch", "online, Python", "online, native", "resident, bytes a non-zero"], rows)
    print_table(["claim", "measured", "asked", "met"], claims(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME[:BRANCHING]")
    parser.add_argument("--data", type=Path, help="folder of the real subjects")
    parser.add_argument("--generated", action="store_true", help="generated weights, nothing is trained")
    parser.add_argument("--rows", type=int, default=2_000, help="queries in the batch")
    parser.add_argument("--online-rows", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with Pecos() as pecos:
        settings = {**vars(given), "beam": BEAM, "k": K, "threads": 1, "libpecos": pecos.versions()}
    print_header("Against libpecos", settings)
    results = {}
    for wanted in given.names:
        name, _, branching = wanted.partition(":")
        weights = "generated" if given.generated else "trained"
        one = subject(name, int(branching or 32), given.data, weights)
        one.prepare()
        results[wanted] = run_subject(one, given)
        print_subject(one, results[wanted])
        save_json(given.json, {"settings": settings, "results": results})


if __name__ == "__main__":
    main()
