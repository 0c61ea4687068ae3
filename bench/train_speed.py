"""train_speed.py — data sets in, a table out: training time and peak memory of beamwood and libpecos.

    python bench/train_speed.py --data ../shared/data               # yso-en, generated; 1 and 2 threads
    python bench/train_speed.py --sets winapi-seealso --threads 1   # one set, quick
    python bench/train_speed.py --scaling                           # against rows, labels and branching

Every run is a process of its own, so peak memory is its own too. libpecos lives in a virtual environment that
the script makes on first use (it needs an older numpy). Times only mean something when the models agree, so
precision@1 on held-out rows is printed beside them, and a difference of more than 0.5 points is marked.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SETTINGS = "branching 32, max_leaf 32, squared hinge, C 1, eps 0.1, prune 0.1, tfn, bias 1"

# Runs inside the process that is measured: argv = folder, threads, branching. Prints one JSON line.
COMMON = """
import json, sys, time
import numpy as np, scipy.sparse as sp
folder, threads, branching = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
names = ("X.trn", "Y.trn", "X.tst", "Y.tst")
X, Y, Xt, Yt = (sp.load_npz(f"{folder}/{n}.npz").tocsr().astype(np.float32) for n in names)
def peak_kb():  # of this program alone: getrusage would count the process that started it too
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
before = peak_kb()
wall, cpu = time.perf_counter(), time.process_time()
"""
OURS = """
import beamwood as bw
model = bw.train(X, Y, preset="fast", branching=branching, threads=threads, progress=False)
"""
OURS_PREDICT = """
best = model.topk(Xt, k=1, beam=10)[0][:, 0]
"""
PECOS = """
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear import XLinearModel
vectors = LabelEmbeddingFactory.create(Y, X, method="pifa")
chain = Indexer.gen(vectors, nr_splits=branching, max_leaf_size=32, threads=threads, seed=0)
model = XLinearModel.train(X, Y, C=chain, threshold=0.1, threads=threads)
"""
PECOS_PREDICT = """
P = model.predict(Xt, beam_size=10, only_topk=1).tocsr()
best = np.full(Xt.shape[0], -1)
best[np.diff(P.indptr) > 0] = P.indices[P.indptr[:-1][np.diff(P.indptr) > 0]]
"""
MEASURE = """
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = peak_kb()
"""
SAY = """
hit = np.asarray(Yt[np.arange(len(best))[best >= 0], best[best >= 0]]).ravel() > 0
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak / 1024, "before": before / 1024,
                  "p1": 100 * hit.sum() / len(best)}))
"""
SCRIPT = {
    "beamwood": COMMON + OURS + MEASURE + OURS_PREDICT + SAY,
    "libpecos": COMMON + PECOS + MEASURE + PECOS_PREDICT + SAY,
}


def pecos_python(folder: Path) -> Path:
    """A virtual environment with libpecos and the older numpy that it needs."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "-q", "install", "--no-deps", "libpecos"], check=True)
        subprocess.run([python, "-m", "pip", "-q", "install", "numpy<2", "scipy<1.14", "scikit-learn"], check=True)
    return python


def run(library: str, python: Path, data: Path, threads: int, branching: int = 32) -> dict[str, float]:
    """One training in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [str(python), "-c", SCRIPT[library], str(data), str(threads), str(branching)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{library} failed on {data.name}:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def generated(folder: Path, *, rows: int, features: int, labels: int, nonzeros: int, seed: int = 0) -> Path:
    """Rows with Zipf features: half are the label's own words, half come from the whole vocabulary."""
    if (folder / "Y.tst.npz").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)

    def zipf(*size: int) -> np.ndarray:
        return np.minimum((features ** rng.random(size)).astype(np.int64) - 1, features - 1)

    own = rng.permutation(features)[zipf(labels, nonzeros)]
    tests = max(rows // 20, 100)
    for name, count in (("trn", rows), ("tst", tests)):
        label = rng.permutation(count) % labels
        half = nonzeros // 2
        mine = own[label[:, None], rng.integers(0, nonzeros, (count, half))]
        column = np.hstack([mine, zipf(count, nonzeros - half)])
        value = rng.random(column.shape).astype(np.float32) + 0.1
        X = sp.csr_matrix((value.ravel(), column.ravel(), np.arange(count + 1) * nonzeros), shape=(count, features))
        X.sum_duplicates()
        X = sp.csr_matrix(sp.diags(_inverse_norms(X)) @ X, dtype=np.float32)
        X.sort_indices()
        Y = sp.csr_matrix((np.ones(count), (np.arange(count), label)), shape=(count, labels))
        sp.save_npz(folder / f"X.{name}.npz", X)
        sp.save_npz(folder / f"Y.{name}.npz", sp.csr_matrix(Y, dtype=np.float32))
    return folder


def _inverse_norms(X: Any) -> np.ndarray:
    return 1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())


