"""rowless.py — debian-search in; what labels without rows win and others lose, for several ways to rank them, out.

    python bench/lexical/rowless.py ../shared/data/debian-search          # needs scikit-learn

A tenth of the labels loses all its rows and keeps their words. Every way to rank them is fitted on held-out rows and
held-out labels of the training data, then each is shifted by some penalties: its line of both figures. Ranked are what
the trees and the words of a model list; the others are compared with a ranking that never shows a label without rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

import beamwood as bw
from beamwood.lexical.fit import Candidates, fit_head, measured, ranked_by
from beamwood.lexical.head import Head
from beamwood.lexical.member import candidates, smaller_problem
from beamwood.lexical.words import word_counts, word_weights
from beamwood.training.problem import checked_problem

SHARE, LISTED, K1 = 10, 20, 0.5
PENALTIES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
NEVER = -1e9
TABLES = {  # numbers of two facts each
    "share, best z": (0, 4),
    "place in words, best z": (2, 4),
    "share, tenth z": (0, 7),
    "share, best evidence": (0, 8),
}


def candidates_of(folder: Path, threads: int) -> tuple[Candidates, Candidates, Head, Any, Any]:
    """Candidates of test and held-out rows, the head fitted on these; which test rows have only new labels, or none."""
    names = ("X.trn", "Y.trn", "X.tst", "Y.tst")
    X, Y, asked, truth = (sp.csr_matrix(sp.load_npz(folder / f"{n}.npz"), dtype=np.float32) for n in names)
    new = np.zeros(Y.shape[1], bool)
    new[np.random.default_rng(0).permutation(Y.shape[1])[: Y.shape[1] // SHARE]] = True
    kept = sp.csr_matrix(Y[:, ~new])
    rows = np.diff(kept.indptr) > 0
    X_kept, kept = X[rows], kept[rows]
    own = sp.csr_array(word_counts(X, sp.csr_matrix(Y[:, new])))
    common: dict[str, Any] = {"preset": "balanced", "lexical": False, "threads": threads, "progress": False}
    words = word_weights(sp.csr_array(sp.vstack([word_counts(X_kept, kept), own], format="csr")), K1)
    told = truth[:, np.concatenate([np.flatnonzero(~new), np.flatnonzero(new)])]
    listed = bw.train(X_kept, kept, **common).topk(asked, LISTED)
    rowless = np.arange(Y.shape[1]) >= kept.shape[1]
    test = _candidates(listed, words, asked, told, rowless)
    empty = sp.csr_matrix((kept.shape[0], own.shape[0]), dtype=np.float32)
    texts = sp.csr_array(sp.vstack([sp.csr_array((kept.shape[1], X.shape[1]), dtype=np.float32), own], format="csr"))
    made = smaller_problem(checked_problem(X_kept, sp.hstack([kept, empty], format="csr")), texts, 0)
    assert made is not None
    small, held, described, _ = made
    words = word_weights(word_counts(small.X, small.Y, described), K1)
    listed = bw.train(small.X, small.Y, **common).topk(held.X, LISTED)
    fitting = _candidates(listed, words, held.X, held.Y, small.rows_of_label == 0)
    has_new, has_known = (np.asarray(truth[:, which].sum(axis=1)).ravel() > 0 for which in (new, ~new))
    return test, fitting, fit_head(fitting)[1], has_new & ~has_known, has_known & ~has_new


def _candidates(listed: Any, words: Any, X: Any, Y: Any, rowless: Any) -> Candidates:
    rows: Any = SimpleNamespace(X=X, Y=sp.csr_matrix(Y), rows=X.shape[0], labels=Y.shape[1], features=X.shape[1])
    return candidates(listed, "product", words, rows, rowless, 1)


def facts(c: Candidates, z: Any) -> Any:
    """Sixteen facts of each candidate: its words, its place, what is known of the best labels with rows."""
    count, known = len(c.labels_of_row), ~c.rowless

    def place(value: Any, which: Any) -> Any:
        return _place(c, value, which)

    def at(value: Any, which: Any, number: int) -> Any:
        out, here = np.full(count, -30.0), which & (place(value, which) == number)
        out[c.row[here]] = value[here]
        return out[c.row]

    def high(which: Any) -> Any:
        return np.bincount(c.row, weights=which & (c.share > 0.8), minlength=count)[c.row]

    best = np.zeros(count)
    np.maximum.at(best, c.row, c.share)
    evidence, anyone = np.maximum(c.evidence, -12), np.ones(len(c.row), bool)
    columns = [c.share, c.share / np.maximum(best[c.row], 1e-9), place(c.share, anyone), place(c.share, c.rowless)]
    columns += [at(z, known, number) for number in (0, 1, 4, 9)] + [at(evidence, known, number) for number in (0, 1)]
    columns += [high(known), high(c.rowless), at(c.share, known, 1), at(c.share, known, 9)]
    return np.stack([*columns, at(c.share, c.rowless, 0), at(c.share, c.rowless, 1)], axis=1)


def _place(c: Candidates, value: Any, which: Any) -> Any:
    """The place of each candidate among some of its row, by falling value."""
    order = np.lexsort((-np.where(which, value, -np.inf), c.row))
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - np.searchsorted(c.row, c.row[order])
    return out


def in_last_places(c: Candidates, z: Any, last: int) -> Any:
    """What ranks the best labels without rows last among ten, and all others before and behind them."""
    shown = c.rowless & (c.share > 0) & (_place(c, z, c.rowless & (c.share > 0)) < last)
    many = np.bincount(c.row[shown], minlength=len(c.labels_of_row))[c.row]
    ranked = np.where(c.rowless, NEVER, -_place(c, z, ~c.rowless))
    return np.where(shown, many - 9.5 - 0.01 * _place(c, z, shown), ranked)


def by_table(fitting: Any, right: Any, asked: Any, columns: tuple[int, int]) -> Any:
    """Logits from a table of two facts, monotone in both: the share of right labels in each of its cells."""
    edges = [np.unique(np.quantile(fitting[:, c], np.linspace(0, 1, 13)[1:-1])) for c in columns]
    shape = tuple(len(edge) + 1 for edge in edges)

    def cells(of: Any) -> Any:
        return tuple(np.searchsorted(edge, of[:, c], side="right") for edge, c in zip(edges, columns, strict=True))

    flat = np.ravel_multi_index(cells(fitting), shape)
    total, good = (np.bincount(flat, weights=w, minlength=shape[0] * shape[1]) for w in (np.ones(len(flat)), right))
    table = ((good + 5 * right.mean()) / (total + 5)).reshape(shape)
    for _ in range(20):
        for axis, rises in enumerate((columns[0] == 0, False)):
            lines = table if axis == 1 else table.T
            fit = IsotonicRegression(increasing=rises)
            lines[:] = [fit.fit_transform(np.arange(len(line)), line) for line in lines]
    return _logit(table[cells(asked)])


def _logit(p: Any) -> Any:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    test, fitting, head, only_new, only_known = candidates_of(given.data, given.threads)
    z, z_fitting = ranked_by(head, test), ranked_by(head, fitting)
    asked, given_facts = facts(test, z)[test.rowless], facts(fitting, z_fitting)
    at = fitting.rowless & (fitting.share > 0)
    boosted = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=50, random_state=0
    ).fit(given_facts[at], fitting.right[at])
    ways: dict[str, Any] = {"as fitted": z[test.rowless]}
    ways["boosted trees, 16 facts"] = _logit(boosted.predict_proba(asked)[:, 1])
    for name, columns in TABLES.items():
        ways[f"table: {name}"] = by_table(given_facts[at], fitting.right[at].astype(float), asked, columns)
    show(ways, test, z, only_new, only_known)


def said(values: Any) -> str:
    """P@1 / P@5 / recall@10."""
    return " / ".join(f"{value:.1f}" for value in values)


def show(ways: dict[str, Any], test: Candidates, z: Any, only_new: Any, only_known: Any) -> None:
    """A line per way and penalty: P@1 / P@5 / recall@10 of either kind of rows."""
    has = test.labels_of_row > 0

    def figures(scores: Any) -> tuple[Any, Any]:
        each = measured(scores, test)
        return each[only_new[has]].mean(axis=0), each[only_known[has]].mean(axis=0)

    never = figures(np.where(test.rowless, NEVER, z))[1]
    print(f"{only_new.sum():,} rows of labels without rows, {only_known.sum():,} others; these where none is shown:")
    print(said(never))
    for name, logits in ways.items():
        ranked = np.full(len(z), NEVER)
        ranked[test.rowless] = np.where(test.share[test.rowless] > 0, logits, -30.0)
        best = np.full(len(test.labels_of_row), -30.0)
        np.maximum.at(best, test.row, ranked)
        tells = roc_auc_score(only_new[only_new | only_known], best[only_new | only_known])
        print(f"{name}: tells the kinds of rows apart by an area under the curve of {tells:.3f}")
        for penalty in PENALTIES:
            new, others = figures(np.where(test.rowless, ranked - penalty, z))
            print(f"  - {penalty:<5} {said(new):<22} others {said(others - never)}", flush=True)
    for last in (1, 2):
        new, others = figures(in_last_places(test, z, last))
        print(f"in the last {last} of ten places only: {said(new)}, others {said(others - never)}")
    kinds = np.where(test.rowless, np.where(only_new[test.row], z + 50, NEVER), z)
    print(f"one who knows the kind of each row: {said(figures(kinds)[0])}")


if __name__ == "__main__":
    main()
