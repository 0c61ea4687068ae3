"""rivals.py — models of others and presets of ours in; libpecos' batch and omikuji online beside them, out.

    python bench/train_quality.py --data DATA --only libpecos omikuji-bonsai --models build/trained
    python bench/engine/presets.py --data DATA --only-train
    python bench/engine/rivals.py --data DATA [--sets winapi-seealso] [--rounds 7]

Two tables, all in turns, one thread, beam 10, k 10, processor time. Batch: 2,000 test rows by libpecos' own model (each
of its matrix types) and by the presets. One by one: 300 test rows by omikuji's Bonsai-like model in omikuji, and by the
same model converted and asked from Python. "same first" is how many of the rows get the same first label from both:
where leaves are wider than the beam, omikuji leaves out labels that we do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.bench.rivals import Omikuji, Pecos
from beamwood.bench.timing import batch_time, each_time, in_turns, print_header, print_table
from beamwood.interop.convert import read as read_foreign
from beamwood.metrics import evaluate

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
from support.quality_sets import SETS, matrices, prepared  # noqa: E402

HOMES = HERE.parent / "build" / "rivals"
BATCH, ONLINE, BEAM, K = 2000, 300, 10, 10
OURS, THEIRS = ("fast", "balanced", "balanced, trees alone"), ("hash", "binary")


def measures(answers: Any, Y: Any) -> list[str]:
    """P@1 and recall@10 in percent."""
    found = evaluate(answers, Y, at=(1, 10)).as_dict()
    return [f"{100 * found[name]:.1f}" for name in ("precision@1", "recall@10")]


def in_batch(presets: Path, theirs: Path, X: Any, Y: Any, x: Path, rounds: int) -> None:
    """The table of batches."""
    models = {name: bw.load(presets / f"{name}.bw") for name in OURS if (presets / f"{name}.bw").exists()}
    asks = {name: partial(model.topk, X, k=K, beam=BEAM, threads=1) for name, model in models.items()}
    runs: dict[str, Any] = {name: partial(batch_time, ask, X.shape[0]) for name, ask in asks.items()}
    quality = {name: measures(ask(), Y) for name, ask in asks.items()}
    with Pecos(HOMES) as pecos, tempfile.TemporaryDirectory() as folder:
        pecos.queries(x)
        for kind in THEIRS:
            name, out = f"libpecos, {kind}", Path(folder) / f"{kind}.npz"
            pecos.load(kind, theirs)
            pecos.answers(kind, BEAM, K, out)
            found = np.load(out)
            quality[name] = measures((found["labels"], found["scores"]), Y)
            runs[name] = partial(pecos.batch, kind, BEAM, K)
        times = in_turns(runs, rounds, warm=True)
    best = min(times[f"libpecos, {kind}"].median for kind in THEIRS)
    rows = [[name, *quality[name], f"{t.median:.1f}", f"{best / t.median:.2f}"] for name, t in times.items()]
    print_table(["model", "P@1", "recall@10", "µs, batch", "libpecos / it"], rows)


def one_by_one(folder: Path, X: Any, Y: Any, x: Path, rounds: int) -> None:
    """The table of omikuji's model, there and here."""
    model = read_foreign(folder).model
    rows = [X[i] for i in range(ONLINE)]
    with Omikuji(HOMES) as omikuji, tempfile.TemporaryDirectory() as scratch:
        omikuji.queries(x)
        omikuji.load(folder)
        out = Path(scratch) / "answers.npz"
        omikuji.answers(BEAM, K, out)
        theirs, ours = np.load(out), model.topk(X, k=K, beam=BEAM, threads=1)
        runs = {
            "omikuji": partial(omikuji.online, BEAM, K, ONLINE),
            "beamwood": partial(each_time, partial(model.topk, k=K, beam=BEAM, threads=1), rows),
        }
        times = in_turns(runs, rounds, warm=True)
    same = float(np.mean(theirs["labels"][:, 0] == ours[0][:, 0]))
    quality = {"omikuji": measures((theirs["labels"], theirs["scores"]), Y), "beamwood": measures(ours, Y)}
    first = times["omikuji"].median
    table = [[name, *quality[name], f"{t.median:.1f}", f"{first / t.median:.1f}"] for name, t in times.items()]
    print_table(["Bonsai-like model in", "P@1", "recall@10", "µs, one by one", "omikuji / it"], table)
    print(f"same first: {same:.1%} of {X.shape[0]:,} rows\n")


def main() -> None:
    """Reads the arguments, prints two tables for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data", help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--models", type=Path, default=HERE.parent / "build" / "trained", help="of train_quality.py")
    parser.add_argument("--keep", type=Path, default=HERE.parent / "build" / "presets", help="of presets.py")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for name in given.sets:
        X, Y = (part[:BATCH] for part in matrices(prepared(name, given.data, HERE.parent / "build" / "sets"), "tst"))
        X.sort_indices()
        with tempfile.TemporaryDirectory() as folder:
            x = Path(folder) / "X.npz"
            sp.save_npz(x, X)
            print_header(f"Beside models of others on {name}", {"rounds": given.rounds})
            if (given.models / "libpecos" / name / "model").exists():
                in_batch(given.keep / name, given.models / "libpecos" / name / "model", X, Y, x, given.rounds)
            if (given.models / "omikuji-bonsai" / name / "model").exists():
                one_by_one(given.models / "omikuji-bonsai" / name / "model", X, Y, x, given.rounds)


if __name__ == "__main__":
    main()
