"""head.py — the scores of trees and words in, the final score and probability of a label out: five learnt numbers.

    z = bias + trees · max(e, unlisted) + words · c          score = 1 / (1 + exp(-z))

e is the log of the trees' score, c the label's sum of words divided by that of the best label of all. The law: the
numbers `trees` and `words` are not negative, so a label's score never falls when one of its members' scores rises.
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
FOUND_BY = ("", "trees", "words", "both")  # by the bits of the members that listed a label


@dataclass(frozen=True)
class Head:
    """How the members' scores become one.

    bias, trees, words: the numbers of the formula above.
    unlisted:   what counts as e for a label that the trees do not list among their candidates; none counts less.
    rowless:    what counts as e for a label that had no row in training but has a word of the query.
    candidates: how many labels each member lists, at least: more where more are asked for.
    fitted:     what it was fitted on and what it gains there, for people.
    """

    bias: float
    trees: float
    words: float
    unlisted: float
    rowless: float
    candidates: int
    fitted: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[float, float, float, float, float]:
        """As the native side takes them."""
        return self.bias, self.trees, self.words, self.unlisted, self.rowless

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
        numbers = [given[name] for name in ("bias", "trees", "words", "unlisted", "rowless")]
        if not all(type(n) in (int, float) and math.isfinite(n) for n in numbers) or min(numbers[1:3]) < 0:
            raise ValueError("a number of the head")
        if type(given["candidates"]) is not int or not 0 < given["candidates"] < 2**31:
            raise ValueError("the head's candidates")
        bias, trees, words, unlisted, rowless = map(float, numbers)
        return cls(bias, trees, words, unlisted, rowless, given["candidates"], dict(given["fitted"]))
