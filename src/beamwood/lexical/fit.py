"""fit.py — candidates of held-out rows with their members' scores in, the numbers of a head and what it gains out.

The law: plain numpy on one thread, the same numbers for any number of threads. The head is a logistic regression with
two inputs, each of whose weights is held at 0 or above; what counts for labels that the trees do not list is tried out.
Labels without rows have a regression of their own: of them the trees know nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from beamwood.lexical.head import Head

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CANDIDATES = 20  # that each member lists: on held-out rows 32, 50 and 100 rank no better
SHARES = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7)  # of the listed, that say less than what is tried for the others
RANKS = (1, 5, 10)
RIDGE = 1e-6
FEWEST_RIGHT = 5  # labels without rows that are right, to fit their numbers on


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of held-out rows, one after the other.

    row, label:    which row each belongs to, rising, and its number.
    evidence:      the log score of the trees, -inf where they do not list it.
    share:         of the sum of words of the best label with rows, at most MOST_SHARE.
    right:         whether the row has the label.
    rowless:       whether the label had no rows.
    labels_of_row: how many labels each row has, candidates or not.
    """

    row: Ints
    label: Ints
    evidence: Doubles
    share: Doubles
    right: Bools
    rowless: Bools
    labels_of_row: Ints

    def of_rows(self, keep: Bools) -> Candidates:
        """Those of some rows."""
        at = keep[self.row]
        fields = {n: getattr(self, n)[at] for n in ("row", "label", "evidence", "share", "right", "rowless")}
        return replace(self, **fields, labels_of_row=np.where(keep, self.labels_of_row, 0))


def fit_head(found: Candidates) -> tuple[float, Head]:
    """(loss, head): the least over what may count for labels that are not listed."""
    loss, head = _fit_known(found)
    rowless, words = fit_rowless(found, head)
    return loss, replace(head, rowless=rowless, rowless_words=words)


def _fit_known(found: Candidates) -> tuple[float, Head]:
    listed = np.sort(found.evidence[found.evidence > -np.inf])
    floors = [float(listed[int(share * len(listed))]) for share in SHARES] if len(listed) else [-1.0]
    return min((fit_at(found, floor) for floor in sorted(set(floors))), key=lambda fit: fit[0])


def fit_at(found: Candidates, floor: float) -> tuple[float, Head]:
    """(loss, head) with this number for labels that the trees do not list."""
    known = ~found.rowless
    listed, share = np.maximum(found.evidence[known], floor), found.share[known]
    loss, weights = logistic(np.stack([np.ones(len(listed)), listed, share]), found.right[known], free=(0,))
    bias, trees, words = weights.tolist()
    return loss, Head(bias, trees, words, floor, bias + trees * floor, words, CANDIDATES)


def fit_rowless(found: Candidates, head: Head) -> tuple[float, float]:
    """rowless and rowless_words: fitted where enough labels without rows are right, else as if they were not listed."""
    at = found.rowless & (found.share > 0)
    share, right = found.share[at], found.right[at]
    if right.sum() < FEWEST_RIGHT:
        return head.rowless, head.rowless_words
    weights = logistic(np.stack([np.ones(len(share)), share]), right, free=(0,))[1]
    return float(weights[0]), float(weights[1])


def logistic(columns: Doubles, right: Bools, free: tuple[int, ...]) -> tuple[float, Doubles]:
    """(loss, weights) of a logistic regression by Newton's method; weights that are not free stay at 0 or above."""
    count = len(columns)
    active = list(range(count))
    while True:
        weights = np.zeros(count)
        weights[active] = _newton(columns[active], right)
        below = [i for i in active if i not in free and weights[i] < 0]
        if not below:
            return _loss(columns, right, weights), weights
        active = [i for i in active if i not in below]


def _newton(columns: Doubles, right: Bools) -> Doubles:
    y = right.astype(np.float64)
    weights = np.zeros(len(columns))
    share = np.clip(y.mean() if y.size else 0.0, 1e-6, 1 - 1e-6)
    weights[0] = np.log(share / (1 - share))
    loss = _loss(columns, right, weights)
    for _ in range(50):
        z = _weighed(columns, weights)
        p = 1.0 / (1.0 + np.exp(-np.clip(z, -700, 700)))
        slope = np.array([float(np.sum(column * (p - y))) for column in columns]) + RIDGE * weights
        spread = columns * (p * (1 - p))
        half = [[float(np.sum(spread[i] * columns[j])) for j in range(i + 1)] for i in range(len(columns))]
        curve = np.array([[half[max(i, j)][min(i, j)] for j in range(len(columns))] for i in range(len(columns))])
        step = np.linalg.solve(curve + RIDGE * np.eye(len(columns)), slope)
        for _ in range(30):  # a whole step may lead too far: half of it, and half of that
            after = _loss(columns, right, weights - step)
            if after < loss:
                break
            step = step / 2
        if not after < loss - 1e-7 * loss:
            break
        weights, loss = weights - step, after
    return weights


def _weighed(columns: Doubles, weights: Doubles) -> Doubles:
    z = np.zeros(columns.shape[1])
    for column, weight in zip(columns, weights.tolist(), strict=True):
        z += column * weight
    return z


def _loss(columns: Doubles, right: Bools, weights: Doubles) -> float:
    z = _weighed(columns, weights)
    return float(np.sum(np.logaddexp(0.0, z) - np.where(right, z, 0.0)))


def ranked_by(head: Head | None, found: Candidates) -> Doubles:
    """What ranks candidates: the head's z, or the trees only (None), which list nothing else."""
    if head is None:
        return found.evidence
    z = head.bias + head.trees * np.maximum(found.evidence, head.unlisted) + head.words * found.share
    return np.where(found.rowless, head.rowless + head.rowless_words * found.share, z)


def measured(score: Doubles, found: Candidates) -> Doubles:
    """rows x 3: precision at 1 and 5 and recall at 10 of each row that has labels, in percent."""
    order = np.lexsort((found.label, -score, found.row))
    order = order[score[order] > -np.inf]
    row, right = found.row[order], found.right[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    count = len(found.labels_of_row)
    hits = [np.bincount(row[right & (rank < at)], minlength=count) for at in RANKS]
    has = found.labels_of_row > 0
    return 100.0 * np.stack([hits[0], hits[1] / 5, hits[2] / np.maximum(found.labels_of_row, 1)], axis=1)[has]


def gain_of(found: Candidates, fitted: Head) -> tuple[Doubles, Doubles, Doubles]:
    """P@1, P@5 and recall@10 of the trees only and with words, and standard errors of the differences.

    Each half of the rows is ranked by the head of the other. fitted: on all rows; what counts for labels that are not
    listed, or have no rows, is taken from it.
    """
    rows = np.arange(len(found.labels_of_row))
    halves = rows % 2 == 0, rows % 2 == 1
    alone, both = [], []
    for fitting, ranking in (halves, halves[::-1]):
        head, rest = fit_at(found.of_rows(fitting), fitted.unlisted)[1], found.of_rows(ranking)
        head = replace(head, rowless=fitted.rowless, rowless_words=fitted.rowless_words)
        alone.append(measured(ranked_by(None, rest), rest))
        both.append(measured(ranked_by(head, rest), rest))
    before, after = np.concatenate(alone), np.concatenate(both)
    error = (after - before).std(axis=0) / np.sqrt(max(1, len(after)))
    return before.mean(axis=0), after.mean(axis=0), error
