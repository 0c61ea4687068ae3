"""Counts and weights in files in, times and answers of exact searchers out: bm25s, tantivy, sparse_dot_topn, scipy.

Runs in an interpreter that has them; requests and answers are lines of JSON (lines.py). Every searcher gets the same
terms: bm25s and tantivy weigh them by BM25 themselves, the others multiply by the BM25 weights that they are given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from lines import serve

K = 10
Ask = Callable[[int, int], Any]  # queries from .. to → labels of each
ASK: dict[str, Ask] = {}


def term_lists(counts: Any) -> list[list[int]]:
    """The terms of each row, as often as they are counted."""
    times = counts.data.astype(np.int64)
    terms = np.repeat(counts.indices, times)
    ends = np.concatenate([[0], np.cumsum(times)])[counts.indptr]
    return [terms[a:b].tolist() for a, b in pairwise(ends)]


def put_bm25s(documents: Any, queries: Any, backend: str, kept: Path) -> None:
    """kept: a folder where its index is kept, as millions of documents take it minutes."""
    import bm25s

    if kept.exists():
        found = bm25s.BM25.load(str(kept))
        found.backend = backend
    else:
        found = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend=backend)
        vocabulary = {str(i): i for i in range(documents.shape[1])}
        found.index((term_lists(documents), vocabulary), show_progress=False)
        found.save(str(kept), show_progress=False)
    asked = term_lists(queries)

    def ask(a: int, b: int) -> Any:
        return found.retrieve(asked[a:b], k=K, show_progress=False, n_threads=1).documents

    ASK[f"bm25s ({backend})"] = ask


def put_tantivy(documents: Any, queries: Any) -> None:
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("t", tokenizer_name="whitespace")
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=512 << 20, num_threads=1)
    for terms in term_lists(documents):
        writer.add_document(tantivy.Document(t=" ".join(map(str, terms))))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    term = tantivy.Query.term_query
    asked = [
        tantivy.Query.boolean_query([(tantivy.Occur.Should, term(index.schema, "t", str(t))) for t in terms])
        for terms in term_lists(queries)
    ]

    def ask(a: int, b: int) -> Any:
        return [[address for _, address in searcher.search(query, K, count=False).hits] for query in asked[a:b]]

    ASK["tantivy"] = ask


def put_products(weights: Any, queries: Any) -> None:
    from sparse_dot_topn import sp_matmul_topn

    turned = sp.csr_matrix(weights.T)
    rows = [queries[[i]] for i in range(queries.shape[0])]

    def topn(a: int, b: int) -> Any:
        found = sp_matmul_topn(rows[a] if b == a + 1 else queries[a:b], turned, top_n=K, sort=True, n_threads=1)
        return [found.indices[s:e] for s, e in zip(found.indptr[:-1], found.indptr[1:], strict=True)]

    def plain(a: int, b: int) -> Any:
        answers = []
        for i in range(a, b):
            scores = (rows[i] @ turned).toarray()[0]
            best = np.argpartition(-scores, K)[:K]
            answers.append(best[np.argsort(-scores[best], kind="stable")])
        return answers

    ASK["sparse_dot_topn"], ASK["scipy"] = topn, plain


def load(folder: str, searchers: list[str]) -> dict[str, Any]:
    """Builds the searchers; how long each took."""
    documents, weights, queries = (sp.load_npz(f"{folder}/{name}.npz") for name in ("counts", "weights", "queries"))
    makers: dict[str, Callable[[], None]] = {
        "bm25s (numpy)": lambda: put_bm25s(documents, queries, "numpy", Path(folder, "bm25s-numpy")),
        "bm25s (numba)": lambda: put_bm25s(documents, queries, "numba", Path(folder, "bm25s-numba")),
        "tantivy": lambda: put_tantivy(documents, queries),
        "products": lambda: put_products(weights, queries),
    }
    seconds = {}
    for name in searchers:
        begin = time.perf_counter()
        makers[name]()
        seconds[name] = time.perf_counter() - begin
    return {"searchers": sorted(ASK), "seconds": seconds}


def single(name: str, first: int, count: int) -> dict[str, Any]:
    """The median of single queries, in microseconds."""
    ask, took = ASK[name], []
    for i in range(first, first + count):
        begin = time.perf_counter_ns()
        ask(i, i + 1)
        took.append(time.perf_counter_ns() - begin)
    return {"mean_us": float(np.mean(took)) / 1e3, "median_us": float(np.median(took)) / 1e3}


def batch(name: str, first: int, count: int) -> dict[str, Any]:
    """One call for many queries, in microseconds per query."""
    begin = time.perf_counter_ns()
    ASK[name](first, first + count)
    return {"mean_us": (time.perf_counter_ns() - begin) / 1e3 / count}


def answers(name: str, count: int) -> dict[str, Any]:
    """The labels that it finds, where it names them by their numbers."""
    return {"labels": [[int(label) for label in row] for row in ASK[name](0, count)]}


if __name__ == "__main__":
    serve(load, single, batch, answers)
