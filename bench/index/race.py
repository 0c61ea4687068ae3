"""race.py — a data set in, a race of exact searchers out: bm25s, tantivy, sparse_dot_topn, scipy and bw.index.

A label's document is made of the terms of its training rows; a query is a test row. All search the same terms with one
thread for the best 10, in turns: a round of each, one query per call and then a batch. Agreement is checked first.

    python bench/rivals/install.py searchers
    python bench/index/race.py prepare DATA/debian-search build/race/debian-search
    python bench/index/race.py race build/race/debian-search --rounds 5
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.inputs.matrices import as_csr
from beamwood.lexical.bm25 import bm25_weights

BENCH = Path(__file__).resolve().parents[1]
OURS = "beamwood"
K = 10


def prepare(data: Path, folder: Path, queries: int) -> None:
    """Counts, BM25 weights, queries and our model, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    X, Y, asked = (sp.csr_array(sp.load_npz(data / name)) for name in ("X.trn.npz", "Y.trn.npz", "X.tst.npz"))
    X.data[:] = 1
    Y.data[:] = 1
    counts = as_csr(sp.csr_array(Y.T) @ X, None, "counts")
    asked = asked[np.flatnonzero(np.diff(asked.indptr))]
    asked = as_csr(asked[np.random.default_rng(0).permutation(asked.shape[0])[:queries]], None, "queries")
    asked.data[:] = 1
    weights = bm25_weights(counts)
    for name, matrix in (("counts", counts), ("weights", weights), ("queries", asked)):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
    begin = time.perf_counter()
    model = bw.index(weights, matched_only=True)
    seconds = time.perf_counter() - begin
    print(f"{data.name}: {counts.shape[0]:,} documents, {counts.nnz:,} weights, built in {seconds:.2f} s")
    model.save(folder / "index.bw")
    info = model.info()
    terms = asked.nnz / asked.shape[0]
    print(f"{info['bytes']:,} bytes, {info['bytes_per_nonzero']:.2f} per weight; {terms:.1f} terms per query")


class Worker:
    """The other searchers, in an interpreter of their own."""

    def __init__(self, python: str) -> None:
        command = [python, "-u", str(BENCH / "rivals" / "serve_searchers.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do: str, **given: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise SystemExit(f"{do} {given}: {reply['error']}")
        return reply

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Ours:
    """The same verbs for bw.index."""

    def __init__(self, folder: Path) -> None:
        self.model = bw.load(folder / "index.bw")
        self.queries = sp.csr_array(sp.load_npz(folder / "queries.npz"))
        self.rows = [self.queries[[i]] for i in range(self.queries.shape[0])]
        self.model.topk(self.queries, K)

    def single(self, first: int, count: int) -> dict[str, float]:
        took = []
        for row in self.rows[first : first + count]:
            begin = time.perf_counter_ns()
            self.model.topk(row, K)
            took.append(time.perf_counter_ns() - begin)
        return {"mean_us": float(np.mean(took)) / 1e3, "median_us": float(np.median(took)) / 1e3}

    def batch(self, first: int, count: int) -> dict[str, float]:
        X = self.queries[first : first + count]
        begin = time.perf_counter_ns()
        self.model.topk(X, K)
        return {"mean_us": (time.perf_counter_ns() - begin) / 1e3 / count}


def check_agreement(worker: Worker, ours: Ours, names: list[str], weights: Any, count: int) -> None:
    """How many of the best 10 of each searcher are as good as ours: the same scores, whatever the order of ties."""
    labels, scores = ours.model.topk(ours.queries[:count], K)
    for name in names:
        if name == "tantivy":  # its lengths are rounded and its k1 is 1.2: exact, for weights of its own
            continue
        same = 0
        for i, found in enumerate(worker.ask("answers", name=name, count=count)["labels"]):
            theirs = np.sort((weights[found] @ ours.rows[i].T).toarray()[:, 0])[::-1]
            mine = scores[i][labels[i] >= 0]
            same += bool(np.allclose(theirs[: len(mine)], mine, rtol=1e-5))
        print(f"{name}: the same ten best, ties apart, for {same} of {count} queries")


def race(folder: Path, python: str, searchers: list[str], rounds: int, singles: int, batch: int) -> None:
    """Rounds in turns, then a table of medians."""
    worker, ours = Worker(python), Ours(folder)
    loaded = worker.ask("load", folder=str(folder), searchers=searchers)
    names = loaded["searchers"]
    print("built in seconds:", {name: round(s, 2) for name, s in loaded["seconds"].items()})
    weights = sp.csr_array(sp.load_npz(folder / "weights.npz"))
    check_agreement(worker, ours, names, weights, 100)
    table: dict[str, dict[str, list[float]]] = {name: {"single": [], "batch": []} for name in (OURS, *names)}
    for number in range(rounds + 1):  # the first one warms up
        for name in (OURS, *names):
            for kind, count in (("single", singles), ("batch", batch)):
                first = (number * count) % (len(ours.rows) - count + 1)
                if name == OURS:
                    took = getattr(ours, kind)(first, count)
                else:
                    took = worker.ask(kind, name=name, first=first, count=count)
                if number:
                    table[name][kind].append(took["mean_us"])
    worker.close()
    show(table)


def show(table: dict[str, dict[str, list[float]]]) -> None:
    """Medians of rounds, and how many times ours they are."""
    ours = {kind: float(np.median(table[OURS][kind])) for kind in ("single", "batch")}
    print(f"{'searcher':<18}{'one query µs':>14}{'× ours':>9}{'batch µs':>12}{'× ours':>9}")
    for name, kinds in table.items():
        one, many = (float(np.median(kinds[kind])) for kind in ("single", "batch"))
        print(f"{name:<18}{one:>14,.1f}{one / ours['single']:>9.1f}{many:>12,.1f}{many / ours['batch']:>9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("prepare", help="files for the race from X.trn.npz, Y.trn.npz and X.tst.npz")
    first.add_argument("data", type=Path)
    first.add_argument("folder", type=Path)
    first.add_argument("--queries", type=int, default=2000)
    second = verbs.add_parser("race", help="time all searchers in turns")
    second.add_argument("folder", type=Path)
    second.add_argument("--python", help="the interpreter that has the other searchers (default: installs them)")
    second.add_argument("--searchers", nargs="+", default=["bm25s (numpy)", "bm25s (numba)", "tantivy", "products"])
    second.add_argument("--rounds", type=int, default=5)
    second.add_argument("--singles", type=int, default=100)
    second.add_argument("--batch", type=int, default=500)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data, given.folder, given.queries)
        return
    sys.path.insert(0, str(BENCH / "rivals"))
    if given.python is None:
        from install import python_of  # type: ignore[import-not-found]

        given.python = str(python_of("searchers"))
    race(given.folder, given.python, given.searchers, given.rounds, given.singles, given.batch)


if __name__ == "__main__":
    main()
