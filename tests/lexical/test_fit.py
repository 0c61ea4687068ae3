"""The fit of a head: numbers that made the data are found again, and a member that says nothing counts nothing."""

from __future__ import annotations

import numpy as np
import pytest

from beamwood.lexical.fit import Candidates, fit_at, fit_head, gain_of, measured, ranked_by
from beamwood.lexical.member import is_gain

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
        assert is_gain(*gain_of(found, head.unlisted)) is gains
    better = measured(ranked_by(head, found), found).mean(axis=0)
    assert (better > 0).all()
