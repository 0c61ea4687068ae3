"""fit.py — a model and rows with their true labels in, the parts of that model with curves or a cut out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from beamwood.life import calibration, cut
from beamwood.life.calibration import Calibration, Curves
from beamwood.life.truth import Known, relevant, rows_and_truth
from beamwood.storage.parts import ModelParts

LEAST_ROWS = 100
DEPTH_OF_CUT = 100  # labels per row that a cut is chosen on


class Labelled(Known, Protocol):
    """A model that answers, and knows its labels by their keys."""

    def topk(self, X: Any, k: int = 10, *, threads: int = 1) -> tuple[Any, Any]: ...


@dataclass(frozen=True, eq=False)
class Judged:
    """What a model ranks for rows: labels and scores (rows x k), which are true, and how many true ones there are."""

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    right: npt.NDArray[np.bool_]
    true: int


def answers_of(model: Labelled, rows: Any, truth: Any, threads: int, k: int = DEPTH_OF_CUT) -> Judged:
    """The answers to canonical rows."""
    labels, scores = model.topk(rows, k=min(k, model.n_labels), threads=threads)
    return Judged(labels, scores, relevant(labels, truth), int(truth.nnz))


def calibrated(model: Labelled, parts: ModelParts, X: Any, Y: Any, threads: int) -> tuple[ModelParts, Calibration]:
    """The same model with curves from score to probability, fitted on these rows; and how good they are there."""
    found = answers_of(model, *rows_and_truth(model, X, Y, LEAST_ROWS), threads, calibration.DEPTH)
    return _with_curves_of(parts, found)


def with_answers(parts: ModelParts, found: Judged) -> ModelParts:
    """The same model with curves, and with a cut for f1, fitted on answers of its like, if there are any."""
    if not np.isfinite(found.scores).any():
        return parts
    return _with_cut_of(_with_curves_of(parts, found)[0], found, "f1", "model")


def _with_curves_of(parts: ModelParts, found: Judged) -> tuple[ModelParts, Calibration]:
    depth = calibration.DEPTH
    curves, report = calibration.fitted(found.scores[:, :depth], found.right[:, :depth])
    parts = with_curves(parts, curves)
    return ModelParts(replace(parts.shape, calibration=report.describe()), parts.sections), report


def with_curves(parts: ModelParts, curves: Curves) -> ModelParts:
    """The same with other curves; a cut on the old ones means nothing any more and goes."""
    kept = {n: a for n, a in parts.sections.items() if not n.startswith(("calibration/", "cut/"))}
    return ModelParts(replace(parts.shape, cut=None, calibration=None), kept | curves.sections())


def with_cut(
    model: Labelled, parts: ModelParts, X: Any, Y: Any, for_: Any, per: Any, k: int, threads: int
) -> ModelParts:
    """The same model with the threshold that meets a goal on these rows."""
    cut.checked_goal(for_), cut.checked_per(per)
    return _with_cut_of(parts, answers_of(model, *rows_and_truth(model, X, Y, LEAST_ROWS), threads, k), for_, per)


def _with_cut_of(parts: ModelParts, found: Judged, for_: Any, per: Any) -> ModelParts:
    goal, per = cut.checked_goal(for_), cut.checked_per(per)
    curves = Curves.read(parts.sections)
    on = "score" if curves is None else "probability"
    shown = found.scores if curves is None else curves(found.scores)
    there = found.labels >= 0
    labels, right, kept = found.labels[there], found.right[there], shown[there]
    values: npt.NDArray[np.float64] = kept.astype(np.float64)
    least, precision, recall, f1 = cut.choose(values, right, found.true, goal)
    sections = {n: a for n, a in parts.sections.items() if not n.startswith("cut/")}
    if per == "label":
        own = cut.per_label(labels, values, right, parts.shape.labels, least, goal)
        sections["cut/least"] = own
        precision, recall, f1 = _reached(right, cut.passing(labels, kept, least, own), found.true)
    chosen = cut.Cut(str(for_).replace(" ", ""), per, on, least, len(found.labels), precision, recall, f1)
    return ModelParts(replace(parts.shape, cut=chosen.describe()), sections)


def _reached(right: Any, passed: Any, true: int) -> tuple[float, float, float]:
    """Precision, recall and f1 of the labels that pass."""
    hits, count = float(right[passed].sum()), float(passed.sum())
    return hits / max(1.0, count), hits / max(1, true), 2 * hits / max(1.0, count + true)
