"""loading.py — a model file in, its parts out; files of earlier formats are brought up to date or refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from beamwood.errors import FormatError
from beamwood.inputs.arguments import cores
from beamwood.storage import store
from beamwood.storage.build import Sections, cascade_of_chunks
from beamwood.storage.parts import ModelParts
from beamwood.storage.shape import ModelShape


def load_parts(path: str | os.PathLike[str], memory: str, verify: bool) -> ModelParts:
    """The parts of a model from its file: see beamwood.load."""
    found = load_piece(path, memory, verify)
    if found.shape.part is not None:
        raise FormatError(
            f"{path} is a part of a model that was cut; expected a whole model. Open the folder that it lies in with "
            "beamwood.Sharded."
        )
    return found


def load_piece(path: str | os.PathLike[str], memory: str, verify: bool) -> ModelParts:
    """The same of a file that may be a part of a model, whose answers are not those of the whole."""
    arrays, meta = store.read_file(path, memory, verify)
    return checked_parts(arrays, meta, path, Path(path).absolute() if memory == "map" else None)


def checked_parts(
    arrays: Sections, meta: dict[str, Any], path: str | os.PathLike[str], mapped: Path | None
) -> ModelParts:
    """The parts of a model from the arrays and the description in its file, which may be damaged."""
    shape = ModelShape.read(meta)
    for tree in range(len(shape.trees)):
        leaves = arrays.get(f"tree{tree}/leaf_of_label")
        if leaves is None or leaves.shape != (shape.labels,):
            raise FormatError(
                f"{path} is damaged: it says {shape.labels:,} labels, but its leaves are not that many. "
                f"Get a fresh copy of the file."
            )
    if not {"threads-1", "threads-2"}.isdisjoint(meta["requires"]):
        raise FormatError(
            f"{path} was written by a preview of beamwood 0.1.0 and holds its weights in another way. "
            "Train or convert the model again."
        )
    sections = arrays if meta["format"] > 1 else upgraded(arrays, shape)
    return ModelParts(shape, sections, str(meta["header"]), mapped)


def upgraded(sections: Sections, shape: ModelShape) -> Sections:
    """The arrays of a file of format 1, which held chunks, as those of today: built once, when it is loaded."""
    old = ("row_start", "word_start", "feature", "offset", "words", "index", "thread_start", "threads", "root")
    kept = {
        name: array
        for name, array in sections.items()
        if not name.startswith("tree") or name.rpartition("/")[2] not in old
    }
    for tree, size in enumerate(shape.trees):
        kept |= cascade_of_chunks(sections, tree, size, shape.features, cores())
    return kept
