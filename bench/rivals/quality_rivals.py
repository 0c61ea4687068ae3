"""quality_rivals.py — one trainer and one data folder in; its ranking of the test rows and what it cost out.

Runs inside the virtual environment of that trainer (numpy and scipy are all it needs besides), started by
train_quality.py:  python quality_rivals.py NAME FOLDER OUT THREADS LIMIT SEED
Training that uses more than LIMIT CPU seconds ends the process by SIGXCPU.
"""

from __future__ import annotations

import gzip
import json
import pickle
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

DEPTH = 10  # labels ranked, and the beam wherever there is one
TIMED_ROWS = 2000


class Trained(NamedTuple):
    """What every trainer hands back: how to rank test rows [a, b), its files, how many rows to rank."""

    rank: Callable[[int, int], list[Any]]  # for each row a list of (label, score), best first
    files: Path
    rows: int


class Data(NamedTuple):
    folder: Path
    out: Path
    threads: int
    seed: int

    def matrix(self, name: str) -> Any:
        return sp.csr_matrix(sp.load_npz(self.folder / f"{name}.npz"), dtype=np.float32)

    def texts(self) -> tuple[list[Any], list[str]]:
        """Return the training records and the test texts."""
        train, test = [], []
        with gzip.open(self.folder / "raw.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if row["split"] == "trn":
                    train.append(row)
                else:
                    test.append(row["text"])
        return train, test


def from_csr(P: Any) -> list[Any]:
    """The entries of each row, best first."""
    P = P.tocsr()
    ranked = []
    for a, b in zip(P.indptr[:-1], P.indptr[1:]):  # noqa: B905 (also read by old Pythons)
        order = np.lexsort((P.indices[a:b], -P.data[a:b]))
        ranked.append(list(zip(P.indices[a:b][order].tolist(), P.data[a:b][order].tolist())))  # noqa: B905
    return ranked


def beamwood(preset: str, **settings: Any) -> Callable[[Data], Callable[[], Trained]]:
    def load(data: Data) -> Callable[[], Trained]:
        import beamwood as bw

        X, Y, T = (data.matrix(m) for m in ("X.trn", "Y.trn", "X.tst"))

        def train() -> Trained:
            model = bw.train(X, Y, preset=preset, seed=data.seed, threads=data.threads, progress=False, **settings)
            model.save(str(data.out / "model.bw"))

            def rank(a: int, b: int) -> list[Any]:
                labels, scores = model.topk(T[a:b], k=DEPTH, beam=DEPTH, threads=1)
                return [[*zip(x, s)] for x, s in zip(labels.tolist(), scores.tolist())]  # noqa: B905

            return Trained(rank, data.out / "model.bw", T.shape[0])

        return train

    return load


def libpecos(data: Data) -> Callable[[], Trained]:
    """The settings of beamwood's preset "fast"."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y, T = (data.matrix(m) for m in ("X.trn", "Y.trn", "X.tst"))

    def train() -> Trained:
        vectors = LabelEmbeddingFactory.create(Y, X, method="pifa")
        tree = Indexer.gen(vectors, nr_splits=32, max_leaf_size=32, seed=data.seed, threads=data.threads)
        model = XLinearModel.train(X, Y, C=tree, threshold=0.1, threads=data.threads, negative_sampling_scheme="tfn")
        model.save(str(data.out / "model"))
        loaded = XLinearModel.load(str(data.out / "model"), is_predict_only=True)

        def rank(a: int, b: int) -> list[Any]:
            return from_csr(loaded.predict(T[a:b], beam_size=DEPTH, only_topk=DEPTH, threads=1))

        return Trained(rank, data.out / "model", T.shape[0])

    return train


def napkinxc(data: Data) -> Callable[[], Trained]:
    """PLT as it comes: logistic loss, C 10, balanced 2-means tree, exact search."""
    from napkinxc.models import PLT

    X, Y, T = (data.matrix(m) for m in ("X.trn", "Y.trn", "X.tst"))
    labels = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:])]  # noqa: B905

    def train() -> Trained:
        model = PLT(str(data.out / "model"), threads=data.threads, seed=data.seed)
        model.fit(X, labels)
        return Trained(lambda a, b: model.predict_proba(T[a:b], top_k=DEPTH), data.out / "model", T.shape[0])

    return train


def omikuji(bonsai: bool) -> Callable[[Data], Callable[[], Trained]]:
    """As it comes (three balanced 2-means trees), or like Bonsai (100 uneven groups, depth 3)."""

    def load(data: Data) -> Callable[[], Trained]:
        from omikuji import Model

        X, Y, T = (data.matrix(m) for m in ("X.trn", "Y.trn", "X.tst"))
        text = write_xmc(X, Y, data.out / "train.txt")

        def train() -> Trained:
            how = Model.default_hyper_param()
            if bonsai:
                how.cluster_k, how.cluster_balanced, how.max_depth = 100, False, 3
            model = Model.train_on_data(str(text), how, data.threads)
            model.save(str(data.out / "model"))
            model.init_prediction_thread_pool(1)

            def one(row: int) -> list[Any]:
                entries = slice(T.indptr[row], T.indptr[row + 1])
                pairs = list(zip(T.indices[entries].tolist(), T.data[entries].tolist()))  # noqa: B905
                return model.predict(pairs, beam_size=DEPTH, top_k=DEPTH)

            return Trained(lambda a, b: [one(row) for row in range(a, b)], data.out / "model", T.shape[0])

        return train

    return load


def write_xmc(X: Any, Y: Any, path: Path) -> Path:
    """Write the text format of the Extreme Classification Repository, which omikuji reads."""
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for row in range(X.shape[0]):
            labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
            entries = range(X.indptr[row], X.indptr[row + 1])
            file.write(labels + "".join(f" {X.indices[e]}:{X.data[e]:.7g}" for e in entries) + "\n")
    return path


def libmultilabel(data: Data) -> Callable[[], Trained]:
    """Its linear tree as it comes (100 groups a node, L2-loss SVM)."""
    from libmultilabel import linear

    X, Y, T = (data.matrix(m).astype(np.float64) for m in ("X.trn", "Y.trn", "X.tst"))

    def train() -> Trained:
        np.random.seed(data.seed)
        model = linear.train_tree(Y, X, options=f"-m {data.threads}", verbose=False)
        files = data.out / "model.pickle"
        with files.open("wb") as file:
            pickle.dump(model.flat_model, file)

        def rank(a: int, b: int) -> list[Any]:
            ranked = []
            for start in range(a, b, 64):  # its answer is a dense rows x labels array
                for scores in model.predict_values(T[start : min(b, start + 64)], beam_width=DEPTH):
                    top = np.argsort(-scores, kind="stable")[:DEPTH]
                    ranked.append([(int(label), float(scores[label])) for label in top])
            return ranked

        return Trained(rank, files, min(5000, T.shape[0]))

    return train


def bm25s(data: Data) -> Callable[[], Trained]:
    """Word matching: a label is the document of all its training texts. What a search engine would do."""
    import bm25s as bm25

    records, queries = data.texts()
    documents = [""] * data.matrix("Y.trn").shape[1]
    pieces: list[list[str]] = [[] for _ in documents]
    for record in records:
        for label in record["labels"]:
            pieces[label].append(record["text"])

    def train() -> Trained:
        tokens = bm25.tokenize([" ".join(p) for p in pieces], stopwords="en", show_progress=False)
        index = bm25.BM25()
        index.index(tokens, show_progress=False)
        index.save(str(data.out / "model"))

        def rank(a: int, b: int) -> list[Any]:
            tokens = bm25.tokenize(queries[a:b], stopwords="en", show_progress=False, return_ids=False)
            labels, scores = index.retrieve(tokens, k=DEPTH, show_progress=False, n_threads=1)
            return [[*zip(x, s)] for x, s in zip(labels.tolist(), scores.tolist())]  # noqa: B905

        return Trained(rank, data.out / "model", min(5000, len(queries)))

    return train


TRAINERS: dict[str, Callable[[Data], Callable[[], Trained]]] = {
    "beamwood-fast": beamwood("fast"),
    "beamwood-balanced": beamwood("balanced"),
    "beamwood-best": beamwood("best"),
    "beamwood-balanced-trees": beamwood("balanced", lexical=False),
    "beamwood-fast-trees": beamwood("fast", lexical=False),
    "libpecos": libpecos,
    "napkinxc": napkinxc,
    "omikuji": omikuji(bonsai=False),
    "omikuji-bonsai": omikuji(bonsai=True),
    "libmultilabel": libmultilabel,
    "bm25s": bm25s,
}


def size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size


def main(name: str, folder: str, out: str, threads: str, limit: str, seed: str = "0") -> None:
    data = Data(Path(folder), Path(out), int(threads), int(seed))
    train = TRAINERS[name](data)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    never = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(begin_cpu) + int(limit), never[1]))
    trained = train()
    resource.setrlimit(resource.RLIMIT_CPU, never)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    timed = min(TIMED_ROWS, trained.rows)
    trained.rank(0, min(10, timed))
    begin_cpu = time.process_time()
    ranked = trained.rank(0, timed)
    microseconds = (time.process_time() - begin_cpu) / timed * 1e6
    ranked += trained.rank(timed, trained.rows) if trained.rows > timed else []
    labels = np.full((len(ranked), DEPTH), -1, dtype=np.int64)
    scores = np.full((len(ranked), DEPTH), -np.inf, dtype=np.float32)
    for row, pairs in enumerate(ranked):
        for rank, (label, score) in enumerate(pairs[:DEPTH]):
            labels[row, rank], scores[row, rank] = label, score
    np.savez(data.out / "ranked.npz", labels=labels, scores=scores)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {
        "train_s": seconds,
        "train_cpu_s": cpu,
        "query_us": microseconds,
        "model_bytes": size(trained.files),
        "peak_bytes": peak,
    }
    (data.out / "cost.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
