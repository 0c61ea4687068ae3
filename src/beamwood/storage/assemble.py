"""assemble.py — layers, names and text features in, the parts of a model out; and parts with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from beamwood.errors import DataError
from beamwood.inputs.arguments import as_strings, cores, plain_array, positive
from beamwood.inputs.matrices import is_sparse
from beamwood.inputs.text import FittedText
from beamwood.lexical.head import Head
from beamwood.storage import notes
from beamwood.storage.activations import Activation
from beamwood.storage.build import Sections, TreeSize, build_tree
from beamwood.storage.layers import Layer
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import USUAL_BEAM, IndexShape, ModelShape
from beamwood.storage.strings import StringTable, string_sections

# What belongs to the trees and lists of one model, and to how probable its answers are: arrays, and parts of the shape.
_OF_ANSWERS = ("tree", "index/", "calibration/", "cut/")
_NO_ANSWERS: dict[str, Any] = dict.fromkeys(("index", "head", "lexical", "cut", "calibration", "baselines"))


@dataclass
class Assembly:
    """A model that is being put together: trees come one after the other, and their layers can be dropped then."""

    activation: Activation
    unit_rows: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sections: Sections = field(default_factory=dict)  # names, keys and what else belongs to no tree may be in it
    sizes: list[TreeSize] = field(default_factory=list)
    features: int = 0
    labels: int = 0
    beam: int = USUAL_BEAM

    def add(self, layers: Sequence[Layer]) -> None:
        """Builds the arrays of the next tree."""
        if not isinstance(layers, (list, tuple)) or not all(isinstance(layer, Layer) for layer in layers):
            raise DataError(f"layers is a {type(layers).__name__}; expected a list of beamwood.Layer.")
        if not layers:
            raise DataError("The list of layers is empty; expected at least one. Give the layers from the top down.")
        if not self.sizes:
            top = layers[0].weights
            two = is_sparse(top) or (isinstance(top, np.ndarray) and top.ndim == 2)
            self.features = int(top.shape[0]) if two else 0
        arrays, size, self.labels = build_tree(layers, len(self.sizes), self.features, cores())
        self.sections |= arrays
        self.sizes.append(size)

    def last(self) -> tuple[Sections, TreeSize]:
        """The arrays and the size of the tree that was added last."""
        own = f"tree{len(self.sizes) - 1}/"
        return {name: array for name, array in self.sections.items() if name.startswith(own)}, self.sizes[-1]

    def put_aside(self, place: Callable[[Sections], Sections] | None) -> None:
        """Lets the arrays of the last tree lie elsewhere than in memory, if there is a place for them."""
        if place is not None:
            self.sections |= place({name: array for name, array in self.last()[0].items() if array.size})

    def restore(self, arrays: Sections, size: TreeSize, features: int, labels: int) -> None:
        """The next tree, from what `last` gave when it was added to a model like this one."""
        self.sections |= arrays
        self.sizes.append(size)
        self.features, self.labels = features, labels

    def parts(self) -> ModelParts:
        """The model of all trees so far."""
        shape = ModelShape(
            self.features,
            self.labels,
            self.activation,
            tuple(self.sizes),
            self.settings,
            unit_rows=self.unit_rows,
            beam=self.beam,
        )
        return ModelParts(shape, self.sections)


def from_layers(
    layers: Sequence[Layer],
    activation: Activation,
    unit_rows: bool,
    names: Sequence[str] | None,
    keys: Sequence[str] | None,
    settings: dict[str, Any],
) -> ModelParts:
    """A model of one tree."""
    assembly = Assembly(activation, bool(unit_rows), settings)
    assembly.add(layers)
    assembly.sections |= string_sections(names, keys, assembly.labels)
    return assembly.parts()


def ensemble(models: Sequence[ModelParts], settings: dict[str, Any] | None) -> ModelParts:
    """One model of the trees of all, without words or probabilities; names, keys, text features are the first one's."""
    if not models:
        raise DataError("The list of models is empty; expected at least one. Give the models whose trees to join.")
    first = models[0].shape
    sections: Sections = {}
    sizes: list[TreeSize] = []
    for number, model in enumerate(models):
        _check_alike(model.shape, first, number)
        for tree, size in enumerate(model.shape.trees):
            sections |= model.tree_sections(tree, len(sizes))
            sizes.append(size)
    sections |= {n: a for n, a in models[0].sections.items() if not n.startswith(_OF_ANSWERS)}
    own = first.settings if settings is None else settings
    whole = replace(first, trees=tuple(sizes), settings=own, **_NO_ANSWERS)
    return ModelParts(whole, sections)


def _check_alike(shape: ModelShape, first: ModelShape, number: int) -> None:
    """Whether trees of these shapes can be in one model."""
    if not shape.trees:
        raise DataError(f"Model {number} is an index and has no trees; expected a tree. Give models that were trained.")
    if shape.weights != first.weights:
        raise DataError(
            f"Model {number} has {shape.weights} weights; expected {first.weights} as in model 0. Compress the "
            "ensemble after it is made, or all of its models alike."
        )
    if _must_agree(shape) != _must_agree(first):
        raise DataError(
            f"Model {number} has {_numbers(shape)}; expected {_numbers(first)} as in model 0. Give models that were "
            "trained on the same features and labels with the same activation."
        )


