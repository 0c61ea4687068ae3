"""The fit of a head: numbers that made the data are found again, and a member that says nothing counts nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from beamwood.lexical.fit import Candidates, fit_at, fit_head, gain_of, measured, ranked_by
from beamwood.lexical.member import is_gain, smaller_problem
from beamwood.training.problem import checked_problem

ROWS, EACH = 2_000, 20


def made(trees: float, words: float, seed: int = 1) -> Candidates:
    """Candidates whose labels are right as a head with these numbers says; few are, as in life."""
    rng = np.random.default_rng(seed)
    count = ROWS * EACH
    evidence, share = -12.0 * rng.random(count), rng.random(count)
    z = -2.9 + trees * evidence + words * share
    right = rng.random(count) < 1.0 / (1.0 + np.exp(-z))
    row = np.repeat(np.arange(ROWS), EACH)
    labels_of_row = np.maximum(np.bincount(row[right], minlength=ROWS), 1)
    return Candidates(row, np.tile(np.arange(EACH), ROWS), evidence, share, right, np.zeros(count, bool), labels_of_row)


@pytest.mark.parametrize(("trees", "words"), [(0.5, 4.0), (1.0, 2.0), (0.3, 0.5)])
def test_the_numbers_that_made_the_data_are_found_again(trees: float, words: float) -> None:
    head = fit_at(made(trees, words), -12.0)[1]
    assert head.trees == pytest.approx(trees, rel=0.15)
    assert head.words == pytest.approx(words, rel=0.15, abs=0.15)


def test_a_member_that_is_wrong_counts_nothing() -> None:
    head = fit_at(made(0.5, -1.0), -12.0)[1]
    assert head.words == 0
    assert head.trees > 0


def test_words_that_help_are_a_gain_and_words_that_say_nothing_are_none() -> None:
    for words, gains in ((4.0, True), (0.0, False)):
        found = made(0.5, words)
        head = fit_head(found)[1]
        assert is_gain(*gain_of(found, head)) is gains
    better = measured(ranked_by(head, found), found).mean(axis=0)
    assert (better > 0).all()


def test_the_numbers_of_labels_without_rows_are_found_again() -> None:
    found = made(0.5, 4.0)
    rng = np.random.default_rng(3)
    rowless = rng.random(len(found.row)) < 0.2
    share = np.where(rowless, 2.0 * found.share, found.share)
    chance = 1.0 / (1.0 + np.exp(8.0 - 6.0 * share))
    right = np.where(rowless, rng.random(len(share)) < chance, found.right)
    head = fit_head(replace(found, share=share, right=right, rowless=rowless))[1]
    assert head.rowless == pytest.approx(-8.0, abs=0.5)
    assert head.rowless_words == pytest.approx(6.0, abs=0.5)
    assert head.words == pytest.approx(4.0, rel=0.15)


def test_labels_lose_their_rows_where_some_have_only_a_text() -> None:
    rng = np.random.default_rng(5)
    rows, labels, words = 6_000, 300, 400
    X = sp.random_array((rows, words), density=0.02, format="csr", rng=rng, dtype=np.float32)
    Y = sp.csr_array((np.ones(rows, np.float32), (np.arange(rows), rng.integers(0, labels - 60, rows))), (rows, labels))
    texts = sp.csr_array(sp.random_array((labels, words), density=0.01, rng=rng, dtype=np.float32))
    only = sp.csr_array(sp.diags_array((np.arange(labels) >= labels - 60).astype(np.float32)) @ texts)
    only.eliminate_zeros()
    for given in (only, texts):
        smaller = smaller_problem(checked_problem(X, Y), given, seed=0)
        assert smaller is not None
        kept, held, own, known = smaller
        lost = kept.rows_of_label == 0
        assert lost.mean() == pytest.approx(60 / labels, abs=0.05)
        assert (np.diff(own.indptr)[lost] > 0).mean() > 0.9
        assert known.tolist() == [not lost[held.Y.indices[a:b]].any() for a, b in pairwise(held.Y.indptr)]
        assert 0.1 < 1 - known.mean() < 0.3
