"""Layers in, their shape out: non-zeros a column, rows a chunk, rows over non-zeros, bytes per non-zero.

python bench/shape.py generated-4k    # generated, beside what libpecos trained on the same data
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from support.subjects import GENERATED, generated_layers, subject

from beamwood.bench.timing import print_table
from beamwood.storage.layers import Layer

ENTRY, ROW = 8, 12  # bytes that libpecos' binary-search chunks take for a non-zero and for a row


def layer_shape(layer: Layer, above: Any) -> dict[str, float]:
    """The shape of one layer. `above`: features x parents, non-zero where the chunk above has that row."""
    W = sp.csc_matrix(layer.weights)
    rows = chunk_rows(layer)
    chunks = rows.shape[1]
    missing = rows.nnz - (rows.multiply(above)).nnz if above is not None else 0
    return {
        "nodes": W.shape[1],
        "nnz a column": W.nnz / W.shape[1],
        "rows a chunk": rows.nnz / chunks,
        "rows / nnz": rows.nnz / max(1, W.nnz),
        "not in the parent's chunk": missing / max(1, rows.nnz),
        "nnz": W.nnz,
        "rows": rows.nnz,
    }


def chunk_rows(layer: Layer) -> Any:
    """Features x parents, one where the parent's chunk has a row for the feature."""
    W = sp.csc_matrix(layer.weights)
    chunk = np.repeat(np.asarray(layer.parent), np.diff(W.indptr))
    rows = sp.csc_matrix((np.ones(W.nnz, np.int8), (W.indices, chunk)), shape=(W.shape[0], int(layer.parent.max()) + 1))
    rows.data[:] = 1
    return rows


def shapes(layers: list[Layer]) -> list[dict[str, float]]:
    """The shape of every layer, then of the whole model with libpecos' bytes per non-zero."""
    found, above = [], None
    for layer in layers:
        found.append(layer_shape(layer, above))
        mine = chunk_rows(layer)
        chunk_of_node = sp.csc_matrix(
            (np.ones(len(layer.parent), np.int8), (layer.parent, np.arange(len(layer.parent)))),
            shape=(mine.shape[1], len(layer.parent)),
        )
        above = mine @ chunk_of_node
    nnz, rows = (sum(s[key] for s in found) for key in ("nnz", "rows"))
    found.append({"nnz": nnz, "rows": rows, "rows / nnz": rows / nnz, "bytes": ENTRY + ROW * rows / nnz})
    return found


def print_shapes(title: str, layers: list[Layer]) -> None:
    """One table: a row a layer from the top down, then the whole model."""
    print(f"{title}\n")
    found = shapes(layers)
    heads = list(found[0])
    names = [*(f"layer {i}" for i in range(len(layers))), f"all, {found[-1]['bytes']:.1f} bytes per non-zero"]
    cells = ([name, *(shape.get(head, "") for head in heads)] for name, shape in zip(names, found, strict=True))
    print_table(["", *heads], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--branching", type=int, default=32)
    parser.add_argument("--data", type=Path, help="folder of the real subjects")
    given = parser.parse_args()
    one = subject(given.name, given.branching, given.data)
    if one.model_folder.exists():
        print_shapes(f"{given.name}, trained by libpecos", one.layers())
    if given.name in GENERATED:
        print_shapes(f"{given.name}, generated", generated_layers(given.name, given.branching))


if __name__ == "__main__":
    main()
