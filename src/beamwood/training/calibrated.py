"""calibrated.py — a trained model and what it learnt from in, the same model with probabilities and a cut out.

Curves from score to probability need rows that the model has not seen, and it has seen all of them. So a second model
of the same settings learns from all but a few rows, ranks these, and is thrown away; its curves serve the first. That
costs as much time as the trees did. The law: weights and rankings of the model stay as they are.

The rows that the words' head is fitted on (lexical/member.py) do not serve: they rank a third of the labels, and what
the head takes for probabilities is up to 18 points off among all labels (docs/howto/probabilities.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from beamwood.errors import DataError, SettingsError
from beamwood.lexical.postings import postings_sections
from beamwood.lexical.words import WEIGHTS, k1_of, word_counts, word_weights
from beamwood.life.baselines import baselines_of_answers
from beamwood.life.calibration import Curves
from beamwood.life.fit import LEAST_ROWS, answers_of, with_answers
from beamwood.model import Model
from beamwood.storage.assemble import with_baselines, with_words
from beamwood.storage.parts import ModelParts
from beamwood.training.problem import Problem
from beamwood.training.trees import How

SHARE = 0.05  # of the rows, with calibrate=True
FEWEST, MOST = 2_000, 20_000  # of them, then
LARGEST = 0.5


def checked_share(calibrate: Any, rows: int) -> int:
    """How many of the rows are ranked by a model that has not seen them; 0: none, no probabilities are asked for."""
    if calibrate is None or calibrate is False:
        return 0
    if calibrate is True:
        count = min(max(int(rows * SHARE), FEWEST), MOST, rows // 5)
    elif isinstance(calibrate, (int, float, np.number)) and 0 < float(calibrate) <= LARGEST:
        count = round(rows * float(calibrate))
    else:
        raise SettingsError(
            f"calibrate is {calibrate!r:.60}; expected True, False, or a share of the rows above 0 and up to {LARGEST}."
        )
    if count < LEAST_ROWS:
        raise DataError(
            f"calibrate holds {count:,} of {rows:,} rows back; expected at least {LEAST_ROWS}. Give more rows, a "
            "larger share, or leave calibrate out."
        )
    return count


def with_probabilities(
    parts: ModelParts,
    problem: Problem,
    label_texts: Any,
    trees_of: Callable[[Problem], ModelParts],
    how: How,
) -> ModelParts:
    """The same model with curves and a cut, fitted on so many rows; problem: its rows as the trees see them."""
    mixed = np.random.default_rng(how.seed).permutation(problem.rows)
    held, rest = np.sort(mixed[: how.calibrate]), np.sort(mixed[how.calibrate :])
    smaller = replace(
        problem,
        X=problem.X[rest],
        Y=problem.Y[rest],
        row_weights=None if problem.row_weights is None else problem.row_weights[rest],
        negatives=None if problem.negatives is None else problem.negatives[rest],
    )
    shape = parts.shape
    second = trees_of(smaller)
    if shape.head is not None and shape.lexical is not None:
        words = word_weights(word_counts(smaller.X, smaller.Y, label_texts), k1_of(shape.lexical))
        lists = postings_sections(words, weights=WEIGHTS, matched_only=True, threads=how.threads)
        second = with_words(second, *lists, shape.head, shape.lexical)
    found = answers_of(Model(second), problem.X[held], problem.Y[held], how.threads)
    parts = with_answers(parts, found)
    curves = Curves.read(parts.sections)
    if curves is None or parts.shape.cut is None:
        return parts
    return with_baselines(parts, baselines_of_answers(found, curves(found.scores), parts.shape.cut["least"]))
