"""loading.py — a model file in, the model out; files of earlier formats are brought up to date or refused."""

from __future__ import annotations

import os

from beamwood.errors import FormatError
from beamwood.inputs.arguments import cores
from beamwood.model import Model
from beamwood.storage import store
from beamwood.storage.build import Sections, cascade_of_chunks
from beamwood.storage.shape import Shape


def load(path: str | os.PathLike[str], memory: str = "map", verify: bool = False) -> Model:
    """A model from its file, ready at once: the file is mapped and read where queries lead.

    memory: "map" shares the file's pages with other processes; "read" copies it; "huge" copies it into huge pages.
    verify: read everything once and compare checksums.
    """
    arrays, meta = store.load(path, memory, verify)
    shape = Shape.read(meta)
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
    model = Model(shape, arrays if meta["format"] > 1 else upgraded(arrays, shape))
    model.version = str(meta["header"])
    return model


def upgraded(sections: Sections, shape: Shape) -> Sections:
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
