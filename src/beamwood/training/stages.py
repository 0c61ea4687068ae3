"""stages.py — text features, tree shapes, layers and trees in, what a checkpoint keeps of them out; and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from beamwood.inputs.text import FittedText
from beamwood.storage.assemble import Assembly
from beamwood.storage.build import TreeSize
from beamwood.storage.layers import Layer
from beamwood.training.checkpoint import Array, Checkpoint
from beamwood.training.pruned import Emptied
from beamwood.training.weights import Ints, Skeleton


def kept_text(checkpoint: Checkpoint) -> tuple[FittedText, Any] | None:
    """Text features and the rows of all texts."""
    found = checkpoint.get("text")
    if found is None:
        return None
    arrays, note = found
    fitted = FittedText.from_arrays(
        note["settings"], {name.removeprefix("text/"): a for name, a in arrays.items() if name.startswith("text/")}
    )
    return fitted, _matrix(sp.csr_matrix, arrays, note["shape"])


def keep_text(checkpoint: Checkpoint, fitted: FittedText, X: Any) -> None:
    """Keeps text features and the rows of all texts."""
    arrays = {f"text/{name}": array for name, array in fitted.arrays().items()} | _arrays(X)
    checkpoint.put("text", arrays, {"settings": fitted.settings(), "shape": list(X.shape)})


def kept_shape(checkpoint: Checkpoint, tree: int) -> Skeleton | None:
    """The shape of a tree."""
    found = checkpoint.get(f"shape-{tree}")
    if found is None:
        return None
    arrays, layers = found
    return [(arrays[f"{i}/parent"], arrays[f"{i}/label"] if labelled else None) for i, labelled in enumerate(layers)]


def keep_shape(checkpoint: Checkpoint, tree: int, shape: Skeleton) -> None:
    """Keeps the shape of a tree."""
    arrays: dict[str, Array] = {}
    for i, (parent, label) in enumerate(shape):
        arrays[f"{i}/parent"] = np.asarray(parent, np.int64)
        if label is not None:
            arrays[f"{i}/label"] = np.asarray(label, np.int64)
    checkpoint.put(f"shape-{tree}", arrays, [label is not None for _, label in shape])


def kept_layers(checkpoint: Checkpoint, tree: int, shape: Skeleton) -> list[Layer]:
    """The first layers of a tree, as many as are there."""
    layers: list[Layer] = []
    for depth, (parent, label) in enumerate(shape):
        found = checkpoint.get(f"layer-{tree}-{depth}")
        if found is None:
            break
        arrays, size = found
        layers.append(Layer(_matrix(sp.csc_matrix, arrays, size), _ints(parent), arrays["bias"], label))
    return layers


def keep_layer(checkpoint: Checkpoint, tree: int, depth: int, layer: Layer) -> None:
    """Keeps the weights of a layer; its shape is that of its tree."""
    arrays = _arrays(layer.weights) | {"bias": np.asarray(layer.bias, np.float32)}
    checkpoint.put(f"layer-{tree}-{depth}", arrays, list(layer.weights.shape))


def keep_tree(checkpoint: Checkpoint, assembly: Assembly, emptied: list[str]) -> None:
    """Keeps the tree that was added last, and forgets its layers."""
    arrays, size = assembly.last()
    tree = len(assembly.sizes) - 1
    note = {"nodes": size.nodes, "nonzeros": size.nonzeros, "features": assembly.features, "labels": assembly.labels}
    filled = {name: array for name, array in arrays.items() if array.size}
    checkpoint.put(f"tree-{tree}", filled, {**note, "emptied": emptied})
    for depth in range(len(size.nodes)):
        checkpoint.drop(f"layer-{tree}-{depth}")


def restored_tree(checkpoint: Checkpoint, assembly: Assembly, emptied: Emptied) -> bool:
    """Adds the next tree if an earlier run has completed it."""
    found = checkpoint.get(f"tree-{len(assembly.sizes)}")
    if found is None:
        return False
    arrays, note = found
    size = TreeSize(tuple(note["nodes"]), tuple(note["nonzeros"]))
    assembly.restore(arrays, size, note["features"], note["labels"])
    emptied.found += note["emptied"]
    return True


def _ints(parent: Any) -> Ints:
    return np.asarray(parent, np.int64)


def _arrays(matrix: Any) -> dict[str, Array]:
    """The arrays of a CSR or CSC matrix, in types that a file has."""
    indices = np.asarray(matrix.indices, np.int32).view(np.uint32)
    return {
        "start": np.asarray(matrix.indptr, np.int64),
        "index": indices,
        "value": np.asarray(matrix.data, np.float32),
    }


def _matrix(kind: Any, arrays: dict[str, Array], shape: list[int]) -> Any:
    made = kind((arrays["value"], arrays["index"].view(np.int32), arrays["start"]), shape=tuple(shape))
    made.has_sorted_indices = made.has_canonical_format = True
    return made
