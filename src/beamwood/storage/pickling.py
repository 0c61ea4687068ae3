"""pickling.py — a model's parts in, what a pickle carries of them out; and back: a reference to a file, or its bytes.

The law: what comes back has the same version, or an error says why there is nothing. A model that is mapped from a file
travels as the path and the version, some hundred bytes, and is mapped again, so that processes of one machine share its
pages. Every other model travels as the bytes of its file. Reading either runs no code but the loader's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from beamwood.errors import FormatError, MissingFileError
from beamwood.storage import store
from beamwood.storage.loading import checked_parts, load_parts
from beamwood.storage.parts import ModelParts

WHERE = "the pickled model"
_ALIGNED = 16  # bytes; memory that others hand over may start anywhere


def reference(parts: ModelParts) -> tuple[str, str] | None:
    """The path and the version of the file that a model is mapped from, if that file still has this version."""
    if parts.file is None:
        return None
    try:
        same = load_parts(parts.file, "map", False).version == parts.version
    except (FormatError, MissingFileError):
        same = False
    return (str(parts.file), parts.version) if same else None


def from_reference(path: str, version: str) -> ModelParts:
    """The parts of that version from that file."""
    advice = "Bring the file there, or pickle a model that was loaded with memory='read': its pickle holds all of it."
    if not Path(path).is_file():
        raise MissingFileError(
            f"The pickled model is a reference to {path}, and there is no such file here. {advice}", path
        )
    parts = load_parts(path, "map", False)
    if parts.version != version:
        raise FormatError(
            f"The pickled model is a reference to {path}, which has version {parts.version}; expected {version}. "
            f"{advice}"
        )
    return parts


def from_bytes(data: Any) -> ModelParts:
    """The parts in the bytes of a file, every checksum compared."""
    buffer = np.frombuffer(data, np.uint8)
    if buffer.ctypes.data % _ALIGNED:
        buffer = buffer.copy()
    buffer.flags.writeable = False
    arrays, meta = store.read(buffer, Path(WHERE), verify=True)
    return checked_parts(arrays, meta, WHERE, None)
