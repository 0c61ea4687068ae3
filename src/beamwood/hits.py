"""hits.py — ranked labels in, one answer for people out: keys, names and scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from beamwood import _core
from beamwood.show.answers import hits_html, many_html
from beamwood.show.frames import frame_of, hit_columns


class Hit(NamedTuple):
    """One label of an answer. probability: that it is a right one, where the model is calibrated."""

    label: int
    key: str
    name: str
    score: float
    probability: float | None = None
    found_by: str | None = None  # "trees", "words" or "both", of a model that has both; None of others


class Hits(list[Hit]):
    """The hits of one text, best first. `known_terms` is how many terms of the text the model knows: when it is 0
    the list is empty, for a model that knows none of the words has nothing to say about them. `nanoseconds` is what the
    engine took for it, where it was asked for this text alone."""

    def __init__(self, hits: Iterable[Hit] = (), known_terms: int = 0, nanoseconds: int = 0) -> None:
        super().__init__(hits)
        self.known_terms, self.nanoseconds = known_terms, nanoseconds

    def __repr__(self) -> str:
        """The list, or why there is none."""
        return super().__repr__() if self or self.known_terms else "[] (no known words)"

    def to_frame(self, kind: str = "pandas") -> Any:
        """A data frame with a row per hit: rank, label, key, name, score and, where known, probability and found_by.

        kind: "pandas", "polars" or "arrow"; that library must be installed.
        """
        return frame_of(hit_columns([self]), kind)

    def _repr_html_(self) -> str:
        return hits_html(self, self.known_terms)


class Answers(list[Hits]):
    """The hits of many texts, in their order."""

    def __init__(self, answers: Iterable[Hits] = (), texts: Sequence[str] = ()) -> None:
        super().__init__(answers)
        self._texts = texts

    def to_frame(self, kind: str = "pandas") -> Any:
        """All hits below each other: the number of the query, its text, and what `Hits.to_frame` has.

        kind: "pandas", "polars" or "arrow"; that library must be installed.
        """
        query = [number for number, hits in enumerate(self) for _ in hits]
        text = [self._texts[number] for number in query]
        return frame_of({"query": query, "text": text, **hit_columns(self)}, kind)

    def _repr_html_(self) -> str:
        return many_html(self._texts, self)


class JsonAnswer(NamedTuple):
    """An answer as the fields of a JSON object without its braces, and the nanoseconds that the engine took for it.

    Of a search: `hits`, a list of objects with label, key, name, score (null: not finite) and, of a calibrated model,
    probability, of one that has trees and words found_by; and `known_terms`.
    """

    fields: bytes
    nanoseconds: int


def hits_above(found: list[Any], min_score: float | None, known_terms: int, nanoseconds: int = 0) -> Hits:
    """The hits that score at least min_score."""
    hits = Hits((Hit(*hit) for hit in found), known_terms, nanoseconds)
    if min_score is not None:
        hits[:] = [hit for hit in hits if hit.score >= min_score]
    return hits


def many_hits(
    labels: Any, scores: Any, found: Any, known: list[int], captions: Any, min_score: float | None
) -> Iterator[Hits]:
    """The hits of each row of an answer, of what topk gave; rows of which nothing is known have none."""
    for i, count in enumerate(known):
        rows = _core.hits(labels[i], scores[i], captions, None if found is None else found[i]) if count else []
        yield hits_above(rows, min_score, count)


def json_of_rows(answer: tuple[Any, Any, Any], known: Any, captions: Any, least: float) -> bytes:
    """The hits of each row of an answer (labels, scores, members) as JSON objects, with commas between them."""
    labels, scores, found = answer
    return bytes(_core.rows_json(labels, scores, known, captions, least, found))
