"""One answer for people: ranked labels with their keys, names and scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Hit(NamedTuple):
    """One label of an answer."""

    label: int
    key: str
    name: str
    score: float


class Hits(list[Hit]):
    """The hits of one text, best first. `known_terms` is how many terms of the text the model knows: when it is 0
    the list is empty, for a model that knows none of the words has nothing to say about them."""

    def __init__(self, hits: Iterable[Hit] = (), known_terms: int = 0) -> None:
        super().__init__(hits)
        self.known_terms = known_terms

    def __repr__(self) -> str:
        """The list, or why there is none."""
        return super().__repr__() if self or self.known_terms else "[] (no known words)"
