"""held.py — a share and rows in, the rows to learn from out; the others are kept to measure the model on."""

from __future__ import annotations

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
    kept: tuple[Any, Any] | None = field(default=None, init=False)

    @classmethod
    def of(cls, share: str | None, seed: int) -> Held:
        """From a word of the command line: 5% or 0.05."""
        if share is None:
            return cls(0.0, seed)
        try:
            number = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
        except ValueError:
            number = 0.0
        if not 0 < number < 1:
            raise typer.BadParameter(f"--valid is {share}; expected a share of the rows, for example 5%.")
        return cls(number, seed)

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


def _at(rows: Any, chosen: Any) -> Any:
    return [rows[i] for i in np.flatnonzero(chosen)] if isinstance(rows, list) else rows[np.flatnonzero(chosen)]
