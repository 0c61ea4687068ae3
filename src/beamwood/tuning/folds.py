"""folds.py — rows with labels in, how well models that have not seen them rank them out, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import workers
from beamwood.metrics import Metrics, checked_ranks
from beamwood.training.progress import Progress, progress_for
from beamwood.tuning.material import Material, check_training

_MEASURED = ("precision", "recall", "ndcg")


@dataclass(frozen=True)
class CrossValidation:
    """What each fold was worth, and their means with standard errors, from 0 to 1. `str()` gives a table in percent.

    folds: the measures of each part of the rows, by a model that was trained on all other parts.
    mean, errors: {"precision": {1: 0.35, …}, "recall": …, "ndcg": …}; errors are those of the means over folds.
    """

    folds: tuple[Metrics, ...]
    mean: dict[str, dict[int, float]]
    errors: dict[str, dict[int, float]]

    def as_dict(self) -> dict[str, float]:
        """One flat mapping, e.g. {"precision@1": 0.5, "precision@1 error": 0.01, …}: for a log or a JSON file."""
        flat: dict[str, float] = {}
        for name, values in self.mean.items():
            for k, value in values.items():
                flat |= {f"{name}@{k}": value, f"{name}@{k} error": self.errors[name][k]}
        return flat

    def __str__(self) -> str:
        depths = list(self.mean["precision"])
        lines = [f"{'at':<10}" + "".join(f"{k:>15}" for k in depths)]
        for name, values in self.mean.items():
            cells = (f"{100 * values[k]:.2f} ± {100 * self.errors[name][k]:.2f}" for k in depths)
            lines.append(f"{name:<10}" + "".join(f"{cell:>15}" for cell in cells))
        rows = sum(fold.rows for fold in self.folds)
        return "\n".join([*lines, f"percent, mean and standard error of {len(self.folds)} folds of {rows:,} rows"])


def cross_validate(
    X: Any,
    Y: Any,
    *,
    folds: int = 5,
    at: Sequence[int] = (1, 3, 5, 10),
    beam: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Progress = True,
    **training: Any,
) -> CrossValidation:
    """How good a training is on rows that it has not seen: each of k parts is ranked by a model of the other parts.

    X, Y:     matrices as for `train`, or texts and lists of label keys as for `train_text`. Labels that the other
              parts lack count as missed.
    folds:    parts, chosen by the seed, which trainings start from too.
    at, beam: as in `Model.evaluate`.
    training: preset, settings, and what else `train` or `train_text` takes, but what is given per row.
    """
    material, depths = Material.of(X, Y), checked_ranks(at)
    check_training(training, material.is_text)
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise SettingsError(f"folds is {folds!r:.40}; expected a whole number from 2 on.")
    if folds > material.rows:
        raise DataError(f"folds is {folds:,} for {material.rows:,} rows; expected at most one per row.")
    count, shown = workers(threads), progress_for(progress)
    parts = np.array_split(np.random.default_rng(seed).permutation(material.rows), folds)
    found = []
    for number, part in enumerate(parts):
        held, rest = np.sort(part), np.sort(np.concatenate([p for i, p in enumerate(parts) if i != number]))
        with shown.stage(f"fold {number + 1}/{folds}", len(rest)):
            model = material.at(rest).trained(seed=seed, threads=count, **training)
            asked = material.at(held)
            found.append(model.evaluate(asked.X, asked.Y, depths, beam=beam, threads=count))
    values = {name: np.array([[getattr(m, name)[k] for k in depths] for m in found]) for name in _MEASURED}
    return CrossValidation(
        tuple(found),
        {name: dict(zip(depths, each.mean(axis=0).tolist(), strict=True)) for name, each in values.items()},
        {
            name: dict(zip(depths, (each.std(axis=0, ddof=1) / np.sqrt(folds)).tolist(), strict=True))
            for name, each in values.items()
        },
    )
