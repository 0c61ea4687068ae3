"""member.py — a checked problem in, the lexical member of its model and its head out, or why there is none.

The head is fitted on rows that the members have not seen: a third of the labels with all their rows make a smaller
problem of the same kind, and a part of its rows is held out of it. That costs about a third of the training. The law:
the same member for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.lexical.fit import CANDIDATES, Candidates, fit_head, gain_of, measured, ranked_by
from beamwood.lexical.head import Head
from beamwood.lexical.postings import native_postings, postings_sections
from beamwood.lexical.words import K1, WEIGHTS, word_counts, word_weights
from beamwood.storage.build import Sections
from beamwood.storage.shape import IndexShape
from beamwood.training.problem import Problem

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
TreesOf = Callable[[Problem], Any]  # a smaller problem in, a model of its trees out

SHARE_OF_LABELS = 3  # one in so many is in the smaller problem
SHARE_OF_ROWS = 10  # and one in so many of its rows is held out
MOST_ROWS, FEWEST_ROWS = 4000, 100  # that are held out
MOST_ENTRIES = 60_000  # of features in them: long rows take long to search for
SHARE_OF_UNSEEN = 4  # one row of labels that nobody has seen for so many others
FEWEST_LABELS = 20
HARDLY = 0.1  # of the mean of the measures, in percent: no difference
ERRORS = 2.0  # one measure must gain by more than so many standard errors, the others by more than one
LONG_ROWS = 40  # features per row from which inverted lists take far longer than the trees do
MEASURES = ("precision@1", "precision@5", "recall@10")
# Where there are too few rows to fit a head on and one is asked for all the same: near what debian-search gives.
USUAL = Head(-2.5, 0.5, 3.5, -9.0, -6.0, CANDIDATES)


@dataclass(frozen=True, eq=False)
class Member:
    """Inverted lists and a head, or none, and what was found out, for people."""

    told: dict[str, Any]
    sections: Sections = field(default_factory=dict)
    index: IndexShape | None = None
    head: Head | None = None


def lexical_member(
    problem: Problem, lexical: bool | str, texts: Any, trees_of: TreesOf, seed: int, threads: int, beam: int = 10
) -> Member:
    """The member of a problem, whose rows are as the trees see them. texts: labels x features of their own, or None."""
    if lexical == "auto" and texts is None and problem.X.nnz > LONG_ROWS * problem.rows:
        return Member({"kept": False, "why": f"rows have more than {LONG_ROWS} features: words would take too long"})
    head, told = _fitted(problem, texts, trees_of, seed, threads, beam)
    only_texts = texts is not None and bool((np.diff(texts.indptr)[problem.rows_of_label == 0] > 0).any())
    if lexical is True or only_texts:  # labels that have only a text are found by words or not at all
        told = {**told, "kept": True, "asked": lexical is True}
    if not told["kept"]:
        return Member(told)
    head = USUAL if head is None else head
    words = word_weights(word_counts(problem.X, problem.Y, texts), told.get("k1", K1[0]))
    sections, index = postings_sections(words, weights=WEIGHTS, matched_only=True, threads=threads)
    return Member(told, sections, index, head)


def _fitted(
    problem: Problem, texts: Any, trees_of: TreesOf, seed: int, threads: int, beam: int
) -> tuple[Head | None, dict[str, Any]]:
    """A head and what it gains on rows that its members have not seen; no head where there is too little to tell."""
    smaller = smaller_problem(problem, texts, seed)
    if smaller is None:
        return None, {"kept": False, "why": "too few rows to tell what words gain"}
    kept, held, own, known = smaller
    k1, found, head = _best_k1(trees_of(kept), kept, held, own, threads, beam)
    before, after, error = gain_of(found.of_rows(known), head.unlisted)
    told: dict[str, Any] = {
        "kept": head.words > 0 and is_gain(before, after, error),
        "k1": k1,
        "rows": int(known.sum()),
        "trees": dict(zip(MEASURES, np.round(before, 2).tolist(), strict=True)),
        "both": dict(zip(MEASURES, np.round(after, 2).tolist(), strict=True)),
        "error": dict(zip(MEASURES, np.round(error, 2).tolist(), strict=True)),
    }
    if not told["kept"]:
        told["why"] = "words gain nothing on held-out rows"
    return head, told


def _best_k1(
    trees: Any, kept: Problem, held: Problem, texts: Any, threads: int, beam: int
) -> tuple[float, Candidates, Head]:
    """The k1 whose words, with the trees, rank held-out rows best; the smallest where others are hardly better."""
    listed = trees.topk(held.X, min(CANDIDATES, held.labels), beam, threads)
    path, rowless = trees.info()["path"], kept.rows_of_label == 0
    best: tuple[float, Candidates, Head] | None = None
    most = -np.inf
    counts = word_counts(kept.X, kept.Y, texts)
    for k1 in K1:
        found = candidates(listed, path, word_weights(counts, k1), held, rowless, threads)
        head = fit_head(found)[1]
        good = float(measured(ranked_by(head, found), found).mean())
        if best is None or good > most + HARDLY:
            best, most = (k1, found, head), good
    assert best is not None
    return best


def is_gain(before: Any, after: Any, error: Any) -> bool:
    """Whether one measure rises by more than chance would have it, and all others clearly too.

    The head was fitted on fewer labels than it will rank. On winapi-seealso it kept P@1 there and cost 3.5 points of it
    among all labels, so what is merely not worse is not enough.
    """
    rise = after - before
    return bool((rise > ERRORS * error).any() and (rise > error).all())


def smaller_problem(problem: Problem, texts: Any, seed: int) -> tuple[Problem, Problem, Any, Bools] | None:
    """(rows to train on, rows held out, texts, which of the held-out rows have known labels) of a third of the labels.

    Where labels have texts, some of them lose all their rows: so are labels that nobody has seen. None: too few rows.
    """
    dice = np.random.default_rng(seed)
    chosen = np.sort(dice.permutation(problem.labels)[: max(FEWEST_LABELS, problem.labels // SHARE_OF_LABELS)])
    Y = sp.csr_matrix(problem.Y[:, chosen])
    rows = np.flatnonzero(np.diff(Y.indptr))
    long = max(1.0, problem.X.nnz / max(1, problem.rows))
    count = min(MOST_ROWS, len(rows) // SHARE_OF_ROWS, max(FEWEST_ROWS, int(MOST_ENTRIES / long)))
    if count < FEWEST_ROWS or len(chosen) < FEWEST_LABELS:
        return None
    unseen = np.zeros(problem.rows, bool)
    own = None if texts is None else sp.csr_array(texts)[chosen]
    if own is not None:
        lost = dice.permutation(len(chosen))[: len(chosen) // SHARE_OF_ROWS]
        unseen = np.asarray(Y[:, lost[np.diff(own.indptr)[lost] > 0]].sum(axis=1)).ravel() > 0
    mixed = dice.permutation(rows)
    known = mixed[~unseen[mixed]][:count]
    held = np.sort(np.concatenate([known, mixed[unseen[mixed]][: count // SHARE_OF_UNSEEN]]))
    kept = np.setdiff1d(rows[~unseen[rows]], known)
    return _rows(problem, Y, kept), _rows(problem, Y, held), own, ~unseen[held]


def _rows(problem: Problem, Y: Any, rows: Ints) -> Problem:
    weights = None if problem.row_weights is None else problem.row_weights[rows]
    return replace(problem, X=problem.X[rows], Y=Y[rows], row_weights=weights, negatives=None, label_features=None)


def candidates(
    by_trees: Any, path: str, words: Any, held: Problem, rowless: npt.NDArray[np.bool_], threads: int
) -> Candidates:
    """What both members list for the held-out rows, and what each candidate scores with each of them.

    by_trees: labels and scores that the trees list, and path how they make them.
    """
    listed, scored = by_trees
    width = listed.shape[1]
    sections, shape = postings_sections(words, weights=WEIGHTS, matched_only=True, threads=threads)
    lists = native_postings(sections, held.features, held.labels, shape)
    query = (held.X.indptr, held.X.indices, held.X.data)
    matched, sums = np.empty(listed.shape, np.int64), np.empty(listed.shape, np.float32)
    lists.topk(*query, matched, sums, threads, True, None)
    row = np.repeat(np.arange(held.rows), width)
    pairs = np.unique(np.concatenate([_pairs(row, listed, held.labels), _pairs(row, matched, held.labels)]))
    row, label = pairs // held.labels, pairs % held.labels
    exact = np.empty(len(pairs), np.float32)
    start = np.searchsorted(row, np.arange(held.rows + 1))
    lists.score(*query, start.astype(np.int64), label.astype(np.uint32), exact, threads)
    best = np.maximum(np.where(matched[:, 0] >= 0, sums[:, 0], 0.0), 1e-30).astype(np.float64)
    return Candidates(
        row=row,
        label=label,
        evidence=_evidence(path, pairs, _keyed(listed, held.labels), scored),
        share=exact.astype(np.float64) / best[row],
        right=np.isin(
            pairs, _pairs(np.repeat(np.arange(held.rows), np.diff(held.Y.indptr)), held.Y.indices, held.labels)
        ),
        rowless=rowless[label] & (exact > 0),
        labels_of_row=np.diff(held.Y.indptr).astype(np.int64),
    )


def _pairs(row: Ints, label: Any, labels: int) -> Ints:
    """Row and label as one number, for labels that there are."""
    label = np.asarray(label, np.int64).ravel()
    pairs: Ints = (row * labels + label)[label >= 0]
    return pairs


def _keyed(listed: Any, labels: int) -> Ints:
    row = np.repeat(np.arange(len(listed)), listed.shape[1])
    flat = listed.ravel()
    keyed: Ints = np.where(flat >= 0, row * labels + flat, -1)
    return keyed


def _evidence(path: str, pairs: Ints, listed: Ints, scored: Any) -> npt.NDArray[np.float64]:
    """What the trees say of each candidate: as head.hpp has it; -inf where they do not list it."""
    score = scored.ravel().astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        says = np.log(score) if path in ("product", "log-exp") else score
    says = np.where(np.isnan(says), -np.inf, says)
    there = listed >= 0
    order = np.argsort(listed[there], kind="stable")
    keys, values = listed[there][order], says[there][order]
    at = np.minimum(np.searchsorted(keys, pairs), max(0, len(keys) - 1))
    hit = keys[at] == pairs if len(keys) else np.zeros(len(pairs), bool)
    return np.where(hit, values[at] if len(keys) else -np.inf, -np.inf)
