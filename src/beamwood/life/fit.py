"""fit.py — a model and rows with their true labels in, the parts of that model with curves or a cut out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from beamwood.life import calibration, cut
from beamwood.life.calibration import Calibration, Curves
from beamwood.life.truth import Known, relevant, rows_and_truth
from beamwood.storage.parts import ModelParts

LEAST_ROWS = 100


class Labelled(Known, Protocol):
    """A model that answers, and knows its labels by their keys."""

    def topk(self, X: Any, k: int = 10, *, threads: int = 1) -> tuple[Any, Any]: ...


def calibrated(model: Labelled, parts: ModelParts, X: Any, Y: Any, threads: int) -> tuple[ModelParts, Calibration]:
    """The same model with curves from score to probability, fitted on these rows; and how good they are there."""
    rows, truth = rows_and_truth(model, X, Y, LEAST_ROWS)
    labels, scores = model.topk(rows, k=min(calibration.DEPTH, model.n_labels), threads=threads)
    right = relevant(labels, truth)
    curves = calibration.fit_curves(scores, right)
    return with_curves(parts, curves), calibration.measured(scores, curves(scores), right)


def with_curves(parts: ModelParts, curves: Curves) -> ModelParts:
    """The same with other curves; a cut on the old ones means nothing any more and goes."""
    kept = {n: a for n, a in parts.sections.items() if not n.startswith(("calibration/", "cut/"))}
    return ModelParts(replace(parts.shape, cut=None), kept | curves.sections())


def with_cut(
    model: Labelled, parts: ModelParts, X: Any, Y: Any, for_: Any, per: Any, k: int, threads: int
) -> ModelParts:
    """The same model with the threshold that meets a goal on these rows."""
    goal, per = cut.checked_goal(for_), cut.checked_per(per)
    rows, truth = rows_and_truth(model, X, Y, LEAST_ROWS)
    labels, scores = model.topk(rows, k=min(k, model.n_labels), threads=threads)
    curves = Curves.read(parts.sections)
    on = "score" if curves is None else "probability"
    values = scores if curves is None else curves(scores)
    there = labels >= 0
    right = relevant(labels, truth)[there]
    found: npt.NDArray[np.float64] = values[there].astype(np.float64)
    least, precision, recall, f1 = cut.choose(found, right, truth.nnz, goal)
    sections = {n: a for n, a in parts.sections.items() if not n.startswith("cut/")}
    if per == "label":
        own = cut.per_label(labels[there], found, right, model.n_labels, least, goal)
        sections["cut/least"] = own
        precision, recall, f1 = _reached(right, cut.passing(labels[there], values[there], least, own), truth.nnz)
    chosen = cut.Cut(str(for_).replace(" ", ""), per, on, least, rows.shape[0], precision, recall, f1)
    return ModelParts(replace(parts.shape, cut=chosen.describe()), sections)


def _reached(right: Any, passed: Any, true: int) -> tuple[float, float, float]:
    """Precision, recall and f1 of the labels that pass."""
    hits, count = float(right[passed].sum()), float(passed.sum())
    return hits / max(1.0, count), hits / max(1, true), 2 * hits / max(1.0, count + true)
