"""described.py — the parts of a model in, what it knows beside its weights out: sizes, keys and names, its words."""

from __future__ import annotations

from collections.abc import Iterable

import scipy.sparse as sp

from beamwood.blocks.blocks import FeatureBlocks
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import positive
from beamwood.inputs.text import FittedText
from beamwood.storage.label_strings import LabelStrings
from beamwood.storage.parts import ModelParts


class Described:
    """What a model says of itself and of its labels, and how its texts become rows."""

    def __init__(self, parts: ModelParts) -> None:
        self._parts = parts
        self._strings = LabelStrings(parts)
        self._text = parts.text()

    @property
    def n_features(self) -> int:
        """The number of features d: columns of X."""
        return self._parts.shape.features

    @property
    def n_labels(self) -> int:
        """The number of labels L."""
        return self._parts.shape.labels

    @property
    def blocks(self) -> FeatureBlocks | None:
        """The named blocks that its features are made of, if it was trained from such: names, columns, weights."""
        return self._parts.shape.blocks

    @property
    def columns(self) -> int | FeatureBlocks:
        """What rows must have: so many features, or those blocks."""
        return self._parts.shape.columns

    def __len__(self) -> int:
        """The number of labels."""
        return self.n_labels

    def __bool__(self) -> bool:
        """A model is there, however few labels it has."""
        return True

    @property
    def keys(self) -> list[str]:
        """The key of every label, in order; built anew at each call."""
        return [self._strings.key(label) for label in range(self.n_labels)]

    @property
    def names(self) -> list[str]:
        """What people read for every label, in order; built anew at each call."""
        return [self._strings.name(label) for label in range(self.n_labels)]

    @property
    def has_keys(self) -> bool:
        """Whether labels are called by keys; else by their numbers."""
        return self._strings.has_keys

    @property
    def beam(self) -> int:
        """How many nodes per layer a search keeps that does not say how many."""
        return self._parts.shape.beam

    def _beam(self, given: int | None) -> int:
        return self._parts.shape.beam if given is None else positive(given, "beam")

    def key(self, label: int) -> str:
        """The unique key of a label; its number when the model has no keys."""
        return self._strings.key(label)

    def name(self, label: int) -> str:
        """What people read for a label; its key when the model has no names."""
        return self._strings.name(label)

    def label_of(self, key: str) -> int | None:
        """The label with this key, or None."""
        return self._strings.find(key)

    @property
    def text(self) -> FittedText | None:
        """The text features the model was trained with, if it was trained from text."""
        return self._text

    @property
    def has_text(self) -> bool:
        """Whether it takes texts: `search`, `search_many` and `transform` need that."""
        return self._text is not None

    def transform(self, texts: Iterable[str], threads: int | None = None) -> sp.csr_array:
        """Texts to rows, as `search_many` makes them: what `topk`, `predict` and `score` take. Needs words."""
        return self._fitted_text().transform(texts, threads)

    def _fitted_text(self) -> FittedText:
        if self._text is None:
            raise SettingsError(
                "This model was trained from numbers and knows no words. Use topk with a matrix, train with "
                "train_text, or give it the text features that made its columns: model.with_text(features)."
            )
        return self._text
