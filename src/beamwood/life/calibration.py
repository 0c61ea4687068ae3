"""calibration.py — scores of answers and which were right in, curves from score to probability out.

A score of 0.6 means more at the first rank than at the fifth, for one label is often the only true one. So there is a
curve for each of a few groups of ranks. Each rises with the score, and none lies above that of the ranks before it:
probabilities fall along an answer as scores do, and no ranking changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import DataError, FormatError
from beamwood.inputs.arguments import plain_array

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FIRST_RANKS = (0, 1, 2, 3, 5)  # where a group of ranks starts, counted from 0; the last has all that follow
DEPTH = 10  # ranks that curves are fitted on
_KNOTS = 64  # of first ranks, and of all
_BINS = 50
_PLACES = ("ranks", "scores", "probabilities")


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves through knots: probabilities[g] at scores, straight in between, for the ranks from ranks[g] on."""

    ranks: npt.NDArray[np.uint32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float32]

    def __call__(self, scores: Any) -> npt.NDArray[np.float32]:
        """The probability of each score of an answer, or of a matrix with an answer per row, in rank order."""
        given = plain_array(scores)
        if given.dtype.kind not in "fiu" or given.ndim not in (1, 2):
            raise DataError(
                f"scores is {_what(scores)}; expected the scores that topk gave, one row per query, in rank order."
            )
        rows = np.ascontiguousarray(np.atleast_2d(given), np.float32)
        shown = np.zeros(rows.shape, np.float32)
        if rows.size:
            ranks, knots, probabilities = self.native()
            _core.Captions(None, None, ranks, knots, probabilities).probability(rows, shown)
        return shown.reshape(given.shape)

    def native(self) -> tuple[npt.NDArray[Any], ...]:
        """The three arrays as native code takes them."""
        return self.ranks, self.scores, np.ascontiguousarray(self.probabilities).reshape(-1)

    def sections(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that a model's file holds."""
        return {f"calibration/{name}": array for name, array in zip(_PLACES, self.native(), strict=True)}

    @classmethod
    def read(cls, sections: Mapping[str, npt.NDArray[Any]]) -> Curves | None:
        """From a model's arrays, which may be damaged; None where it has none."""
        arrays = [sections.get(f"calibration/{name}") for name in _PLACES]
        if all(array is None for array in arrays):
            return None
        if not _fits(*arrays):
            raise FormatError("The model is damaged: its calibration is no set of curves. Get a fresh copy.")
        ranks, scores, probabilities = arrays
        return cls(ranks, scores, probabilities.reshape(len(ranks), len(scores)))  # type: ignore[arg-type, union-attr]


NONE = (np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(0, np.float32))  # of a model without curves


def _fits(ranks: Any, scores: Any, probabilities: Any) -> bool:
    """Whether three arrays of a file are curves that rise with the score and fall with the rank."""
    if ranks is None or scores is None or probabilities is None:
        return False
    kinds = (ranks.dtype, scores.dtype, probabilities.dtype) == (np.uint32, np.float32, np.float32)
    if not kinds or ranks.ndim != 1 or scores.ndim != 1 or probabilities.size != ranks.size * scores.size:
        return False
    table = probabilities.reshape(len(ranks), len(scores))
    return bool(
        ranks.size
        and scores.size
        and ranks[0] == 0
        and (np.diff(ranks.astype(np.int64)) > 0).all()
        and np.isfinite(scores).all()
        and (np.diff(scores) > 0).all()
        and ((table >= 0) & (table <= 1)).all()
        and (np.diff(table, axis=1) >= 0).all()
        and (np.diff(table, axis=0) <= 0).all()
    )


def fit_curves(scores: npt.NDArray[np.float32], right: Flags) -> Curves:
    """The curves of answers in rank order (rows x k) and which of their labels are true."""
    finite = np.isfinite(scores)
    if not finite.any():
        raise DataError("No row has an answer to calibrate on; expected rows whose features the model knows.")
    knots = _knots(scores, finite)
    starts = [first for first in FIRST_RANKS if first < scores.shape[1]]
    table: list[Floats] = []
    for group, first in enumerate(starts):
        last = starts[group + 1] if group + 1 < len(starts) else scores.shape[1]
        seen = finite[:, first:last]
        if not seen.any():
            table.append(table[-1])
            continue
        curve = _rising(scores[:, first:last][seen].astype(np.float64), right[:, first:last][seen], knots)
        table.append(np.minimum(curve, table[-1]) if table else curve)
    return Curves(np.array(starts, np.uint32), knots, np.array(table, np.float32))


def _knots(scores: npt.NDArray[np.float32], finite: Flags) -> npt.NDArray[np.float32]:
    """As close where first ranks score, which are a tenth of all and what people look at most, as where all do."""
    share = np.linspace(0, 1, _KNOTS)
    parts = [of.astype(np.float64) for of in (scores[:, 0][finite[:, 0]], scores[finite]) if len(of)]
    return np.unique(np.concatenate([np.quantile(part, share) for part in parts]).astype(np.float32))


def fitted(scores: npt.NDArray[np.float32], right: Flags) -> tuple[Curves, Calibration]:
    """Curves of all rows, and how good curves of one half of them are on the other half."""
    curves = fit_curves(scores, right)
    shown = curves(scores)
    even = np.arange(len(scores)) % 2 == 0
    for half, other in ((even, ~even), (~even, even)):
        if np.isfinite(scores[half]).any():
            shown[other] = fit_curves(scores[half], right[half])(scores[other])
    return curves, measured(scores, shown, right)


def _rising(scores: Floats, right: Flags, knots: npt.NDArray[np.float32]) -> Floats:
    """The share of true labels by score at the knots: means of equal parts, made to rise, straight in between."""
    order = np.argsort(scores, kind="stable")
    scores, right = scores[order], right[order]
    part = np.arange(len(scores)) * _BINS // len(scores)
    same = np.searchsorted(scores, scores, side="left")  # equal scores belong to the part of the first of them
    _, part, count = np.unique(part[same], return_inverse=True, return_counts=True)
    share = np.bincount(part, right) / count
    middle = np.bincount(part, scores) / count
    heights, sizes = _pooled(share, count)
    centres = np.add.reduceat(middle * count, np.r_[0, np.cumsum(sizes)[:-1]])
    weights = np.add.reduceat(count, np.r_[0, np.cumsum(sizes)[:-1]])
    return np.interp(knots.astype(np.float64), centres / weights, heights)


def _pooled(share: Floats, count: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Neighbours that fall are pooled until all rise (pool adjacent violators): heights, and parts in each."""
    heights: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for part in range(len(share)):
        height, weight, size = float(share[part]), float(count[part]), 1
        while heights and heights[-1] >= height:
            both = weights[-1] + weight
            height = (heights.pop() * weights.pop() + height * weight) / both
            weight, size = both, size + sizes.pop()
        heights.append(height)
        weights.append(weight)
        sizes.append(size)
    return np.array(heights), np.array(sizes, np.int64)


@dataclass(frozen=True)
class Calibration:
    """How far scores and probabilities were from the truth on the rows that the curves were fitted on, in points.

    Each half of the rows is measured with curves of the other half. rows: how many rows. For each depth (1 and 5):
    expected calibration error in 15 parts of equal width, and the Brier score (mean squared error), of the raw scores
    held between 0 and 1 and of the probabilities.
    """

    rows: int
    ece_raw: dict[int, float]
    ece: dict[int, float]
    brier_raw: dict[int, float]
    brier: dict[int, float]

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        plain: dict[str, Any] = {"rows": self.rows}
        for name in ("ece_raw", "ece", "brier_raw", "brier"):
            plain[name] = {str(k): round(value, 6) for k, value in getattr(self, name).items()}
        return plain

    @classmethod
    def read(cls, plain: Any) -> Calibration | None:
        """From the description in a file, which may be damaged: None where it says nothing."""
        try:
            numbers = {
                name: {int(k): float(value) for k, value in plain[name].items()}
                for name in ("ece_raw", "ece", "brier_raw", "brier")
            }
            return cls(int(plain["rows"]), **numbers) if len({tuple(each) for each in numbers.values()}) == 1 else None
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return None

    def __str__(self) -> str:
        lines = [f"calibrated on {self.rows:,} rows        score   probability"]
        for k in self.ece:
            lines.append(f"calibration error at {k}, points  {self.ece_raw[k]:6.2f}        {self.ece[k]:6.2f}")
            lines.append(f"Brier score at {k}               {self.brier_raw[k]:7.4f}       {self.brier[k]:7.4f}")
        return "\n".join(lines)


def measured(scores: Any, probabilities: Any, right: Flags, depths: tuple[int, ...] = (1, 5)) -> Calibration:
    """How good probabilities of answers in rank order are, beside the scores themselves."""
    raw = np.clip(np.nan_to_num(np.asarray(scores, np.float64), neginf=0.0), 0.0, 1.0)
    there = np.isfinite(scores)

    def each(measure: Any, shown: Floats) -> dict[int, float]:
        return {k: measure(shown[:, :k][there[:, :k]], right[:, :k][there[:, :k]]) for k in depths}

    shown = np.asarray(probabilities, np.float64)
    return Calibration(
        len(raw), each(calibration_error, raw), each(calibration_error, shown), each(_brier, raw), each(_brier, shown)
    )


def calibration_error(probabilities: Floats, right: Flags, parts: int = 15) -> float:
    """How far the mean probability is from the share of true labels, in points: over parts of equal width, by size."""
    if not len(probabilities):
        return 0.0
    part = np.minimum((probabilities * parts).astype(np.int64), parts - 1)
    gap = np.abs(np.bincount(part, probabilities - right, parts))
    return float(100.0 * gap.sum() / len(probabilities))


def _brier(probabilities: Floats, right: Flags) -> float:
    return float(np.mean((probabilities - right) ** 2)) if len(probabilities) else 0.0


def _what(value: Any) -> str:
    if type(value) is np.ndarray:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return f"a {type(value).__name__}"
