"""cut.py — answers and which of their labels are true in, the threshold that meets a goal out; and which pass it.

A tagger wants as many labels as fit, not ten. A cut is the least probability (of a calibrated model) or the least score
(of another) that a label needs: one for the whole model, or one per label, where a label has shown enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, FormatError, SettingsError
from beamwood.life.calibration import Curves

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

LEAST_SEEN = 20  # true answers of a label that its own cut needs
_GOAL = re.compile(r"\s*(precision|recall)\s*>=\s*([0-9.]+)\s*")
_PER = ("model", "label")


@dataclass(frozen=True)
class Cut:
    """A stored threshold: what it is for, what it is on, and what it reached on the rows it was chosen on.

    goal:  "f1", "precision>=0.8", "recall>=0.9". per: "model", or "label".
    on:    "probability" or "score". least: the threshold, that of labels without one of their own where per="label".
    precision, recall, f1: of all labels that pass (micro), from 0 to 1.
    """

    goal: str
    per: str
    on: str
    least: float
    rows: int
    precision: float
    recall: float
    f1: float

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, plain: Any) -> Cut | None:
        """From the description in a file, which may be damaged."""
        if plain is None:
            return None
        try:
            numbers = {name: float(plain[name]) for name in ("least", "precision", "recall", "f1")}
            cut = cls(str(plain["goal"]), plain["per"], plain["on"], rows=int(plain["rows"]), **numbers)
        except (KeyError, TypeError, ValueError):
            cut = None
        if cut is None or cut.per not in _PER or cut.on not in ("probability", "score") or np.isnan(cut.least):
            raise FormatError("The model is damaged: its cut is none. Get a fresh copy of the file.")
        return cut


def checked_goal(goal: Any) -> tuple[str, float]:
    """A goal in parts: ("f1", 0), ("precision", 0.8) or ("recall", 0.9)."""
    if isinstance(goal, str) and goal == "f1":
        return "f1", 0.0
    found = _GOAL.fullmatch(goal) if isinstance(goal, str) else None
    try:
        share = float(found[2]) if found else -1.0
    except ValueError:
        share = -1.0
    if not found or not 0 < share <= 1:
        raise SettingsError(
            f'for_ is {goal!r:.60}; expected "f1", "precision>=P" or "recall>=R" with a share above 0 and up to 1.'
        )
    return found[1], share


def checked_per(per: Any) -> str:
    """Which thresholds there are: one for the model, or one per label."""
    if not isinstance(per, str) or per not in _PER:
        raise SettingsError(f'per is {per!r:.60}; expected "model" or "label".')
    return per


def choose(values: Floats, right: Flags, true: int, goal: tuple[str, float]) -> tuple[float, float, float, float]:
    """(least, precision, recall, f1) of the threshold for answers of these values; `true` labels should be found.

    Of thresholds that meet the goal it is the one that finds most for a precision, and least for a recall.
    """
    order = np.argsort(-values, kind="stable")
    falling, hit = values[order], np.cumsum(right[order])
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True)) if len(falling) else np.zeros(0, np.int64)
    found, passed = hit[last].astype(np.float64), last + 1.0
    precision, recall = found / passed, found / max(1, true)
    f1 = 2 * found / (passed + max(1, true))
    kind, share = goal
    if kind == "f1":
        at = int(np.argmax(f1)) if len(f1) else -1
    elif kind == "precision":
        good = np.flatnonzero(precision >= share)
        at = int(good[-1]) if len(good) else -1
    else:
        good = np.flatnonzero(recall >= share)
        at = int(good[0]) if len(good) else -1
    if at < 0:
        best = float((precision if kind == "precision" else recall).max(initial=0.0))
        raise DataError(
            f"No threshold reaches {kind}>={share:g} on these rows; the best reaches {best:.3f}. Ask for less, or give "
            "a wider beam or more labels per row (k)."
        )
    return float(falling[last[at]]), float(precision[at]), float(recall[at]), float(f1[at])


def per_label(
    labels: Labels, values: Floats, right: Flags, count: int, whole: float, goal: tuple[str, float]
) -> npt.NDArray[np.float32]:
    """A threshold for each label that has enough true answers, NaN for the others: they have the model's."""
    own = np.full(count, np.nan, np.float32)
    order = np.argsort(labels, kind="stable")
    labels, values, right = labels[order], values[order], right[order]
    bounds = np.flatnonzero(np.diff(labels, prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        seen = int(right[first:last].sum())
        if seen < LEAST_SEEN:
            continue
        try:
            least = choose(values[first:last], right[first:last], seen, goal)[0]
        except DataError:
            continue
        trust = seen / (seen + LEAST_SEEN)  # few answers say little: towards the model's
        own[labels[first]] = trust * least + (1 - trust) * whole
    return own


def passing(labels: Labels, values: npt.NDArray[Any], least: float, own: npt.NDArray[np.float32] | None) -> Flags:
    """Which labels (-1: none) reach the threshold, their own where they have one."""
    bar: Any = np.float32(least)
    if own is not None:
        each = own[np.maximum(labels, 0)]
        bar = np.where(np.isnan(each), bar, each)
    return np.asarray((labels >= 0) & (values >= bar), np.bool_)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What a model knows to tell labels that apply from others: curves, a cut, and labels' own cuts (NaN: none)."""

    curves: Curves | None
    cut: Cut | None
    own: npt.NDArray[np.float32] | None

    @classmethod
    def read(cls, cut: Any, sections: Mapping[str, npt.NDArray[Any]], labels: int) -> Thresholds:
        """From a model's description and arrays, which may be damaged."""
        own = sections.get("cut/least")
        if own is not None and (own.shape != (labels,) or own.dtype != np.float32):
            raise FormatError("The model is damaged: its cuts do not fit its labels. Get a fresh copy of the file.")
        return cls(Curves.read(sections), Cut.read(cut), own)

    @property
    def least(self) -> float:
        """What labels above the cut reach: probabilities of a calibrated model, else scores; NaN: no one number."""
        if self.cut is None or self.own is not None or (self.cut.on == "probability") != (self.curves is not None):
            return np.nan
        return self.cut.least

    def probability(self, scores: Any) -> npt.NDArray[np.float32]:
        """The probability of each score that topk gave."""
        if self.curves is None:
            raise SettingsError(
                "This model is not calibrated; expected one that is. Use model = model.calibrate(X, Y) with rows that "
                "it was not trained on."
            )
        return self.curves(scores)

    def kept(self, threshold: Any, labels: Labels, scores: npt.NDArray[np.float32]) -> Flags:
        """Which labels of answers (rows x k in rank order, padded with -1) apply.

        threshold: True for the stored cut, or the least probability.
        """
        if threshold is True:
            if self.cut is None:
                raise SettingsError(
                    "threshold is True and this model has no cut; expected one. Use model = model.cut(X, Y), or give "
                    "the least probability as a number."
                )
            values = self.probability(scores) if self.cut.on == "probability" else scores
            return passing(labels, values, self.cut.least, self.own)
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not 0 <= threshold <= 1:
            raise SettingsError(
                f"threshold is {threshold!r:.60}; expected a probability from 0 to 1, or True for the stored cut."
            )
        return passing(labels, self.probability(scores), float(threshold), None)
