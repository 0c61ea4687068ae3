"""train_speed.py — data sets in, a table out: training time and peak memory of beamwood and libpecos.

    python bench/train_speed.py --data ../shared/data               # three sets; 1 and 2 threads
    python bench/train_speed.py --sets winapi-seealso --threads 1   # one set, quick
    python bench/train_speed.py --scaling --plot docs/pictures/training-cost   # against rows, labels, branching
    python bench/train_speed.py --table --results bench/results/train_speed.json   # the run that is checked in

Every run is a process of its own, so peak memory is its own too, and is kept under build/train_speed: what is there is
not measured again (--again does), so a broken-off bench goes on where it stopped. Times only mean something when the
models agree: precision@1 on held-out rows stands beside them, and beamwood being 0.5 points worse is marked.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from rivals.install import PECOS_VERSION, python_of
from support.results import Result, Results

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
SETTINGS = "branching 32, max_leaf 32, squared hinge, C 1, eps 0.1, prune 0.1, tfn, bias 1"
BASE = {"rows": 80_000, "labels": 20_000, "branching": 32}  # while one of them is varied
POINTS = {
    "rows": [20_000, 40_000, 80_000, 160_000],
    "labels": [10_000, 20_000, 40_000, 80_000],
    "branching": [8, 16, 32, 64],
}
ALLOWED: dict[str, Callable[[float], float]] = {"rows": lambda n: n, "labels": lambda n: n * np.log2(n)}


def run(library: str, folder: Path, threads: int, branching: int = 32) -> Result:
    """One training in a process of its own."""
    python = sys.executable if library == "beamwood" else str(python_of("libpecos"))
    worker = str(HERE / "rivals" / "train_worker.py")
    done = subprocess.run(
        [python, worker, library, str(folder), str(threads), str(branching)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{library} failed on {folder.name}:\n{done.stderr[-2000:]}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return {**result, "load": os.getloadavg()[0], "when": time.strftime("%F %R")}


def generated(folder: Path, *, rows: int, features: int, labels: int, nonzeros: int, seed: int = 0) -> Path:
    """Rows with Zipf features: half are the label's own words, half come from the whole vocabulary."""
    if (folder / "Y.tst.npz").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)

    def zipf(*size: int) -> np.ndarray:
        return np.minimum((features ** rng.random(size)).astype(np.int64) - 1, features - 1)

    own = rng.permutation(features)[zipf(labels, nonzeros)]
    for name, count in (("trn", rows), ("tst", max(rows // 20, 100))):
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


def folder_of(name: str, data: Path) -> Path:
    if name == "generated":
        return generated(BUILD / "sets" / name, rows=150_000, features=150_000, labels=150_000, nonzeros=93)
    if not (data / name).is_dir():
        raise SystemExit(f"{name} is not in {data}: say --data FOLDER, or --sets without it")
    return data / name


def compare(chosen: argparse.Namespace, results: Results) -> None:
    """Both libraries in turns, round after round, on every set."""
    for name in chosen.sets:
        for threads in chosen.threads:
            for number in range(chosen.rounds):
                for library in ("beamwood", "libpecos"):
                    key = f"{name}/{library}-{threads}-round{number}"
                    if results.get(key) is None or chosen.again:
                        results.put(key, run(library, folder_of(name, chosen.data), threads))


def comparison(chosen: argparse.Namespace, results: Results) -> str:
    lines = ["| set | threads | library | wall s | CPU s | peak MB | P@1 |", "|---|---:|---|---:|---:|---:|---:|"]
    verdicts, missing = [], []
    for name in chosen.sets:
        for threads in chosen.threads:
            found = {lib: _middle(results, f"{name}/{lib}-{threads}-round") for lib in ("beamwood", "libpecos")}
            for library, r in found.items():
                if r is None:
                    missing.append(f"{library} on {name}, {threads} thread(s)")
                else:
                    cells = f"{r['wall']:.1f} | {r['cpu']:.1f} | {r['peak']:.0f} | {r['p1']:.2f}"
                    lines.append(f"| {name} | {threads} | {library} | {cells} |")
            ours, theirs = found["beamwood"], found["libpecos"]
            if ours and theirs:
                verdicts.append(
                    f"- {name}, {threads} thread(s): {theirs['wall'] / ours['wall']:.1f} x as fast "
                    f"({theirs['cpu'] / ours['cpu']:.1f} x by CPU seconds), "
                    f"{ours['peak'] / theirs['peak']:.2f} x the memory"
                    + ("" if ours["p1"] >= theirs["p1"] - 0.5 else "; DISAGREE: precision@1 is worse")
                )
    if missing:
        verdicts.append(f"- Not run: {'; '.join(missing)}.")
    return "\n".join([*lines, "", *verdicts])


def _middle(results: Results, prefix: str) -> Result | None:
    """The median of each figure over the rounds."""
    rounds = [results.get(name) for name in results.names() if name.startswith(prefix)]
    found = [r for r in rounds if r is not None]
    return {k: median(r[k] for r in found) for k in ("wall", "cpu", "peak", "before", "p1")} if found else None


def scale(chosen: argparse.Namespace, results: Results) -> None:
    """beamwood alone, four points an axis, the others held at BASE; each point twice."""
    for number in range(2):
        for axis, values in POINTS.items():
            for value in values:
                key = f"scaling/{axis}-{value}-round{number}"
                if results.get(key) is not None and not chosen.again:
                    continue
                at = {**BASE, axis: value}
                folder = BUILD / "sets" / f"n{at['rows']}-L{at['labels']}"
                data = generated(folder, rows=at["rows"], features=50_000, labels=at["labels"], nonzeros=40)
                results.put(key, run("beamwood", data, 1, at["branching"]))


def scaling(results: Results) -> tuple[str, dict[str, list[tuple[int, float, float]]]]:
    lines = ["| varied | value | CPU s | added MB | P@1 |", "|---|---:|---:|---:|---:|"]
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for axis, values in POINTS.items():
        for value in values:
            r = _middle(results, f"scaling/{axis}-{value}-round")
            if r is None:
                continue
            curves.setdefault(axis, []).append((value, r["cpu"], r["peak"] - r["before"]))
            lines.append(f"| {axis} | {value:,} | {r['cpu']:.2f} | {r['peak'] - r['before']:.0f} | {r['p1']:.1f} |")
    lines.append("")
    for axis, curve in curves.items():
        (x0, t0, m0), (x1, t1, m1) = curve[0], curve[-1]
        line = f"- {axis} x {x1 / x0:.0f}: time x {t1 / t0:.2f}, added memory x {m1 / m0:.2f}"
        if axis in ALLOWED:
            allowed = ALLOWED[axis](x1) / ALLOWED[axis](x0)
            line += f"; allowed x {allowed:.2f}: {'met' if max(t1 / t0, m1 / m0) <= allowed else 'NOT met'}"
        lines.append(line)
    return "\n".join(lines), curves


def draw(curves: dict[str, list[tuple[int, float, float]]], plot: Path) -> None:
    """Two rows of log-log plots, time and memory, with the growth that is allowed as a dashed line."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(curves), figsize=(3.4 * len(curves), 5.2), squeeze=False)
    for column, (name, curve) in enumerate(curves.items()):
        x = [c[0] for c in curve]
        for row, unit in enumerate(("CPU seconds", "added MB")):
            panel, y = axes[row][column], [c[row + 1] for c in curve]
            panel.loglog(x, y, "o-", color="#1f6f54", label="beamwood, preset fast")
            if name in ALLOWED:
                bound = [y[0] * ALLOWED[name](v) / ALLOWED[name](x[0]) for v in x]
                panel.loglog(x, bound, "--", color="#999999", label={"rows": "n", "labels": "L log L"}[name])
            panel.set_xticks(x, [f"{v:,}" for v in x], fontsize=7)
            panel.minorticks_off()
            panel.set_ylim(min(y) / 2, max(y) * 3)
            panel.set_ylabel(unit if column == 0 else "")
            panel.set_xlabel(name if row == 1 else "")
            panel.legend(fontsize=7, frameon=False)
    figure.suptitle("Cost of training, one thread", fontsize=10)
    figure.tight_layout()
    for suffix in (".png", ".svg"):
        figure.savefig(plot.with_suffix(suffix), dpi=130, metadata={"Date": None} if suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the real sets")
    parser.add_argument("--sets", nargs="*", default=["winapi-seealso", "yso-en", "generated"])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--scaling", action="store_true", help="beamwood against rows, labels and branching")
    parser.add_argument("--plot", type=Path, help="with --scaling: where to draw, without a suffix (PNG and SVG)")
    parser.add_argument("--results", type=Path, default=BUILD / "train_speed", help="folder, or a kept .json file")
    parser.add_argument("--start", type=Path, help="a kept .json file: what it has is not measured again")
    parser.add_argument("--keep", type=Path, help="write all results to this .json file")
    parser.add_argument("--again", action="store_true", help="measure even what is there")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    results = Results(chosen.results)
    if chosen.start:
        results.take_over(chosen.start)
    if not chosen.table:
        (scale if chosen.scaling else compare)(chosen, results)
        results.put("machine", {"cores": os.cpu_count(), "processor": processor(), "rival": PECOS_VERSION})
    machine = results.get("machine") or {}
    print(f"{machine.get('processor')}, {machine.get('cores')} cores; {machine.get('rival')}; {SETTINGS}\n")
    if chosen.scaling:
        text, curves = scaling(results)
        print(text)
        if chosen.plot is not None:
            draw(curves, chosen.plot)
    else:
        print(comparison(chosen, results))
    if chosen.keep:
        results.keep(chosen.keep)


def processor() -> str:
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
