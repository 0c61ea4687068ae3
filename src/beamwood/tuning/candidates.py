"""candidates.py — where a search starts in, the changes of it that are worth trying out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from beamwood.inputs.text import TextFeatures
from beamwood.training.settings import settings_for
from beamwood.training.weights import auto_cost
from beamwood.tuning.material import Material

TIMES_C = "times C"  # C as a multiple of what "auto" makes of the rows: it then fits parts of the rows and all of them


@dataclass(frozen=True)
class Candidate:
    """Changes against where the search starts: of settings, and of text features. Their axes are where they differ."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()
    text: tuple[tuple[str, Any], ...] = ()

    @property
    def axes(self) -> frozenset[str]:
        """What it changes: candidates that share nothing can be put together."""
        return frozenset(_AXIS.get(name, name) for name, _ in (*self.settings, *self.text))

    def __add__(self, other: Candidate) -> Candidate:
        return Candidate(f"{self.name}, {other.name}", self.settings + other.settings, self.text + other.text)

    def training(self, start: dict[str, Any], rows: Material) -> dict[str, Any]:
        """The arguments of `train` or `train_text` that it stands for, for these rows."""
        how = {**start, **dict(self.settings)}
        times = how.pop(TIMES_C, None)
        if times is not None:
            how["C"] = float(f"{times * auto_cost(rows_per_label(rows)):.4g}")
        if self.text:
            how["text"] = replace(start.get("text") or TextFeatures(), **dict(self.text))
        return how


_AXIS = {"max_leaf": "branching", "tree": "branching", TIMES_C: "C", "min_df": "ngram_range", "preset": "trees"}
START = Candidate("as given")


def candidates(start: dict[str, Any], is_text: bool) -> list[Candidate]:
    """Changes that helped some set of rows and hurt another; the start itself comes first.

    Left out: what takes many times as long as it gains (negatives "man"), and what no set gained from (prune, eps).
    """
    usual = settings_for(**{name: value for name, value in start.items() if name != "text"})
    settings: list[tuple[str, dict[str, Any]]] = [
        ("C x 2", {TIMES_C: 2.0}),
        ("C x 1/2", {TIMES_C: 0.5}),
        ("hinge-4", {"activation": "hinge-4"}),
        ("hinge-2", {"activation": "hinge-2"}),
        ("branching 256", {"tree": "unbalanced", "branching": 256, "max_leaf": 128}),
        ("balanced 32", {"tree": "balanced", "branching": 32, "max_leaf": 64}),
        ("rare_weight 0", {"rare_weight": 0.0}),
        ("rare_weight 10", {"rare_weight": 10.0}),
        ("trees x 2", {"trees": 2 * usual.trees}),
        ("one tree", {"trees": 1}),
        ("words", {"lexical": True}),
        ("no words", {"lexical": False}),
    ]
    text: list[tuple[str, dict[str, Any]]] = [
        ("pairs of words", {"ngram_range": (1, 2), "min_df": 2}),
        ("sublinear", {"sublinear_tf": True}),
        ("English stems", {"stem": "english"}),
    ]
    features = start.get("text")
    blocks = features is not None and (features.blocks or features.analyzer != "word" or features.tokenizer is not None)
    found = [Candidate(name, tuple(change.items())) for name, change in settings]
    if is_text and not blocks:
        found = [Candidate(name, (), tuple(change.items())) for name, change in text] + found
    return [START, *(each for each in found if _changes(each, usual, features or TextFeatures()))]


def _changes(candidate: Candidate, usual: Any, features: TextFeatures) -> bool:
    """Whether it is another training than the one that the search starts from, and one that is allowed."""
    if usual.activation.startswith("log-") and not candidate.axes.isdisjoint({"trees", "activation"}):
        return False
    pairs = [(value, usual.C if name == TIMES_C else getattr(usual, name)) for name, value in candidate.settings]
    pairs += [(value, getattr(features, name)) for name, value in candidate.text]
    return any(value != before for value, before in pairs)


def rows_per_label(rows: Material) -> float:
    """The mean over the labels that have rows."""
    if not rows.is_text:
        return float(rows.Y.nnz / max(1, len(set(rows.Y.indices.tolist()))))
    keys: Iterable[Iterable[str]] = rows.Y
    every = [key for row in keys for key in row]
    return len(every) / max(1, len(set(every)))
