"""search.py — rows with labels and a budget of time in, trials of settings and the one to take out.

Successive halving: every candidate is tried on few rows, the better ones on more, the best on as many as time allows.
Each step trains where the search starts, too, and compares on the same held-out rows, row by row. The law: what is
taken is where the search started, unless a candidate is better by more than chance would have it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import BeamwoodError
from beamwood.life.truth import rows_and_all_truth
from beamwood.model import Model
from beamwood.tuning.candidates import START, Candidate, candidates
from beamwood.tuning.material import MEASURES, Material, quality

HELD, FEWEST_HELD, MOST_HELD = 0.1, 60, 4_000  # the share of the rows that is held out, and its bounds
STEPS = (1 / 9, 1 / 3, 1.0)  # of the rows of the last step
KEPT = (6, 3)  # candidates that go on to the next step
FIRST_ROWS = 3_000  # at least, of the smallest training
SURE = 2.0  # standard errors by which the mean of the measures must rise
ENOUGH = 0.3  # of the rows that the last step must have had: what helps few rows may hurt many
MORE = 3  # times the rows, in steps beyond the planned ones
WORST = 1.0  # standard errors by which no measure may fall
_DEARER = 1.25  # what a candidate takes beside the start, on average
_GROWS = 1.1  # training time by rows: their number to this power
BEAMS = (5, 10, 20, 50)  # what the start is asked with, too
_AT_MOST = 0.6  # of the budget that the training at the end may take


@dataclass(frozen=True)
class Trial:
    """One training: what it changed, on how many rows, and what it was worth beside the start on as many.

    quality: P@1, P@5 and recall@10 on the held-out rows, in percent. gain, error: of their mean beside the start, in
    points, with the standard error of the difference. seconds: of the training; microseconds: for one query; bytes: of
    the model. failed: why there is no model.
    """

    name: str
    step: int
    rows: int
    quality: dict[str, float] = field(default_factory=dict)
    gain: float = 0.0
    error: float = 0.0
    seconds: float = 0.0
    microseconds: float = 0.0
    bytes: int = 0
    failed: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class Limits:
    """What a model may take at most: microseconds per query, bytes. None: no limit."""

    microseconds: float | None = None
    bytes: float | None = None

    def allow(self, trial: Trial, share: float) -> bool:
        """Whether a model of all rows fits, of which this trial had a share: bytes grow with rows at most so fast."""
        if self.microseconds is not None and trial.microseconds > self.microseconds:
            return False
        return self.bytes is None or trial.bytes / max(share, 1e-9) <= self.bytes


@dataclass
class Search:
    """A search that can be stopped at any moment; `trials` are those that were finished."""

    material: Material
    start: dict[str, Any]
    budget: float
    seed: int
    threads: int
    limits: Limits
    tell: Callable[[Trial], None]
    clock: Callable[[], float] = time.perf_counter
    trials: list[Trial] = field(default_factory=list)
    found: dict[tuple[int, str], npt.NDArray[np.float64]] = field(default_factory=dict)  # quality of each held-out row
    by_name: dict[str, Candidate] = field(default_factory=dict)
    beams: dict[int, tuple[float, float]] = field(default_factory=dict)  # mean quality and time of the start, by beam
    interrupted: bool = False

    def __post_init__(self) -> None:
        mixed = np.random.default_rng(self.seed).permutation(self.material.rows)
        kept = min(max(int(self.material.rows * HELD), FEWEST_HELD), MOST_HELD, self.material.rows // 2)
        self.held, self._rest = self.material.at(np.sort(mixed[:kept])), mixed[kept:]
        self._begun = self.clock()

    def run(self) -> None:
        """Tries candidates out until time, candidates or the patience of whoever watches has come to an end."""
        try:
            self._run()
        except KeyboardInterrupt:
            self.interrupted = True

    def _run(self) -> None:
        waiting = candidates(self.start, self.material.is_text)
        planned = self._steps(len(waiting))
        for step in count():
            rows = planned[step] if step < len(planned) else min(MORE * planned[-1], len(self._rest))
            if step >= len(planned):  # there was more time than was expected
                if rows == planned[-1]:
                    return
                planned.append(rows)
            for candidate in waiting:
                if not self._has_time(candidate, rows):
                    break
                self._try(candidate, step, rows)
            if not self.trials or self.trials[-1].step < step:
                return
            waiting = self._better(step, KEPT[min(step, len(KEPT) - 1)])
            if len(waiting) == 1:
                return

    def _steps(self, candidates_to_try: int) -> list[int]:
        """Rows of each step, such that all of them and the training at the end fit into the budget."""
        rows = len(self._rest)
        few = min(rows, max(FIRST_ROWS, rows // 30))
        begun = self.clock()
        self._train(START, few)
        whole = (self.clock() - begun) * (rows / few) ** _GROWS
        left = self.budget - self._spent() - min(whole, _AT_MOST * self.budget)
        costs = (candidates_to_try, KEPT[0] + 2, KEPT[1] + 1)
        needed = whole * _DEARER * sum(share * n for share, n in zip(STEPS, costs, strict=True))
        last = rows * min(1.0, max(left, 0.0) / max(needed, 1e-9))
        return sorted({min(rows, max(FIRST_ROWS, int(last * share))) for share in STEPS})

    def _spent(self) -> float:
        return self.clock() - self._begun

    def _has_time(self, candidate: Candidate, rows: int) -> bool:
        """Whether a training can be expected to end before the one at the end must start."""
        before = [t for t in self.trials if t.name == candidate.name and not t.failed]
        like = before or [t for t in self.trials if t.name == START.name]
        if not like:
            return True
        most = len(self._rest)
        seconds = like[-1].seconds * (rows / like[-1].rows) ** _GROWS
        last = max((t for t in self.trials if t.name == START.name), key=lambda t: t.rows)
        whole = min(last.seconds * (most / last.rows) ** _GROWS, _AT_MOST * self.budget)
        return bool(self._spent() + seconds + whole <= self.budget)

    def _train(self, candidate: Candidate, rows: int) -> Model:
        part = self.material.at(np.sort(self._rest[:rows]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return part.trained(seed=self.seed, threads=self.threads, **candidate.training(self.start, part))

    def _try(self, candidate: Candidate, step: int, rows: int) -> None:
        begun = self.clock()
        try:
            model = self._train(candidate, rows)
        except BeamwoodError as error:
            if candidate is START:
                raise
            self._note(candidate, Trial(candidate.name, step, rows, failed=str(error)))
            return
        seconds = self.clock() - begun
        each = quality(model, self.held, None, self.threads)
        self.found[step, candidate.name] = each
        if candidate is START:
            self.beams = {
                beam: (float(quality(model, self.held, beam, self.threads).mean()), query_time(model, self.held, beam))
                for beam in BEAMS
            }
        gains = (each - self.found[step, START.name]).mean(axis=1)
        self._note(
            candidate,
            Trial(
                candidate.name,
                step,
                rows,
                dict(zip(MEASURES, each.mean(axis=0).tolist(), strict=True)),
                float(gains.mean()),
                _error(gains),
                seconds,
                query_time(model, self.held),
                int(model.info()["bytes"]),
            ),
        )

    def _note(self, candidate: Candidate, trial: Trial) -> None:
        self.by_name[candidate.name] = candidate
        self.trials.append(trial)
        self.tell(trial)

    def _of(self, step: int) -> list[Trial]:
        return [trial for trial in self.trials if trial.step == step and not trial.failed]

    def _better(self, step: int, kept: int) -> list[Candidate]:
        """The start, the best candidates that may be better than it, and the best of different kinds together."""
        tried = sorted((t for t in self._of(step) if t.name != START.name), key=lambda t: -t.gain)
        share = tried[0].rows / len(self._rest) if tried else 1.0
        promising = [t for t in tried if t.gain > -t.error and self.limits.allow(t, share)][:kept]
        best = [self.by_name[t.name] for t in promising]
        gained = [self.by_name[t.name] for t in promising if t.gain > t.error]
        together: list[Candidate] = []
        for candidate in gained:
            if together and not together[-1].axes & candidate.axes:
                together.append(together[-1] + candidate)
            elif not together:
                together.append(candidate)
        known = {candidate.name for candidate in best}
        return [START, *(each for each in together[:0:-1] if each.name not in known)][:3] + best

    def last_step(self) -> int | None:
        """The last step at which the start can be compared with something."""
        steps = [t.step for t in self.trials if not t.failed and t.name != START.name]
        return max(steps, default=None)

    def chosen(self) -> tuple[Candidate, Trial | None]:
        """What to take, and the trial that says so; the start where nothing is surely better."""
        step = self.last_step()
        if step is None:
            return START, None
        trials = self._of(step)
        share = trials[0].rows / len(self._rest)
        fits = [trial for trial in trials if self.limits.allow(trial, share)]
        start = trials[0]
        if start in fits or not fits:
            fits = [t for t in fits if t is start or self._is_sure(t)] or [start]
        best = max(fits, key=lambda trial: trial.gain)
        return self.by_name[best.name], best

    def _is_sure(self, trial: Trial) -> bool:
        """Whether the mean of the measures rises by more than chance would have it, and none falls by as much."""
        rise = self.found[trial.step, trial.name] - self.found[trial.step, START.name]
        errors = np.array([_error(rise[:, i]) for i in range(rise.shape[1])])
        if trial.rows < ENOUGH * len(self._rest):
            return False
        better = trial.gain > SURE * trial.error and bool((rise.mean(axis=0) >= -WORST * errors).all())
        return better and self.expected_gain(trial) > trial.error

    def expected_gain(self, trial: Trial) -> float:
        """The gain with all rows: a gain that became less with more rows goes on to do so (by their logarithm).

        Few rows gain by words and stems what many have learnt anyway. A candidate that was tried on one number of rows
        only, less than half of them, promises nothing.
        """
        every = len(self._rest)
        before = [t for t in self.trials if t.name == trial.name and t.rows < trial.rows and not t.failed]
        if trial.rows >= every:
            return trial.gain
        if not before:
            return trial.gain if trial.rows >= every / 2 else 0.0
        slope = (trial.gain - before[-1].gain) / np.log(trial.rows / before[-1].rows)
        return trial.gain + min(0.0, float(slope * np.log(every / trial.rows)))


def query_time(model: Model, rows: Material, beam: int | None = None, queries: int = 200) -> float:
    """Microseconds of the middle one of some queries, asked one after the other."""
    asked = rows.at(np.arange(min(queries, rows.rows)))
    X, _ = rows_and_all_truth(model, asked.X, asked.Y)
    k, taken = min(10, model.n_labels), []
    for row in [X[i : i + 1] for i in range(X.shape[0])]:
        begun = time.perf_counter_ns()
        model.topk(row, k=k, beam=beam)
        taken.append(time.perf_counter_ns() - begun)
    return float(np.median(taken)) / 1e3


def _error(values: npt.NDArray[np.float64]) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
