"""cut.py — a model in, its upper part and its shards out: parts that each hold some of its weights.

The law: every weight of the model is in one part only. The upper part has all nodes, and the weights of those that have
children; a shard has some labels, in every tree the path to them, and only the weights of the labels themselves. So a
label's score needs the upper part, which gives the score of its path, and one shard, which gives the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores
from beamwood.lexical.postings import PREFIX, postings_sections
from beamwood.model import Model
from beamwood.storage.build import Sections, TreeSize, build_tree
from beamwood.storage.layers import Layer
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import IndexShape

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OWNERS = "part/owner"  # of the upper part: the shard of each label
LABELS = "part/labels"  # of a shard: the model's number of each of its labels, rising
MOST_SHARDS = 4096
_GROUPS = 4  # parents per shard from which on siblings stay together
_OF_THE_TOP = ("text", "cut", "lexical", "calibration", "baselines", "updates", "blocks", "tokenizer", "encoder")
_OF_TREES = ("tree", PREFIX)


def nodes_name(shard: int, tree: int, layer: int) -> str:
    """Where the upper part keeps the nodes above a layer of a tree that a shard has."""
    return f"part/shard{shard}/tree{tree}/layer{layer}/nodes"


@dataclass(frozen=True, eq=False)
class Column:
    """One layer of a tree, with its labels spelled out: -1 for inner nodes."""

    layer: Layer
    weights: Any
    label: Ints


class Cutter:
    """Cuts one model into so many shards."""

    def __init__(self, model: Model, shards: int) -> None:
        shape = model.parts.shape
        if not 1 <= shards <= min(MOST_SHARDS, shape.labels):
            raise SettingsError(
                f"shards is {shards:,}; expected 1 to {min(MOST_SHARDS, shape.labels):,}, at most one per label."
            )
        if shape.activation.discount != 1:
            raise SettingsError(
                f"the model has a discount of {shape.activation.discount}; expected none: what it hands down depends "
                "on siblings, which shards do not keep together. Serve it whole."
            )
        self._model, self._parts, self._shape = model, model.parts, shape
        self._build = f"{model.version}-{shards}"
        self._trees = [self._columns(tree) for tree in range(len(shape.trees))]
        self._lists = self._rows_of_lists()
        self._owner = self._shared_out(shards)
        self.shards = shards

    @property
    def build(self) -> str:
        """What all parts of one cut of one model have in common: its version and the number of shards."""
        return self._build

    def top(self) -> ModelParts:
        """The upper part."""
        kept = {n: a for n, a in self._parts.sections.items() if not n.startswith(_OF_TREES)}
        sections, sizes = self._built(None)
        sections |= kept | {OWNERS: self._owner.astype(np.uint16)}
        for shard in range(self.shards):
            for tree, columns in enumerate(self._trees):
                for depth, mask in enumerate(self._kept(columns, self._owner == shard)[:-1]):
                    sections[nodes_name(shard, tree, depth + 1)] = np.flatnonzero(mask).astype(np.uint32)
        index, lists = self._listed(None)
        part = {"build": self._build, "of": self._model.version, "shards": self.shards, "number": None}
        shape = replace(self._shape, trees=sizes, index=index, weights=self._weights, part=part)
        return ModelParts(shape, sections | lists)

    def each_shard(self) -> Iterator[ModelParts]:
        """All shards, one after the other."""
        for number in range(self.shards):
            own = self._owner == number
            sections, sizes = self._built(own)
            index, lists = self._listed(own)
            sections |= lists | {LABELS: np.flatnonzero(own).astype(np.uint32)}
            rows = self._parts.rows_of_label
            if rows is not None:
                sections["rows_of_label"] = np.ascontiguousarray(rows[own])
            part = {"build": self._build, "of": self._model.version, "shards": self.shards, "number": number}
            nothing: dict[str, Any] = dict.fromkeys(_OF_THE_TOP)
            shape = replace(
                self._shape, labels=int(own.sum()), trees=sizes, index=index, weights=self._weights, part=part,
                settings={}, **nothing,
            )  # fmt: skip
            yield ModelParts(shape, sections)

    @property
    def _weights(self) -> str:
        """How trees store weights: bytes have a scale per chunk, and chunks are others here."""
        return "f32" if self._shape.weights == "u8" else self._shape.weights

    def _columns(self, tree: int) -> list[Column]:
        layers, found = self._model.layers(tree), []
        for depth, layer in enumerate(layers):
            nodes = layer.weights.shape[1]
            label = layer.label
            if label is None:
                label = np.arange(nodes) if depth + 1 == len(layers) else np.full(nodes, -1)
            found.append(Column(layer, sp.csc_array(layer.weights), np.asarray(label, np.int64)))
        return found

    def _rows_of_lists(self) -> Any:
        """The inverted lists as a matrix, labels x features; None where there are none."""
        postings = self._model.postings
        if postings is None:
            return None
        start, labels, weights = postings.lists()
        shape = (self._shape.labels, self._shape.features)
        return sp.csr_array(sp.csc_array((weights, labels, start), shape=shape))

    def _shared_out(self, shards: int) -> Ints:
        """The shard of each label: neighbours in the first tree stay together, and shards have about the same bytes."""
        labels = self._shape.labels
        weight = np.full(labels, 16.0)
        for columns in self._trees:
            for column in columns:
                leaf = column.label >= 0
                weight[column.label[leaf]] += 8.0 * np.diff(column.weights.indptr)[leaf]
        if self._lists is not None:
            weight += 6.0 * np.diff(self._lists.indptr)
        order, group = np.arange(labels), np.arange(labels)
        if self._trees:
            order = np.argsort(self._parts.leaves(0), kind="stable")
            parent = self._parents_of_labels()
            if len(np.unique(parent)) >= _GROUPS * shards:
                group = np.cumsum(np.diff(parent[order], prepend=parent[order[0]]) != 0)
        ends = np.cumsum(weight[order])
        last_of_group = np.append(np.flatnonzero(np.diff(group)), labels - 1)
        where = ((ends[last_of_group] - 1e-9) * shards / ends[-1]).astype(np.int64).clip(0, shards - 1)
        owner = np.empty(labels, np.int64)
        owner[order] = where[group]
        if len(np.unique(owner)) < shards:  # a few heavy labels: every shard gets as many labels instead
            owner[order] = np.arange(labels) * shards // labels
        return owner

    def _parents_of_labels(self) -> Ints:
        """A number for the parent of each label in the first tree."""
        parent, above = np.empty(self._shape.labels, np.int64), 0
        for column in self._trees[0]:
            leaf = column.label >= 0
            parent[column.label[leaf]] = above + np.asarray(column.layer.parent)[leaf]
            above += len(column.label) + 1
        return parent

    @staticmethod
    def _kept(columns: list[Column], own: Bools) -> list[Bools]:
        """For each layer the nodes on a path to one of these labels."""
        masks: list[Bools] = []
        for depth in reversed(range(len(columns))):
            column = columns[depth]
            mask = (column.label >= 0) & own[column.label]
            if masks:
                below = np.asarray(columns[depth + 1].layer.parent)[masks[0]]
                mask[below] = True
            masks.insert(0, mask)
        return masks

    def _built(self, own: Bools | None) -> tuple[Sections, tuple[TreeSize, ...]]:
        """The arrays of all trees: of the upper part (own is None), or of the shard that has these labels."""
        sections: Sections = {}
        sizes = []
        for tree, columns in enumerate(self._trees):
            layers = _of_top(columns) if own is None else _of_shard(columns, self._kept(columns, own), own)
            arrays, size, _ = build_tree(layers, tree, self._shape.features, cores(), self._weights)
            sections |= arrays
            sizes.append(size)
        return sections, tuple(sizes)

    def _listed(self, own: Bools | None) -> tuple[IndexShape | None, Sections]:
        """The inverted lists of these labels; those of the upper part are empty."""
        shape = self._shape.index
        if self._lists is None or shape is None:
            return None, {}
        sections = self._parts.sections
        rows, bias = self._lists, sections.get(PREFIX + "bias")
        if own is None:
            rows = sp.csr_array(rows.shape, dtype=np.float32)
        else:
            rows, bias = rows[np.flatnonzero(own)], None if bias is None else np.ascontiguousarray(bias[own])
        kept = sections.get(PREFIX + "scale") if shape.weights == "u8" else None
        built, found = postings_sections(
            rows, bias, weights=shape.weights, matched_only=shape.matched_only, threads=cores(), kept=kept
        )
        return found, built


def _only(weights: Any, columns: Ints, filled: Bools) -> Any:
    """Some columns of a matrix, those that are not to be filled empty."""
    counts = np.where(filled, np.diff(weights.indptr)[columns], 0)
    start = np.concatenate([[0], np.cumsum(counts)])
    at = np.repeat(weights.indptr[columns] - start[:-1], counts) + np.arange(start[-1])
    return sp.csc_array((weights.data[at], weights.indices[at], start), shape=(weights.shape[0], len(columns)))


def _of_top(columns: list[Column]) -> list[Layer]:
    layers = []
    for column in columns:
        inner = column.label < 0
        bias = column.layer.bias
        if bias is not None:
            bias = np.where(inner, bias, np.float32(0)) if inner.any() else None
        weights = _only(column.weights, np.arange(len(inner)), inner)
        layers.append(Layer(weights, column.layer.parent, bias, column.label))
    return layers


def _of_shard(columns: list[Column], kept: list[Bools], own: Bools) -> list[Layer]:
    layers: list[Layer] = []
    above = np.ones(1, bool)
    local = np.append(np.cumsum(own) - 1, -1)
    for column, mask in zip(columns, kept, strict=True):
        nodes = np.flatnonzero(mask)
        if not len(nodes):  # all of its labels lie higher
            break
        leaf = column.label[nodes] >= 0
        bias = column.layer.bias
        if bias is not None:
            bias = np.where(leaf, bias[nodes], np.float32(0)) if leaf.any() else None
        parent = (np.cumsum(above) - 1)[np.asarray(column.layer.parent)[nodes]]
        label = np.where(leaf, local[column.label[nodes]], -1)
        layers.append(Layer(_only(column.weights, nodes, leaf), parent, bias, label))
        above = mask
    return layers
