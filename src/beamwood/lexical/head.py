"""head.py — the scores of trees and words in, the final score and probability of a label out: six learnt numbers.

    z = bias + trees · max(e, unlisted) + words · c          score = 1 / (1 + exp(-z))

e is the log of the trees' score, c the label's sum of words divided by that of the best label with rows. Of a label
without rows the trees know nothing, and its words may be better than all others:

    z = rowless + rowless_words · min(c, 2)

The law: the numbers `trees`, `words` and `rowless_words` are not negative, so a label's score never falls when one of
its members' scores rises; and no label without rows lowers the c of one with rows.
`native/include/beamwood/members/head.hpp` works it out, in double, without the C library.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core

Floats = npt.NDArray[np.float32]

LISTED, UNLISTED, ROWLESS = 0, 1, 2  # what the trees say of a label: a score, nothing, or nothing that counts
MOST_SHARE = 2.0  # that c counts at most
FOUND_BY = ("", "trees", "words", "both")  # by the bits of the members that listed a label


_NUMBERS = ("bias", "trees", "words", "unlisted", "rowless", "rowless_words")


@dataclass(frozen=True)
class Head:
    """How the members' scores become one.

    bias, trees, words: the numbers of the formula above.
    unlisted:   what counts as e for a label that the trees do not list among their candidates; none counts less.
    rowless, rowless_words: the numbers for a label that had no row in training.
    candidates: how many labels each member lists, at least: more where more are asked for.
    fitted:     what it was fitted on and what it gains there, for people.
    """

    bias: float
    trees: float
    words: float
    unlisted: float
    rowless: float
    rowless_words: float
    candidates: int
    fitted: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[float, float, float, float, float, float]:
        """As the native side takes them."""
        return self.bias, self.trees, self.words, self.unlisted, self.rowless, self.rowless_words

    def scores(self, activation: _core.Activation, trees: Any, words: Any, best: Any, kind: Any) -> Floats:
        """The final scores of labels: see _core.head_scores."""
        out = np.empty(len(trees), np.float32)
        trees, words, best = (np.ascontiguousarray(array, np.float32) for array in (trees, words, best))
        _core.head_scores(list(self.numbers), activation, trees, words, best, np.ascontiguousarray(kind, np.uint8), out)
        return out

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, given: Any) -> Head | None:
        """From the description in a file, which may be damaged; None where there is no head."""
        if given is None:
            return None
        if "rowless_words" not in given:  # "head-1": a label without rows counted as one of this evidence
            like = given["bias"] + given["trees"] * given["rowless"]
            given = {**given, "rowless": like, "rowless_words": given["words"]}
        numbers = [given[name] for name in _NUMBERS]
        if not all(type(n) in (int, float) and math.isfinite(n) for n in numbers):
            raise ValueError("a number of the head")
        if min(numbers[1], numbers[2], numbers[5]) < 0:
            raise ValueError("a number of the head below 0")
        if type(given["candidates"]) is not int or not 0 < given["candidates"] < 2**31:
            raise ValueError("the head's candidates")
        named = dict(zip(_NUMBERS, map(float, numbers), strict=True))
        return cls(**named, candidates=given["candidates"], fitted=dict(given["fitted"]))