def compare(sets: dict[str, Path], threads: list[int], rounds: int, pecos: Path) -> None:
    """Both libraries in turns on every set; the best of the rounds counts."""
    print("| set | threads | library | wall s | cpu s | peak MB | P@1 |\n|---|---|---|---|---|---|---|")
    verdicts = []
    for name, folder in sets.items():
        for count in threads:
            best: dict[str, dict[str, float]] = {}
            for _ in range(rounds):
                for library, python in (("beamwood", Path(sys.executable)), ("libpecos", pecos)):
                    result = run(library, python, folder, count)
                    if library not in best or result["wall"] < best[library]["wall"]:
                        best[library] = result
            for library, r in best.items():
                cells = f"{r['wall']:.1f} | {r['cpu']:.1f} | {r['peak']:.0f} | {r['p1']:.2f}"
                print(f"| {name} | {count} | {library} | {cells} |", flush=True)
            ours, theirs = best["beamwood"], best["libpecos"]
            verdicts.append(
                f"{name}, {count} threads: {theirs['wall'] / ours['wall']:.2f} x as fast "
                f"({theirs['cpu'] / ours['cpu']:.2f} x by cpu), "
                f"{ours['peak'] / theirs['peak']:.2f} x the memory"
                + ("" if ours["p1"] >= theirs["p1"] - 0.5 else "  DISAGREE: precision@1 differs")
            )
    print("\n" + "\n".join(verdicts))


def scaling(cache: Path, threads: int, plot: Path | None) -> None:
    """Time and memory of beamwood against rows, labels and branching, four points each, the others held."""
    base = {"rows": 40_000, "labels": 40_000, "branching": 32}
    points = {
        "rows": [20_000, 40_000, 80_000, 160_000],
        "labels": [10_000, 20_000, 40_000, 80_000],
        "branching": [8, 16, 32, 64],
    }
    curves: dict[str, list[tuple[int, float, float]]] = {}
    print("| varied | value | wall s | cpu s | added MB |\n|---|---|---|---|---|")
    for axis, values in points.items():
        for value in values:
            at = {**base, axis: value}
            data = generated(
                cache / f"n{at['rows']}-L{at['labels']}",
                rows=at["rows"],
                features=50_000,
                labels=at["labels"],
                nonzeros=40,
            )
            r = run("beamwood", Path(sys.executable), data, threads, at["branching"])
            curves.setdefault(axis, []).append((value, r["cpu"], r["peak"] - r["before"]))
            print(
                f"| {axis} | {value} | {r['wall']:.2f} | {r['cpu']:.2f} | {r['peak'] - r['before']:.0f} |",
                flush=True,
            )
    for axis, curve in curves.items():
        (x0, t0, _), (x1, t1, _) = curve[0], curve[-1]
        print(f"{axis}: time grows as {axis}^{np.log(t1 / t0) / np.log(x1 / x0):.2f}")
    if plot is not None:
        draw(curves, plot)


def draw(curves: dict[str, list[tuple[int, float, float]]], plot: Path) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("no plot: matplotlib is not installed (pip install matplotlib)")
        return
    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2))
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        axis.loglog(*zip(*((x, t) for x, t, _ in curve), strict=True), "o-")
        axis.set(xlabel=name, ylabel="cpu seconds", title=f"training against {name}")
    figure.tight_layout()
    figure.savefig(plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the real sets")
    parser.add_argument("--sets", nargs="*", default=["yso-en", "generated"])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "beamwood-bench")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    chosen.cache.mkdir(parents=True, exist_ok=True)
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        f"; {SETTINGS}\n"
    )
    if chosen.scaling:
        return scaling(chosen.cache, chosen.threads[0], chosen.plot)
    sets: dict[str, Path] = {}
    for name in chosen.sets:
        if name == "generated":
            sets[name] = generated(chosen.cache / name, rows=150_000, features=150_000, labels=150_000, nonzeros=93)
        elif (chosen.data / name).is_dir():
            sets[name] = chosen.data / name
        else:
            print(f"{name} is not in {chosen.data}: left out (say --data FOLDER)")
    compare(sets, chosen.threads, chosen.rounds, pecos_python(chosen.cache / "pecos-venv"))


if __name__ == "__main__":
    main()
