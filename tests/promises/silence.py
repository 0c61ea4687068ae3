"""silence.py — a model that was cut, some of whose shards do not answer, in; whether it says so out (promise 20).

Without a cluster: what asks the shards fails, falls silent or mixes builds, at random. A whole answer is that of the
model or an error that names the shards; a partial one names them too, holds no label of theirs, and is the model's own
list without their labels.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw
from beamwood.shards.gather import ShardsMissing
from beamwood.shards.part import OtherBuild, Part
from beamwood.shards.wire import Ask, Told
from promises.outcome import Outcome, apart, read, show

LABELS, FULL = 120, 20_000
WAYS = ("late", "lost", "not asked", "another build")


def silent(folder: Path, size: float, seed: int, case: int | None = None) -> Outcome:
    """Questions to models that were cut in 2 to 6, each with shards of its own that do not answer."""
    numbers = range(max(100, int(FULL * size))) if case is None else range(case, case + 1)
    given = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return read(apart("silence", folder, seed, numbers.start, numbers.stop, given=given))


def main(folder: str, seed: str, first: str, end: str) -> None:
    """Inside a process of its own."""
    outcome = Outcome(full=FULL)
    cuts = [Cut(Path(folder), kind, shards) for kind in Cut.KINDS for shards in (2, 3, 6)]
    for number in range(int(first), int(end)):
        failure = cuts[number % len(cuts)].asked(random.Random(f"{seed} {number}"))
        outcome.add(f"silence {number} (seed {seed}): {failure}" if failure else None)
    show(outcome)


class Cut:
    """One model and its parts, and what asks them."""

    KINDS: tuple[dict[str, Any], ...] = ({"trees": 1}, {"trees": 2}, {"trees": 2, "lexical": True, "unit_rows": True})

    def __init__(self, folder: Path, kind: dict[str, Any], shards: int) -> None:
        rng = np.random.default_rng(0)
        self.X: Any = sp.random_array((600, 200), density=0.04, rng=rng, dtype=np.float32, format="csr")
        Y = sp.csr_array(np.eye(LABELS, dtype=np.float32)[np.arange(600) % LABELS])
        self.model = bw.train(self.X, Y, "fast", progress=False, threads=1, **kind)
        made = bw.shard(self.model, folder / f"{len(kind)}-{kind['trees']}-{shards}", shards)
        self.parts = [Part.open(made.path(number)) for number in range(shards)]
        self.cut = bw.Sharded(made.folder, send=self.send)
        self.owner = self.cut.parts.sections["part/owner"]
        self.words = bool(kind.get("lexical"))
        self.fate: dict[int, str] = {}
        self.hit: set[int] = set()

    def send(self, asks: Mapping[int, Ask]) -> Mapping[int, Told | BaseException]:
        """What each shard tells, or does not."""
        answers: dict[int, Told | BaseException] = {}
        for shard, ask in asks.items():
            way = self.fate.get(shard)
            if way is not None:
                self.hit.add(shard)
            if way == "late":
                answers[shard] = TimeoutError()
            elif way == "lost":
                answers[shard] = ConnectionError()
            elif way != "not asked":
                told = self.parts[shard].tell(ask)
                answers[shard] = replace(told, build="0-3") if way == "another build" else told
        return answers

    def asked(self, dice: random.Random) -> str | None:
        """What is wrong with the answers to some questions while some shards fail."""
        ways = WAYS if dice.random() < 0.2 else WAYS[:3]
        self.fate = {shard: dice.choice(ways) for shard in range(len(self.parts)) if dice.random() < 0.3}
        self.hit = set()
        X = self.X[sorted(dice.sample(range(self.X.shape[0]), dice.choice((1, 1, 5))))]
        k, beam = dice.choice((1, 5, 20)), dice.choice((1, 3, 10, 50))
        try:
            found = self.cut.topk(X, k=k, beam=beam)
            failure = None if same(found, self.model.topk(X, k=k, beam=beam)) and not self.hit else "taken for whole"
        except OtherBuild:
            return None if "another build" in self.fate.values() else "another build, which there is not"
        except ShardsMissing as error:
            gone = {shard for shard in self.hit if self.fate[shard] != "another build"}
            failure = None if set(error.missing) == gone else f"names {error.missing}, not {sorted(gone)}"
        return failure or self.partly(X, k, beam)

    def partly(self, X: Any, k: int, beam: int) -> str | None:
        """The same of partial answers."""
        self.hit = set()
        asked = self.cut.partial()
        try:
            labels, scores = asked.model.topk(X, k=k, beam=beam)
        except OtherBuild:
            return None if "another build" in self.fate.values() else "another build, which there is not"
        if set(asked.coverage.missing) != self.hit:
            return f"declares {asked.coverage.missing}, not {sorted(self.hit)}"
        gone = np.isin(self.owner, sorted(self.hit))
        if asked.coverage.labels != LABELS - gone.sum():
            return f"declares {asked.coverage.labels} labels, not {LABELS - gone.sum()}"
        if gone[labels[labels >= 0]].any():
            return "a label of a shard that is missing"
        if not self.hit:
            right = same((labels, scores), self.model.topk(X, k=k, beam=beam))
            return None if right else "not the model's answer, though no shard is missing"
        return None if self.words else self.without(gone, X, k, beam, (labels, scores))

    def without(self, gone: Any, X: Any, k: int, beam: int, found: Any) -> str | None:
        """Whether an answer of trees is the model's own without some labels. Words are ranked by the best of all."""
        every = self.model.topk(X, k=LABELS, beam=beam)
        for row, there in enumerate(found[0] >= 0):
            kept = (every[0][row] >= 0) & ~gone[every[0][row]]
            expected = [part[row][kept][:k] for part in every]
            if not same([part[row][there] for part in found], expected):
                return "a partial answer is not the model's without the labels of missing shards"
        return None


def same(one: Any, other: Any) -> bool:
    """Bit for bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))
