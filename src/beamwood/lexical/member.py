"""member.py — a checked problem in, the lexical member of its model and its head out, or why there is none.

The head is fitted on rows that the members have not seen: a third of the labels with all their rows make a smaller
problem of the same kind, and a part of its rows is held out of it. That costs about a third of the training. The law:
the same member for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.lexical.fit import CANDIDATES, Candidates, fit_head, gain_of, measured, ranked_by
from beamwood.lexical.head import MOST_SHARE, Head
from beamwood.lexical.postings import native_postings, postings_sections
from beamwood.lexical.words import K1, WEIGHTS, usual_k1, word_counts, word_weights
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
LEAST_LOST, MOST_LOST = 0.1, 0.5  # share of labels that lose their rows, where some labels have only a text
FEWEST_LABELS = 20
ERRORS = 2.0  # standard errors that chance may make: of the measure that must gain (others: one), and of k1
LONG_ROWS = 40  # features per row from which inverted lists take far longer than the trees do
MEASURES = ("precision@1", "precision@5", "recall@10")
# Where there are too few rows to fit a head on and one is asked for all the same: near what debian-search gives.
USUAL = Head(-2.5, 0.5, 3.5, -9.0, -8.0, 6.0, CANDIDATES)


@dataclass(frozen=True, eq=False)
class Member:
    """Inverted lists and a head, or none, and what was found out, for people."""

    told: dict[str, Any]
    sections: Sections = field(default_factory=dict)
    index: IndexShape | None = None
    head: Head | None = None


def lexical_member(
    problem: Problem, lexical: bool | str, texts: Any, trees_of: TreesOf, seed: int, threads: int
) -> Member:
    """The member of a problem, whose rows are as the trees see them. texts: labels x features of their own, or None."""
    if lexical == "auto" and texts is None and problem.word_rows.nnz > LONG_ROWS * problem.rows:
        return Member({"kept": False, "why": f"rows have more than {LONG_ROWS} features: words would take too long"})
    head, told = _fitted(problem, texts, trees_of, seed, threads)
    only_texts = texts is not None and bool((np.diff(texts.indptr)[problem.rows_of_label == 0] > 0).any())
    if lexical is True or only_texts:  # labels that have only a text are found by words or not at all
        told = {**told, "kept": True, "asked": lexical is True}
    if not told["kept"]:
        return Member(told)
    head = USUAL if head is None else head
    counts = word_counts(problem.word_rows, problem.Y, texts)
    told.setdefault("k1", usual_k1(problem.rows_per_label))
    words = word_weights(counts, told["k1"])
    told["words_per_label"] = float(counts.sum(dtype=np.float64) / max(1, problem.labels))  # new labels need it
    sections, index = postings_sections(words, weights=WEIGHTS, matched_only=True, threads=threads)
    return Member(told, sections, index, head)


def _fitted(
    problem: Problem, texts: Any, trees_of: TreesOf, seed: int, threads: int
) -> tuple[Head | None, dict[str, Any]]:
    """A head and what it gains on rows that its members have not seen; no head where there is too little to tell."""
    smaller = smaller_problem(problem, texts, seed)
    if smaller is None:
        return None, {"kept": False, "why": "too few rows to tell what words gain"}
    kept, held, own, known = smaller
    k1, found, head = _best_k1(trees_of(kept), kept, held, own, threads)
    before, after, error = gain_of(found.of_rows(known), head)
    told: dict[str, Any] = {
        "kept": head.words > 0 and is_gain(before, after, error),
        "k1": k1,
        "rows": int(known.sum()),
        "trees": dict(zip(MEASURES, np.round(before, 2).tolist(), strict=True)),
        "both": dict(zip(MEASURES, np.round(after, 2).tolist(), strict=True)),
        "error": dict(zip(MEASURES, np.round(error, 2).tolist(), strict=True)),
    }
    if not told["kept"]:
        told["why"] = "not every measure gains clearly"
    return head, told


def _best_k1(trees: Any, kept: Problem, held: Problem, texts: Any, threads: int) -> tuple[float, Candidates, Head]:
    """The k1 whose words rank held-out rows best with the trees; not the usual one only where chance is no reason."""
    listed = trees.topk(held.X, min(CANDIDATES, held.labels), threads=threads)
    path, rowless = trees.info()["path"], kept.rows_of_label == 0
    best: tuple[float, Candidates, Head] | None = None
    most: npt.NDArray[np.float64] = np.zeros(1)
    counts = word_counts(kept.word_rows, kept.Y, texts)
    usual = usual_k1(kept.rows_per_label)
    for k1 in (usual, *(other for other in K1 if other != usual)):
        found = candidates(listed, path, word_weights(counts, k1), held, rowless, threads)
        head = fit_head(found)[1]
        good = measured(ranked_by(head, found), found).mean(axis=1)  # of each row
        rise = good - most
        if best is None or rise.mean() > ERRORS * rise.std() / np.sqrt(len(rise)):
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

    Where some labels have only a text, as large a share of those in the smaller problem loses all its rows. None: too
    few rows.
    """
    dice = np.random.default_rng(seed)
    taught = np.flatnonzero(problem.rows_of_label > 0)
    chosen = np.sort(dice.permutation(taught)[: max(FEWEST_LABELS, len(taught) // SHARE_OF_LABELS)])
    Y = sp.csr_matrix(problem.Y[:, chosen])
    rows = np.flatnonzero(np.diff(Y.indptr))
    lost, own = _lost_rows(problem, Y, texts, chosen, dice)
    long, twice = max(1.0, problem.word_rows.nnz / max(1, problem.rows)), 2 if lost.any() else 1
    most = min(twice * MOST_ROWS, max(FEWEST_ROWS, int(twice * MOST_ENTRIES / long)))
    count = min(most, len(rows) // SHARE_OF_ROWS)
    if count < FEWEST_ROWS or len(chosen) < FEWEST_LABELS:
        return None
    held = np.sort(dice.permutation(rows)[:count])
    left = sp.csr_matrix(Y @ sp.diags_array((~lost).astype(np.float32)))
    left.eliminate_zeros()
    kept = np.setdiff1d(np.flatnonzero(np.diff(left.indptr)), held)
    known = np.asarray(Y[held][:, np.flatnonzero(lost)].sum(axis=1)).ravel() == 0
    return _rows(problem, left, kept), _rows(problem, Y, held), own, known


def _lost_rows(
    problem: Problem, Y: Any, texts: Any, chosen: Ints, dice: np.random.Generator
) -> tuple[Bools, sp.csr_array | None]:
    """(which of the chosen labels lose their rows, texts of the chosen).

    A label that loses its rows keeps its text; if it has none, it gets one: words of its rows, as many as a label has
    that has only a text.
    """
    lost = np.zeros(len(chosen), bool)
    if texts is None:
        return lost, None
    length = np.diff(texts.indptr)
    only = np.flatnonzero((problem.rows_of_label == 0) & (length > 0))
    own = sp.csr_array(texts)[chosen]
    if not len(only):
        return lost, own
    share = min(max(len(only) / problem.labels, LEAST_LOST), MOST_LOST)
    lost[dice.permutation(len(chosen))[: int(share * len(chosen))]] = True
    bare = np.flatnonzero(lost & (np.diff(own.indptr) == 0))
    words = word_counts(problem.word_rows, sp.csr_matrix(Y[:, bare]))
    places = []
    for label, (a, b) in enumerate(pairwise(words.indptr)):
        few = dice.permutation(np.arange(a, b))[: length[dice.choice(only)]]
        places.append(np.stack([np.full(len(few), bare[label]), words.indices[few]]))
    at = np.concatenate(places, axis=1) if places else np.zeros((2, 0), np.int64)
    made = sp.coo_array((np.ones(at.shape[1], np.float32), (at[0], at[1])), shape=own.shape)
    return lost, sp.csr_array(own + sp.csr_array(made))


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
    best = np.zeros(held.rows)
    np.maximum.at(best, row, np.where(rowless[label], 0.0, exact.astype(np.float64)))
    return Candidates(
        row=row,
        label=label,
        evidence=_evidence(path, pairs, _keyed(listed, held.labels), scored),
        share=np.minimum(exact.astype(np.float64) / np.maximum(best[row], 1e-30), MOST_SHARE),
        right=np.isin(
            pairs, _pairs(np.repeat(np.arange(held.rows), np.diff(held.Y.indptr)), held.Y.indices, held.labels)
        ),
        rowless=rowless[label],
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