def _must_agree(shape: ModelShape) -> tuple[Any, ...]:
    """What the trees of an ensemble have in common."""
    return shape.features, shape.labels, shape.activation, shape.unit_rows


def _numbers(shape: ModelShape) -> str:
    rows = " for rows of length one" if shape.unit_rows else ""
    return f"{shape.features:,} features, {shape.labels:,} labels and activation {shape.activation.name}{rows}"


def one_tree(parts: ModelParts, tree: int) -> ModelParts:
    """A model of one of the trees, without names or text features."""
    shape = replace(
        parts.shape, trees=(parts.shape.trees[tree],), text=None, tokenizer=None, encoder=None, **_NO_ANSWERS
    )
    return ModelParts(shape, parts.tree_sections(tree, 0))


def with_names(parts: ModelParts, names: Sequence[str] | None, keys: Sequence[str] | None) -> ModelParts:
    """The same with other names for people and other unique keys (default: those that it has, else the names)."""
    stored = StringTable.from_arrays(parts.sections, "keys", parts.shape.labels)
    names = None if names is None else as_strings(names, "names")
    if keys is None and names is not None and stored is not None:
        keys = [stored[label] for label in range(parts.shape.labels)]
        names = None if list(names) == keys else names
    kept = {n: a for n, a in parts.sections.items() if not n.startswith(("names/", "keys/"))}
    return ModelParts(parts.shape, kept | string_sections(names, keys, parts.shape.labels))


def with_unit_rows(parts: ModelParts) -> ModelParts:
    """The same, for which queries are divided by their length first."""
    return ModelParts(replace(parts.shape, unit_rows=True), parts.sections)


def with_beam(parts: ModelParts, beam: int) -> ModelParts:
    """The same, which keeps so many nodes per layer where a search does not say how many."""
    return ModelParts(replace(parts.shape, beam=positive(beam, "beam")), parts.sections)


def with_notes(parts: ModelParts, given: Any) -> ModelParts:
    """The same, with what a user writes on it."""
    return ModelParts(replace(parts.shape, notes=notes.merged(parts.shape.notes, given)), parts.sections)


def with_text(parts: ModelParts, text: FittedText) -> ModelParts:
    """The same, with the text features that its columns were made with."""
    if not isinstance(text, FittedText):
        raise DataError(
            f"text is a {type(text).__name__}; expected a FittedText. Make one with TextFeatures().fit(texts)."
        )
    if text.columns != parts.shape.features:
        raise DataError(
            f"The text features have {text.columns:,} columns; expected {parts.shape.features:,}, the model's "
            "features. Give the ones that X was made with."
        )
    kept = {name: array for name, array in parts.sections.items() if not name.startswith("text/")}
    function = None if text.tokenizer is None else text.tokenizer.function
    meaning = text.meaning
    encoder, blocks = (None, parts.shape.blocks) if meaning is None else (meaning.encoder, meaning.blocks)
    shape = replace(parts.shape, text=text.settings(), tokenizer=function, encoder=encoder, blocks=blocks)
    return ModelParts(shape, kept | {f"text/{name}": array for name, array in text.arrays().items()})


def with_rows_of_label(parts: ModelParts, counts: Any) -> ModelParts:
    """The same, with the number of training rows that have each label."""
    counts = plain_array(counts)
    if counts.shape != (parts.shape.labels,) or counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
        raise DataError(
            f"counts has shape {counts.shape} and dtype {counts.dtype}; expected {parts.shape.labels:,} whole numbers "
            "from 0 on, one per label. Count the rows of each label, for example with numpy.bincount(Y.indices)."
        )
    return ModelParts(parts.shape, {**parts.sections, "rows_of_label": counts.astype(np.uint32)})


def with_words(
    parts: ModelParts, sections: Sections, index: IndexShape | None, head: Head | None, lexical: dict[str, Any]
) -> ModelParts:
    """The same trees with a lexical member and its head, or (None) with what was found out about one."""
    shape = replace(parts.shape, index=index, head=head, lexical=lexical)
    return ModelParts(shape, {**parts.sections, **sections})


def with_baselines(parts: ModelParts, found: dict[str, float]) -> ModelParts:
    """The same, with more of what rows and answers were like in training."""
    return ModelParts(replace(parts.shape, baselines={**(parts.shape.baselines or {}), **found}), parts.sections)


def trees_only(parts: ModelParts) -> ModelParts:
    """The same trees without words, and without what was learnt from answers of both."""
    kept = {n: a for n, a in parts.sections.items() if not n.startswith(_OF_ANSWERS[1:])}
    return ModelParts(replace(parts.shape, **_NO_ANSWERS), kept)
