"""held.py — a share and rows in, the rows to learn from out; the others are kept to measure the model on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import typer

from beamwood.errors import DataError


@dataclass
class Held:
    """Rows that a training does not see, chosen by its seed. A share of 0 holds nothing back."""

    share: float
    seed: int
    folds: int | None = None
    tell: Callable[[str], None] | None = None
    kept: tuple[Any, Any] | None = field(default=None, init=False)
    folded: Any = field(default=None, init=False)

    @classmethod
    def of(cls, share: str | None, seed: int, folds: int | None, tell: Callable[[str], None] | None) -> Held:
        """From words of the command line: 5% or 0.05, and a number of folds. tell: where to say what these found."""
        return cls(0.0 if share is None else share_of(share, "--valid"), seed, folds, tell)

    def fold(self, X: Any, Y: Any, training: dict[str, Any]) -> None:
        """Measures this training by folds of these rows, where that is asked for."""
        if self.folds is None:
            return
        from beamwood.tuning.folds import cross_validate

        # What a measure of the ranking does not need.
        left_out = ("checkpoint", "calibrate", "names", "keys", "max_memory")
        how = {name: value for name, value in training.items() if name not in left_out}
        self.folded = cross_validate(X, Y, folds=self.folds, **how)
        if self.tell is not None:
            self.tell(str(self.folded))

    def split(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """The rows to learn from, in their order; the others are kept."""
        if not self.share:
            return X, Y
        rows = len(Y) if isinstance(Y, list) else Y.shape[0]
        count = round(rows * self.share)
        if not 0 < count < rows:
            raise DataError(f"--valid holds back {count:,} of {rows:,} rows; expected some, and some to learn from.")
        held = np.zeros(rows, bool)
        held[np.random.default_rng(self.seed).permutation(rows)[:count]] = True
        self.kept = _at(X, held), _at(Y, held)
        return _at(X, ~held), _at(Y, ~held)

    def measure(self, model: Any, threads: int | None) -> Any:
        """What the model is worth on the rows that were held back; None where none were."""
        return None if self.kept is None else model.evaluate(*self.kept, threads=threads)


def share_of(word: str, option: str) -> float:
    """5% or 0.05 as a number."""
    try:
        number = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise typer.BadParameter(f"{option} is {word}; expected a share of the rows, for example 5%.")
    return number


def _at(rows: Any, chosen: Any) -> Any:
    return [rows[i] for i in np.flatnonzero(chosen)] if isinstance(rows, list) else rows[np.flatnonzero(chosen)]
