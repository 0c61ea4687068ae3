"""npz.py — a scipy `.npz` file of a foreign folder in, a canonical CSC array out; and the kind that libpecos reads.

The file is taken for hostile: inputs/npz.py compares its sizes before anything is read, inputs/structure.py its offsets
and ids before anybody follows them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.inputs.matrices import columns_as_csr
from beamwood.inputs.npz import Unreadable, read_npz
from beamwood.interop.foreign import MOST_FEATURES, errors_of, read_file, wrong

_EMPTY_COLUMNS = 4096  # that a csr file may have: nothing in it but the shape speaks of them, and each takes memory
_COLUMNS_PER_VALUE = 4


def read_csc(path: Path) -> Any:
    """A CSC or CSR file as a canonical float32 CSC array with finite values."""
    try:
        parts = read_npz(read_file(path), ("csc", "csr"))
    except Unreadable as error:
        raise wrong(path, str(error)) from None
    rows, columns = parts.shape
    if max(rows, columns) > MOST_FEATURES:
        raise wrong(path, f"shape is {rows:,} x {columns:,}; expected two sizes up to {MOST_FEATURES:,}")
    stored = len(parts.data)
    if parts.format == "csr" and columns > _EMPTY_COLUMNS + _COLUMNS_PER_VALUE * stored:
        raise wrong(path, f"{stored:,} values in {columns:,} columns; a csr file of so many empty columns is refused")
    with errors_of(path):
        return columns_as_csr(parts, "its matrix").T


def write_csc(path: Path, matrix: Any) -> None:
    """The matrix as libpecos' native reader expects it: stored, not packed, csc, float32, ids rising."""
    columns = sp.csc_matrix(matrix, dtype=np.float32)
    columns.sort_indices()
    sp.save_npz(path, columns, compressed=False)
