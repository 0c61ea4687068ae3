"""parts.py — a model's numbers and arrays in one immutable value: what assembling, saving and searching hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood._version import __version__
from beamwood.errors import FormatError, SettingsError
from beamwood.inputs.text import FittedText
from beamwood.storage import store
from beamwood.storage.build import layer_name
from beamwood.storage.shape import ModelShape

Array = npt.NDArray[Any]
WEIGHT_FIELDS = frozenset({"thread_start", "threads", "root", "scale"})  # the arrays that hold weights


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The shape and the arrays (by name) of a model. Nothing in it ever changes; a changed model is a new value.

    file_version: the version of the file that it was loaded from. file: that file, where it is mapped.
    """

    shape: ModelShape
    sections: Mapping[str, Array]
    file_version: str | None = None
    file: Path | None = None

    @cached_property
    def version(self) -> str:
        """The checksum of the header of its file, which covers the checksums of all arrays.

        It is that of the file it was loaded from, or of the one that `save` would write: then every array is read
        once, when it is first asked for. Models of the same content have the same version.
        """
        if self.file_version is not None:
            return self.file_version
        return store.version_of(*self.contents())

    def contents(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """The arrays and the description that its file holds."""
        arrays = {name: array for name, array in sorted(self.sections.items()) if array.size}
        described = {"version": __version__, "requires": self.shape.requires(), "model": self.shape.describe()}
        return arrays, described

    def tree_sections(self, tree: int, number: int) -> dict[str, Array]:
        """The arrays of one tree, under the names they have in a model where it has that number."""
        own = f"tree{tree}/"
        return {f"tree{number}/{n.removeprefix(own)}": a for n, a in self.sections.items() if n.startswith(own)}

    def identity(self) -> tuple[Array, ...]:
        """The arrays that a model and its filters know each other by: where labels lie in each tree, or the lists."""
        if not self.shape.trees:
            return (self.sections["index/start"],)
        return tuple(self.leaves(tree) for tree in range(len(self.shape.trees)))

    def leaves(self, tree: int) -> Array:
        """For each label its leaf, numbered through the tree from the top."""
        return self.sections[f"tree{tree}/leaf_of_label"]

    def child_start(self, tree: int, layer: int) -> Array:
        """Where the children of each node of the layer above start; one entry more than there are such nodes."""
        return self.sections[layer_name(tree, layer, "child_start")]

    @property
    def rows_of_label(self) -> npt.NDArray[np.uint32] | None:
        """How many training rows had each label, where the model knows."""
        counts = self.sections.get("rows_of_label")
        if counts is not None and (counts.shape != (self.shape.labels,) or counts.dtype != np.uint32):
            raise FormatError("The model is damaged: its counts of rows do not fit its labels. Get a fresh copy.")
        return counts

    def text(self) -> FittedText | None:
        """The text features in the arrays, which may be damaged; None where there are none."""
        if self.shape.text is None:
            return None
        arrays = {name.removeprefix("text/"): a for name, a in self.sections.items() if name.startswith("text/")}
        fitted = FittedText.from_arrays(self.shape.text, arrays)
        if fitted.columns != self.shape.features:
            raise FormatError(
                f"The model is damaged: it has {fitted.columns:,} terms; expected {self.shape.features:,}, one per "
                "feature. Get a fresh copy of its file."
            )
        if fitted.meaning is not None and fitted.meaning.blocks != self.shape.blocks:
            raise FormatError("The model is damaged: its blocks are not those of its texts. Get a fresh copy.")
        fitted = fitted if self.shape.encoder is None else fitted.with_encoder(self.shape.encoder)
        return fitted if self.shape.tokenizer is None else fitted.with_tokenizer(self.shape.tokenizer)

    def with_tokenizer(self, tokenizer: Any) -> ModelParts:
        """The same with the function that finds words; its file is the same too."""
        if self.shape.text is None:
            raise SettingsError("tokenizer is given to a model that knows no words; expected None.")
        return replace(self, shape=replace(self.shape, tokenizer=tokenizer))

    def with_encoder(self, encoder: Any) -> ModelParts:
        """The same with the encoder that makes vectors of texts; its file is the same too."""
        if self.shape.text is None:
            raise SettingsError("encoder is given to a model that knows no words; expected None.")
        return replace(self, shape=replace(self.shape, encoder=encoder))

    def info(self) -> dict[str, Any]:
        """Labels, features, depth, non-zeros, bytes by section, and settings."""
        shape = self.shape
        nonzeros = sum(sum(tree.nonzeros) for tree in shape.trees)
        nonzeros += 0 if shape.index is None else shape.index.nonzeros
        sizes = {name: int(array.nbytes) for name, array in sorted(self.sections.items())}
        weights = sum(
            size for n, size in sizes.items() if n.startswith("index/") or n.rpartition("/")[2] in WEIGHT_FIELDS
        )
        return {
            "labels": shape.labels,
            "features": shape.features,
            "activation": shape.activation.name,
            "path": shape.activation.path,
            "discount": shape.activation.discount,
            "unit_rows": shape.unit_rows,
            "beam": shape.beam,
            "trees": len(shape.trees),
            "depth": max((len(tree.nodes) for tree in shape.trees), default=0),
            "nodes": [list(tree.nodes) for tree in shape.trees],
            "index": None if shape.index is None else shape.index.describe(),
            "lexical": None
            if shape.lexical is None
            else {**shape.lexical, "head": None if shape.head is None else shape.head.describe()},
            "calibration": shape.calibration,
            "cut": shape.cut,
            "blocks": None if shape.blocks is None else shape.blocks.describe(),
            "encoder": None if shape.text is None else shape.text.get("encoder"),
            "baselines": shape.baselines,
            "nonzeros": nonzeros,
            "bytes": sum(sizes.values()),
            "kind_of_weights": shape.weights if shape.trees or shape.index is None else shape.index.weights,
            "bytes_of_weights": weights,
            "bytes_per_nonzero": weights / max(1, nonzeros),
            "bytes_by_section": sizes,
            "settings": dict(shape.settings),
            "notes": dict(shape.notes),
            "updates": None
            if shape.updates is None
            else {**shape.updates, "share_added": shape.updates["added"] / max(1, shape.labels)},
        }
