"""estimate.py — counts of a problem in, time, memory, file size and latency of each preset out, before any training.

The rates are fitted to our own measurements: bench/results/train_quality.json, four real sets of 20,000 to 69,000
labels, one thread of an AMD EPYC, and for `fast` a fifth set of 1.7 million labels (docs/howto/large.md). On all of
them time, size and latency are within a factor of two, as tests/sizing/test_estimate.py checks. Another processor may
differ by as much again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

from beamwood.errors import SettingsError


class Rates(NamedTuple):
    """What one preset costs."""

    training: float  # µs of one thread per label, at one row per label and one word per row
    file: float  # bytes per label, likewise
    query: float  # µs per query, at one row per label
    fixed: float  # bytes of memory that every training takes
    pair: float  # bytes of memory per pair of a row and its label


RATES = {
    "fast": Rates(9.5, 84.0, 12.0, 1.8e8, 293.0),
    "balanced": Rates(54.0, 305.0, 50.0, 2.0e8, 547.0),
    "best": Rates(103.0, 573.0, 78.0, 2.5e8, 810.0),
}
# How cost per label grows with rows per label, and with words per row.
TRAINING, FILE, QUERY = (0.77, 0.18), (0.82, 0.25), (0.10, 0.0)


@dataclass(frozen=True)
class Counts:
    """How large a problem is.

    rows: texts with labels. labels: different labels. words: terms of a text, on average. labels_per_row: likewise.
    """

    rows: float
    labels: float
    words: float
    labels_per_row: float

    def __post_init__(self) -> None:
        """Refuses what no problem can have."""
        for name, value in asdict(self).items():
            if not 0 < value < 1e12:
                raise SettingsError(f"{name} is {value:g}; expected a number above 0 and below a million millions.")
        if self.rows * self.labels_per_row < self.labels:
            raise SettingsError(
                f"rows is {self.rows:,.0f} with {self.labels_per_row:g} labels each; expected at least one row for "
                f"each of {self.labels:,.0f} labels. Count only labels that have rows."
            )

    @property
    def pairs(self) -> float:
        """A row and one of its labels."""
        return self.rows * self.labels_per_row

    @property
    def rows_per_label(self) -> float:
        return self.pairs / self.labels


@dataclass(frozen=True)
class Expected:
    """What a preset will take: seconds of one thread, bytes of memory and of the file, microseconds per query."""

    preset: str
    training_s: float
    memory: float
    file: float
    query_us: float


def expected(counts: Counts) -> list[Expected]:
    """The three presets, cheapest first."""
    return [
        Expected(
            preset,
            rates.training * _per_problem(counts, TRAINING) / 1e6,
            rates.fixed + rates.pair * counts.pairs,
            rates.file * _per_problem(counts, FILE),
            rates.query * counts.rows_per_label ** QUERY[0],
        )
        for preset, rates in RATES.items()
    ]


def advice(counts: Counts) -> list[str]:
    """What to think of first for a problem of this kind."""
    found = []
    if counts.rows_per_label < 10:
        found.append(
            f"{counts.rows_per_label:.1f} rows per label: few. Keep the default (words of labels rank too), and give "
            "--label-texts if labels have descriptions."
        )
    if counts.labels < 100:
        found.append(f"{counts.labels:,.0f} labels: a tree gains little; scikit-learn's one-vs-rest does as well.")
    if counts.words > 40:
        found.append(f"{counts.words:.0f} words per row: long. --min-df 2 --sublinear; words of labels are left out.")
    if counts.rows < 10_000:
        found.append(f"{counts.rows:,.0f} rows train in seconds: measure by --folds 5 instead of guessing.")
    return found or ["Nothing unusual: train with the defaults, then look at beamwood evaluate."]


def _per_problem(counts: Counts, growth: tuple[float, float]) -> float:
    by_rows, by_words = growth
    return float(counts.labels * counts.rows_per_label**by_rows * counts.words**by_words)
