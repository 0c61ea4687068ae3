"""tune.py — rows with labels and a budget in, the settings that rank them best and their model out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from beamwood.errors import DataError, SettingsError
from beamwood.inputs.arguments import workers
from beamwood.inputs.text import TextFeatures
from beamwood.model import Model
from beamwood.training.progress import progress_for
from beamwood.training.settings import settings_for
from beamwood.tuning.candidates import START
from beamwood.tuning.material import Material, check_training
from beamwood.tuning.search import Limits, Search, Trial
from beamwood.tuning.table import teller

FEWEST_ROWS = 200
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found. `str()` says it in words.

    model:       trained on all rows with what was chosen; None where that was not asked for.
    training:    the arguments of `train` or `train_text` that were chosen.
    changed:     what they change against where the search started, in words.
    gain, error: points of the mean of P@1, P@5 and recall@10 on held-out rows, and their standard error.
    trials:      all that was tried, in order. beams: (mean quality in percent, microseconds per query) of where the
                 search started, asked with other beams.
    interrupted: whether the search was stopped by hand.
    """

    model: Model | None
    training: dict[str, Any]
    changed: str
    gain: float
    error: float
    trials: tuple[Trial, ...]
    held: int
    seconds: float
    beams: dict[int, tuple[float, float]] = field(default_factory=dict)
    interrupted: bool = False

    def frontier(self) -> tuple[Trial, ...]:
        """Of the last step, the trials that no other one beats in quality and in time per query at once."""
        last = max((t.step for t in self.trials if not t.failed), default=0)
        rest = sorted((t for t in self.trials if t.step == last and not t.failed), key=lambda t: t.microseconds)
        found: list[Trial] = []
        for trial in rest:
            if not found or trial.gain > found[-1].gain:
                found.append(trial)
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        text = self.training.get("text")
        return {
            "changed": self.changed,
            "training": {**self.training, "text": None if text is None else _plain_text(text)},
            "gain": self.gain,
            "error": self.error,
            "held_rows": self.held,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "trials": [trial.to_dict() for trial in self.trials],
            "frontier": [trial.name for trial in self.frontier()],
            "beams": {str(beam): {"quality": q, "microseconds": us} for beam, (q, us) in self.beams.items()},
        }

    def __str__(self) -> str:
        tried = len({trial.name for trial in self.trials})
        if self.changed == START.name:
            head = f"nothing surely better was found among {tried:,} candidates; the settings stay as given"
        else:
            head = f"{self.changed}: {self.gain:+.2f} ± {self.error:.2f} points on {self.held:,} held-out rows"
        lines = [f"{head} ({self.seconds:,.0f} s{', stopped by hand' if self.interrupted else ''})"]
        for trial in self.frontier():
            lines.append(
                f"  {trial.microseconds:7.0f} µs per query, {trial.bytes / 1e6:7.1f} MB, {trial.gain:+6.2f} points"
                f"  {trial.name}"
            )
        for beam, (mean, took) in self.beams.items():
            lines.append(f"  beam {beam}: {mean:.2f} percent, {took:.0f} µs per query")
        return "\n".join(lines)


def tune(
    X: Any,
    Y: Any,
    budget: float | str = 600.0,
    *,
    preset: str = "balanced",
    text: TextFeatures | None = None,
    seed: int = 0,
    threads: int | None = None,
    target_us: float | None = None,
    target_mb: float | None = None,
    train: bool = True,
    progress: bool | Callable[[Trial], None] = True,
    **settings: Any,
) -> Tuned:
    """Searches settings and text features that rank held-out rows better, and trains with those it found.

    X, Y:     matrices as for `train`, or texts and lists of label keys as for `train_text`.
    budget:   seconds, or "90s", "10m", "2h": of the search and of the training at its end. Ctrl-C ends the search
              earlier, with what is best so far.
    preset, text, settings: where the search starts; that is kept unless something is better by more than two standard
              errors on the held-out rows.
    target_us, target_mb: what one query may take, and the model; candidates beyond are left out.
    train:    whether to train on all rows at the end.
    progress: show a line per trial, or a function that gets each `Trial`.
    """
    begun = time.perf_counter()
    material = Material.of(X, Y)
    if material.rows < FEWEST_ROWS:
        raise DataError(f"X has {material.rows:,} rows; expected at least {FEWEST_ROWS} to hold some of them out.")
    check_training({**settings, "text": text}, material.is_text)
    settings_for(preset, **settings)
    if text is not None and not isinstance(text, TextFeatures):
        raise SettingsError(f"text is a {type(text).__name__}; expected TextFeatures(…), or None.")
    start: dict[str, Any] = {"preset": preset, **settings, **({} if text is None else {"text": text})}
    limits = Limits(_limit(target_us, "target_us"), None if target_mb is None else 1e6 * _limit(target_mb, "target_mb"))  # type: ignore[operator]
    with teller(progress) as tell:
        search = Search(material, start, seconds_of(budget), seed, workers(threads), limits, tell)
        search.run()
    chosen, trial = search.chosen()
    training = chosen.training(start, material)
    model = material.trained(seed=seed, threads=threads, progress=_bar(progress), **training) if train else None
    return Tuned(
        model,
        training,
        chosen.name,
        0.0 if trial is None else trial.gain,
        0.0 if trial is None else trial.error,
        tuple(search.trials),
        search.held.rows,
        time.perf_counter() - begun,
        search.beams,
        search.interrupted,
    )


def _bar(progress: Any) -> Any:
    return progress_for(progress) if isinstance(progress, bool) else False


def seconds_of(budget: Any) -> float:
    """Seconds of a number, or of words such as 90s, 10m and 2h."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh]?)\s*", budget) if isinstance(budget, str) else None
    if found:
        seconds = float(found[1]) * _UNITS[found[2]]
    elif isinstance(budget, (int, float, np.number)) and not isinstance(budget, bool):
        seconds = float(budget)
    else:
        seconds = 0.0
    if not 0 < seconds < np.inf:
        raise SettingsError(f"budget is {budget!r:.40}; expected seconds, or for example '90s', '10m' or '2h'.")
    return seconds


def _limit(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < np.inf:
        raise SettingsError(f"{name} is {value!r:.40}; expected a number above 0, or None.")
    return float(value)


def _plain_text(text: TextFeatures) -> dict[str, Any]:
    """What a text block changes against the usual one."""
    usual = TextFeatures()
    changed = {
        name: getattr(text, name)
        for name in ("ngram_range", "min_df", "sublinear_tf", "stem")
        if getattr(text, name) != getattr(usual, name)
    }
    return changed if text.encoder is None else {**changed, "encoder": text.facts()["encoder"]}
