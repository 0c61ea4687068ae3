"""shards.py — models and queries in, whether shards give their answers bit for bit out: real data, many beams, filters.

    python tests/campaigns/cluster/shards.py [--queries 20000] [--models a.bw b.bw …] [--rows a.npz b.npz …]

Without models, one of trees and words is trained on each of: the library records that come with the project, and two
sets made of chance. Every query is asked with every number of shards; beams and filters take turns, batch by batch.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw

BEAMS = (1, 2, 3, 5, 10, 20, 50, 100)
SHARDS = (2, 3, 8)
BATCH = 256


def trained() -> Iterator[tuple[str, bw.Model, Any]]:
    """A model of each set, and its queries."""
    found = bw.datasets.load("library-subjects")
    model = bw.train_text(found.train_texts, found.train_labels, lexical=True, progress=False)
    assert model.text is not None
    yield "library-subjects", model, model.text.transform(found.test_texts)
    for seed, more in ((1, {"trees": 3, "lexical": True}), (2, {"trees": 1, "tree": "huffman"})):
        rng = np.random.default_rng(seed)
        X: Any = sp.random_array((20_000, 5000), density=0.004, rng=rng, dtype=np.float32, format="csr")
        label: Any = X @ rng.random((5000, 1)).astype(np.float32)
        Y = sp.csr_array((np.ones(20_000, np.float32), (np.arange(20_000), np.argsort(label[:, 0]) % 3000)))
        yield f"chance {seed}", bw.train(X, Y, "balanced", progress=False, **more), X


def given(models: list[Path], rows: list[Path]) -> Iterator[tuple[str, bw.Model, Any]]:
    """Models and queries from files."""
    for path, queries in zip(models, rows, strict=True):
        model = bw.load(path)
        if queries.suffix == ".npz":
            yield path.stem, model, bw.read_npz(queries, str(queries).replace("X.", "Y.")).X
        else:
            assert model.text is not None
            yield path.stem, model, model.text.transform(bw.read_records(queries).texts)


def compared(name: str, model: bw.Model, X: Any, count: int, shards: int, folder: Path) -> int:
    """How many queries were asked; an AssertionError says which differ."""
    bw.shard(model, folder / f"{name}-{shards}", shards)
    cut = bw.Sharded(folder / f"{name}-{shards}")
    chosen = np.random.default_rng(0).permutation(model.n_labels)
    filters = [None, chosen[: model.n_labels // 2], chosen[: max(5, model.n_labels // 1000)]]
    whole_filters = [None if allow is None else model.filter(allow) for allow in filters]
    cut_filters = [None if allow is None else cut.filter(allow) for allow in filters]
    turns = itertools.cycle(itertools.product(BEAMS, range(len(filters)), (10, 1, 30)))
    asked = 0
    while asked < count:
        size = min(BATCH, count - asked)
        some = X[np.arange(asked, asked + size) % X.shape[0]]
        beam, number, k = next(turns)
        expected = model.found(some, k, beam, filter=whole_filters[number])
        got = cut.found(some, k, beam, filter=cut_filters[number])
        for one, other in zip(expected, got, strict=True):
            assert (one is None) == (other is None), (name, shards)
            if one is not None and other is not None:
                assert one.tobytes() == other.tobytes(), f"{name}: {shards} shards, beam {beam}, k {k}, filter {number}"
        asked += size
    return asked


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=20_000, help="of each set")
    parser.add_argument("--models", type=Path, nargs="*")
    parser.add_argument("--rows", type=Path, nargs="*", help="of each: X.tst.npz, or texts as JSONL")
    args = parser.parse_args()
    for name, model, X in given(args.models, args.rows) if args.models else trained():
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            for shards in SHARDS:
                asked = compared(name, model, X, args.queries, shards, Path(folder))
                print(f"{name}: {asked:,} queries, {shards} shards, beams {BEAMS[0]} to {BEAMS[-1]}: equal", flush=True)
        print(f"{name}: {time.perf_counter() - begun:.0f} s")
    sys.exit(0)


if __name__ == "__main__":
    main()
