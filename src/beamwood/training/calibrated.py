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
import numpy.typing as npt

from beamwood.errors import DataError, SettingsError
from beamwood.lexical.postings import postings_sections
from beamwood.lexical.words import WEIGHTS, k1_of, word_counts, word_weights
from beamwood.life.baselines import baselines_of_answers
from beamwood.life.calibration import Curves
from beamwood.life.fit import LEAST_ROWS, Judged, answers_of, with_answers
from beamwood.model import Model
from beamwood.storage.assemble import with_baselines, with_words
from beamwood.storage.parts import ModelParts
from beamwood.training.problem import Problem
from beamwood.training.trees import How

SHARE = 0.2  # of the rows, with calibrate=True: a twentieth is half as good, and the second model takes longer
MOST = 50_000  # of them, then
LARGEST = 0.5


def checked_share(calibrate: Any, rows: int) -> int:
    """How many of the rows are ranked by a model that has not seen them; 0: none, no probabilities are asked for."""
    if calibrate is None or calibrate is False:
        return 0
    if calibrate is True:
        count = min(int(rows * SHARE), MOST)
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


def rankable(held: Any, rest: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows (of labels) held back are fair to a model of the rest, and which labels it knows.

    A row is fair if one of its labels has a row in the rest, or if it has none at all. The model that has seen all rows
    knows the labels of the others as well: to count these as missed would make its probabilities too low. All rows and
    labels are taken where too few rows were left.
    """
    seen = np.zeros(held.shape[1], np.bool_)
    seen[rest.indices] = True
    own = np.diff(held.indptr)
    known = np.bincount(np.repeat(np.arange(held.shape[0]), own), seen[held.indices], held.shape[0])
    fair = (known > 0) | (own == 0)
    return (fair, seen) if fair.sum() >= LEAST_ROWS else (np.ones_like(fair), np.ones_like(seen))


def could_be_found(truth: Any, found: Judged, known: npt.NDArray[np.bool_]) -> int:
    """How many true labels a model could find that knows these: the others count where words found them."""
    others = found.right & ~known[np.maximum(found.labels, 0)]
    return int(known[truth.indices].sum() + others.sum())


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
        words = word_weights(word_counts(smaller.word_rows, smaller.Y, label_texts), k1_of(shape.lexical))
        lists = postings_sections(words, weights=WEIGHTS, matched_only=True, threads=how.threads)
        second = with_words(second, *lists, shape.head, shape.lexical)
    fair, known = rankable(problem.Y[held], smaller.Y)
    truth = problem.Y[held[fair]]
    found = answers_of(Model(second), problem.X[held[fair]], truth, how.threads)
    found = replace(found, true=could_be_found(truth, found, known))
    parts = with_answers(parts, found)
    curves = Curves.read(parts.sections)
    if curves is None or parts.shape.cut is None:
        return parts
    return with_baselines(parts, baselines_of_answers(found, curves(found.scores), parts.shape.cut["least"]))
