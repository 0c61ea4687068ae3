"""shape.py — a model's numbers in, their description in its file out; and back. Arrays are read with these numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from beamwood.blocks.blocks import FeatureBlocks
from beamwood.errors import FormatError
from beamwood.inputs.text_block import BEFORE
from beamwood.lexical.head import Head
from beamwood.storage import notes
from beamwood.storage.activations import Activation
from beamwood.storage.build import WEIGHTS, TreeSize

USUAL_BEAM = 10  # of a model that stores none
_NOTES = ("lexical", "calibration", "baselines")  # what people read of a training


@dataclass(frozen=True)
class IndexShape:
    """The numbers that inverted lists are read with."""

    nonzeros: int
    weights: str = "f32"  # how they are stored, one of build.WEIGHTS
    matched_only: bool = False  # only labels that score above 0 are answers

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"nonzeros": self.nonzeros, "weights": self.weights, "matched_only": self.matched_only}

    @classmethod
    def read(cls, given: Any) -> IndexShape | None:
        """From the description in a file, which may be damaged; None where there are no lists."""
        if given is None:
            return None
        kind = WEIGHTS[WEIGHTS.index(given["weights"])]
        return cls(_count(given["nonzeros"], 2**63), kind, given["matched_only"] is True)


@dataclass(frozen=True)
class ModelShape:
    """The numbers that a model's arrays are read with. Saved in its file."""

    features: int
    labels: int
    activation: Activation
    trees: tuple[TreeSize, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] | None = None  # how texts become features; the vocabulary is among the arrays
    weights: str = "f32"  # how they are stored, one of build.WEIGHTS
    unit_rows: bool = False  # rows are divided by their length before anything else
    cut: dict[str, Any] | None = None  # the stored threshold, as life/cut.py describes it
    index: IndexShape | None = None  # of inverted lists; a model without trees has them
    head: Head | None = None  # of a model that has trees and lists: how their scores become one
    lexical: dict[str, Any] | None = None  # what training found out about words: kept or not, and why
    calibration: dict[str, Any] | None = None  # how good probabilities were on the rows they were learnt on
    baselines: dict[str, Any] | None = None  # what rows and answers were like in training, for monitors
    updates: dict[str, int] | None = None  # labels added and removed since it was trained, as update/history.py counts
    blocks: FeatureBlocks | None = None  # named groups of features, of a model that was trained from them
    part: dict[str, Any] | None = None  # of a model that was cut: which part this is, as shards/cut.py says
    beam: int = USUAL_BEAM  # nodes kept per layer in a search that does not say how many
    notes: dict[str, str] = field(default_factory=dict)  # what the user wrote on it: a date, which data, a comment
    tokenizer: Any = field(default=None, compare=False)  # the function that finds words, which no file holds
    encoder: Any = field(default=None, compare=False)  # the one that makes vectors of texts; no file holds it either

    @property
    def columns(self) -> int | FeatureBlocks:
        """What a query must have, for as_csr: so many features, or the named blocks that they are made of."""
        return self.features if self.blocks is None else self.blocks

    @property
    def words(self) -> int | None:
        """How many features are words, the first ones, where others are what an encoder makes of a text."""
        encoded = self.text is not None and self.text.get("encoder") is not None
        return self.blocks.each[0].columns if encoded and self.blocks is not None else None

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "features": self.features,
            "labels": self.labels,
            "activation": self.activation.name,
            "path": self.activation.path,
            "discount": self.activation.discount,
            "unit_rows": self.unit_rows,
            "trees": [{"nodes": list(tree.nodes), "nonzeros": list(tree.nonzeros)} for tree in self.trees],
            "settings": self.settings,
            "text": self.text,
            **({} if self.weights == "f32" else {"weights": self.weights}),
            **({} if self.cut is None else {"cut": self.cut}),
            **({} if self.index is None else {"index": self.index.describe()}),
            **({} if self.head is None else {"head": self.head.describe()}),
            **({} if self.lexical is None else {"lexical": self.lexical}),
            **({} if self.calibration is None else {"calibration": self.calibration}),
            **({} if self.baselines is None else {"baselines": self.baselines}),
            **({} if self.updates is None else {"updates": self.updates}),
            **({} if self.blocks is None else {"blocks": self.blocks.describe()}),
            **({} if self.part is None else {"part": self.part}),
            **({} if self.beam == USUAL_BEAM else {"beam": self.beam}),
            **({} if not self.notes else {"notes": self.notes}),
        }

    def requires(self) -> list[str]:
        """What a reader of the file must know beyond the layout: a model that uses none of it needs nothing new."""
        used = {
            "compact-1": self.weights != "f32",  # weights of 16 or 8 bits
            "discount-1": self.activation.discount != 1,
            "unit-rows-1": self.unit_rows,
            "index-1": self.index is not None,  # inverted lists
            "head-2": self.head is not None,  # answers of trees and lists together
            "text-2": self._has_new_words(),
            "encoder-1": self.words is not None,  # texts become words and vectors
            "part-1": self.part is not None,  # some of the weights only
        }
        return [feature for feature, here in used.items() if here]

    def _has_new_words(self) -> bool:
        """Whether words are found in a way that the first readers of models do not know."""
        return self.text is not None and any(not BEFORE.keys().isdisjoint(block) for block in self.text["blocks"])

    @classmethod
    def read(cls, meta: dict[str, Any]) -> ModelShape:
        """From the description in a file, which may be damaged."""
        try:
            model = meta["model"]
            trees = tuple(
                TreeSize(tuple(map(_count, t["nodes"])), tuple(map(_count, t["nonzeros"]))) for t in model["trees"]
            )
            activation = Activation.parse(model["activation"], model["path"], _real(model.get("discount", 1.0)))
            shape = cls(
                _count(model["features"]),
                _count(model["labels"]),
                activation,
                trees,
                dict(model["settings"]),
                model["text"],
                WEIGHTS[WEIGHTS.index(model.get("weights", "f32"))],
                model.get("unit_rows") is True,
                model.get("cut"),
                IndexShape.read(model.get("index")),
                Head.read(model.get("head")),
                **{name: None if model.get(name) is None else dict(model[name]) for name in _NOTES},
                updates=_updates(model.get("updates"), model["labels"]),
                blocks=FeatureBlocks.read(model.get("blocks"), model["features"]),
                part=None if model.get("part") is None else dict(model["part"]),
                beam=_beam(model.get("beam", USUAL_BEAM)),
                notes=notes.read(model.get("notes")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"The model's description is damaged ({error}). Get a fresh copy of the file.") from None
        if shape.head is not None and (not trees or shape.index is None):
            raise FormatError(
                "The model's description is damaged (a head without trees and lists). Get a fresh copy of the file."
            )
        if (not trees and shape.index is None) or not all(tree.nodes for tree in trees):
            raise FormatError(
                "The model's description is damaged (a tree without layers). Get a fresh copy of the file."
            )
        return shape


def _updates(given: Any, labels: int) -> dict[str, int] | None:
    if given is None:
        return None
    counts = {name: _count(given[name]) for name in ("trained", "added", "removed")}
    if counts["added"] > labels or counts["removed"] > counts["trained"]:
        raise ValueError("more labels added or removed than there are")
    return counts


def _beam(given: Any) -> int:
    if not _count(given, 2**31):
        raise ValueError("a beam of no nodes")
    return int(given)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _count(value: Any, limit: int = 2**32) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise ValueError(f"{value!r} is not a count")
    return value
