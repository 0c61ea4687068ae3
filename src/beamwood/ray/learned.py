"""learned.py — the weights that a task learned in, on their way to whoever joins them: with the result, or in a file.

A file in the folder that all machines see keeps them out of the object stores, of which one machine's would hold all
pieces of a layer. A folder that a machine may not write to costs that memory, nothing else.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import FormatError, MissingFileError
from beamwood.storage import store
from beamwood.training.weights import Ints, Learned

Array = npt.NDArray[Any]


@dataclass(eq=False)
class LearnedPiece:
    """Biases and weights of some nodes; the weights can be taken once."""

    counts: Ints  # weights of each node
    bias: npt.NDArray[np.float32]
    weights: tuple[Array, Array] | str | None  # features and values of all nodes in turn, or the file that holds them

    @classmethod
    def of(cls, learned: Learned) -> LearnedPiece:
        """What was learned, as it lies in memory."""
        matrix, bias = learned
        return cls(np.diff(matrix.indptr).astype(np.int64), bias, (matrix.indices, matrix.data))

    def in_folder(self, folder: str) -> LearnedPiece:
        """The same with its weights in a file there; as it is where none can be written."""
        assert isinstance(self.weights, tuple)
        try:
            path = written(Path(folder), dict(zip(("index", "value"), _typed(*self.weights), strict=True)))
        except OSError:
            return self
        return LearnedPiece(self.counts, self.bias, str(path))

    def arrived(self) -> LearnedPiece:
        """The same, whose small arrays hold nothing of the object store."""
        return LearnedPiece(self.counts.copy(), self.bias.copy(), self.weights)

    def take(self) -> tuple[Array, Array]:
        """Features and values. The memory or the file that they lie in goes with them."""
        found, self.weights = self.weights, None
        assert found is not None
        if isinstance(found, tuple):
            return found
        arrays = mapped(Path(found), verify=True)
        return arrays["index"].view(np.int32), arrays["value"]


def _typed(index: Array, value: Array) -> tuple[Array, Array]:
    return np.asarray(index, np.int32).view(np.uint32), np.asarray(value, np.float32)


def written(folder: Path, arrays: Mapping[str, Array], note: Mapping[str, Any] | None = None) -> Path:
    """A new file there with these arrays. It has its name once it is whole, and need not outlive a power failure."""
    name = f"piece-{uuid.uuid4().hex}"
    kept = dict(arrays)
    with open(folder / f".{name}", "wb") as draft:
        for some in store.pieces(kept, *store.header_of(kept, dict(note or {}))):
            draft.write(some)
    os.replace(folder / f".{name}", folder / f"{name}.stage")
    return folder / f"{name}.stage"


def mapped(path: Path, verify: bool) -> dict[str, Array]:
    """The arrays of such a file in pages that the system can take back, checked if asked; its name is gone then."""
    try:
        arrays, _ = store.read_file(path, memory="map", verify=verify)
    except MissingFileError:
        raise FormatError(
            f"{path} is not there on {socket.gethostname()}, though another machine wrote it; expected the same folder "
            "on every machine. Mount it there, or leave shared out: weights then travel with the results."
        ) from None
    path.unlink(missing_ok=True)
    return arrays
