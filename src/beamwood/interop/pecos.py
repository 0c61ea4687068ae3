"""pecos.py — a folder of libpecos' XLinearModel (its .npz form) in, a model out; and a model in, such a folder out.

`ranker/{d}.model` holds layer d from the top: W (features, and one row more for the bias when `bias` is above zero, x
nodes) and C (nodes x nodes of the layer above). The nodes of the last layer are the labels, in order.

Ties are the one difference: libpecos takes equal scores in the order of its beam, we by label.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError
from beamwood.interop.foreign import (
    MOST_LAYERS,
    Imported,
    check_features,
    errors_of,
    read_json,
    real,
    same,
    whole,
    wrong,
)
from beamwood.interop.layering import at_one_depth, labels_in_order
from beamwood.interop.npz import read_csc, write_csc
from beamwood.model import Model
from beamwood.storage.activations import Activation
from beamwood.storage.layers import Layer

Ints = npt.NDArray[np.int64]

KIND = "PECOS XLinearModel"
_CERTAIN = 1e38  # what an infinite bias becomes: float32 holds it, and every activation takes it for certainty
_TOP = 10


def is_folder(folder: Path) -> bool:
    """Whether it looks like one."""
    return (folder / "ranker").is_dir() or _is_ranker(folder)


def _is_ranker(folder: Path) -> bool:
    return (folder / "param.json").is_file() and (folder / "0.model").is_dir()


def read(folder: Path) -> Imported:
    """The model in a folder, with what was found and what differs."""
    parts = _read_parts(folder)
    layers, notes = _layers(parts)
    kinds = {part.post_processor for part in parts}
    if len(kinds) > 1:
        raise wrong(folder / "ranker", f"layers have the post-processors {sorted(kinds)}; expected one for all")
    activation = activation_of(kinds.pop(), parts[0].folder / "param.json")
    found = {
        "post_processor": parts[0].post_processor,
        "depth": len(parts),
        "beam": [part.only_topk for part in parts[:-1]],
        "k": parts[-1].only_topk,
    }
    with errors_of(folder):
        model = Model.from_layers(layers, activation=activation.name, path=activation.path, settings={"made_by": KIND})
    return Imported(KIND, model, found, tuple(notes))


def read_layers(folder: Path) -> list[Layer]:
    """The layers in a folder, from the top down."""
    return _layers(_read_parts(folder))[0]


def _read_parts(folder: Path) -> list[_Part]:
    ranker = folder if _is_ranker(folder) else folder / "ranker"
    param = ranker / "param.json"
    head = read_json(param)
    same(param, "model", head.get("model"), "HierarchicalMLModel", "this importer")
    depth = whole(head, "depth", param, 1, MOST_LAYERS) if "depth" in head else len(list(ranker.glob("*.model")))
    parts = [_Part(ranker / f"{d}.model") for d in range(depth)]
    if not parts:
        raise wrong(ranker, "it holds no layers; expected 0.model and so on")
    _check_chain(parts, param, head)
    return parts


class _Part:
    """One layer folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        param = folder / "param.json"
        values = read_json(param)
        same(param, "model", values.get("model"), "MLModel", "this importer")
        scale = real(values, "bias", param)
        predict = values.get("pred_kwargs")
        if not isinstance(predict, dict):
            raise wrong(param, f"pred_kwargs is {predict!r:.60}; expected a JSON object")
        self.only_topk = whole(predict, "only_topk", param)
        self.post_processor = _post_processor(predict.get("post_processor"), param)
        W, C = read_csc(folder / "W.npz"), read_csc(folder / "C.npz")
        C.eliminate_zeros()
        same(folder / "C.npz", "the number of rows", C.shape[0], W.shape[1], "W.npz (columns)")
        if scale > 0 and W.shape[0] < 2:
            raise wrong(folder / "W.npz", f"it has {W.shape[0]} rows; expected at least a feature and the bias")
        self.weights: Any = W
        self.bias: npt.NDArray[np.float32] | None = None
        if scale > 0:
            self.weights, self.bias = _without_bias(W, np.float32(scale))
        for name, size in (("nr_features", self.weights.shape[0]), ("nr_labels", W.shape[1]), ("nr_codes", C.shape[1])):
            if values.get(name) is not None:
                same(param, name, values[name], size, "W.npz or C.npz")
        parents = sp.csr_array(C)
        count = np.diff(parents.indptr)
        if (count > 1).any():
            node = int(np.flatnonzero(count > 1)[0])
            raise wrong(folder / "C.npz", f"node {node} has {count[node]} parents; overlapping trees are not supported")
        self.parent: Ints = np.full(W.shape[1], -1, np.int64)
        self.parent[count == 1] = parents.indices
        self.above = int(C.shape[1])


def _post_processor(name: Any, path: Path) -> str:
    """Its name; very old models have true, false or nothing."""
    name = {True: "l3-hinge", False: "noop", None: "noop"}[name] if name in (True, False, None) else name
    if not isinstance(name, str):
        raise wrong(path, f"post_processor is {name!r:.60}; expected a name")
    return name


def _without_bias(W: Any, scale: np.float32) -> tuple[Any, npt.NDArray[np.float32]]:
    """W without its last row, and that row dense, scaled; cheaper than slicing a large matrix by rows."""
    is_last = W.indices == W.shape[0] - 1
    bias = np.zeros(W.shape[1], np.float32)
    bias[np.repeat(np.arange(W.shape[1]), np.diff(W.indptr))[is_last]] = W.data[is_last] * scale
    kept_before = np.concatenate([[0], np.cumsum(~is_last)])
    parts = W.data[~is_last], W.indices[~is_last], kept_before[W.indptr]
    return sp.csc_array(parts, shape=(W.shape[0] - 1, W.shape[1])), bias


def _check_chain(parts: list[_Part], param: Path, head: dict[str, Any]) -> None:
    """Every layer hangs on the one above it, and all have the same features."""
    above = 1
    for part in parts:
        same(part.folder / "C.npz", "the number of columns", part.above, above, "the layer above (nodes)")
        if not len(part.parent):
            raise wrong(part.folder / "W.npz", "it has no columns; expected at least one")
        rows = part.weights.shape[0]
        same(part.folder / "W.npz", "the number of features", rows, parts[0].weights.shape[0], "layer 0")
        above = len(part.parent)
    features = parts[0].weights.shape[0]
    check_features(parts[0].folder / "W.npz", features, sum(part.weights.nnz for part in parts))
    for name, size in (("nr_features", features), ("nr_labels", above)):
        if head.get(name) is not None:
            same(param, name, head[name], size, "the layers")


def _layers(parts: list[_Part]) -> tuple[list[Layer], list[str]]:
    """Layers of ours. Pruned trees have nodes without a parent or without children: they are left out, and labels
    that nothing leads to are hung up as nodes that score worst."""
    kept: list[npt.NDArray[np.bool_]] = []
    reachable = np.ones(1, bool)
    for part in parts:
        reachable = (part.parent >= 0) & reachable[part.parent]
        kept.append(reachable)
    for depth in range(len(parts) - 2, -1, -1):
        has_child = np.zeros(len(kept[depth]), bool)
        has_child[parts[depth + 1].parent[kept[depth + 1]]] = True
        kept[depth] = kept[depth] & has_child
    if not kept[-1].any():
        raise wrong(parts[-1].folder / "C.npz", "no label has a parent; expected one for each")
    layers, number_above = [], np.zeros(1, np.int64)
    for depth, part in enumerate(parts):
        keep = kept[depth]
        if keep.all():
            layers.append(Layer(part.weights, number_above[part.parent], part.bias))
        elif depth < len(parts) - 1:
            bias = None if part.bias is None else part.bias[keep]
            layers.append(Layer(part.weights[:, keep], number_above[part.parent[keep]], bias))
        else:
            layers.append(_with_orphans(part, keep, number_above))
        number_above = np.cumsum(keep) - 1
    notes = []
    if dropped := sum(int((~keep).sum()) for keep in kept[:-1]):
        notes.append(f"{dropped:,} inner nodes that lead to no label were left out")
    if orphans := int((~kept[-1]).sum()):
        notes.append(f"{orphans:,} labels belong to no node; libpecos never returns them, here they score worst of all")
    return layers, notes


def _with_orphans(part: _Part, keep: npt.NDArray[np.bool_], number_above: Ints) -> Layer:
    """The last layer with the labels that nothing leads to shared out over its parents, as constant nodes."""
    parent = np.where(keep, number_above[part.parent], 0)
    parent[~keep] = np.arange(int((~keep).sum())) % (int(number_above.max()) + 1)
    bias = np.zeros(len(keep), np.float32) if part.bias is None else part.bias.copy()
    bias[~keep] = -np.inf
    stays = np.repeat(keep, np.diff(part.weights.indptr))
    lengths = np.where(keep, np.diff(part.weights.indptr), 0)
    parts = part.weights.data[stays], part.weights.indices[stays], np.concatenate([[0], np.cumsum(lengths)])
    return Layer(sp.csc_array(parts, shape=part.weights.shape), parent, bias)


def activation_of(post_processor: Any, path: Path) -> Activation:
    """libpecos' name of an activation as ours."""
    names = {"noop": "identity", "sigmoid": "sigmoid", "log-sigmoid": "log-sigmoid"}
    found = re.fullmatch(r"(log-)?l([1-9]\d?)-hinge", str(post_processor))
    if not found and post_processor not in names:
        known = "noop, sigmoid, log-sigmoid, l3-hinge and the like"
        raise wrong(path, f"post_processor is {post_processor!r:.60}; expected one of {known}")
    return Activation.parse(f"{found[1] or ''}hinge-{found[2]}" if found else names[post_processor])


def post_processor_of(activation: Activation) -> str:
    """Our activation as libpecos calls it; log kinds whose leaves show exp are the plain ones there."""
    if activation.name == "identity":
        return "noop"
    name = activation.name.removeprefix("log-") if activation.path == "log-exp" else activation.name
    return re.sub(r"hinge-(\d+)", r"l\1-hinge", name)


def write(model: Model, folder: Path, tree: int | None = None) -> list[str]:
    """Makes a folder that libpecos loads and that predicts the same; returns what is not kept or not the same."""
    info = model.info()
    if info["trees"] > 1 and tree is None:
        raise SettingsError(
            f"the model has {info['trees']} trees; expected one, as libpecos knows no more. Choose it with tree=0 "
            "(--tree 0)."
        )
    activation = Activation.parse(info["activation"], info["path"])
    layers, padded = at_one_depth(model.layers(tree or 0))
    if padded and activation.path == "last":
        raise SettingsError("labels lie in several layers, which libpecos does not know, and identity cannot be padded")
    write_layers(layers, folder, activation)
    return _differences(model, activation, padded)


def write_layers(layers: list[Layer], folder: Path, activation: Activation) -> None:
    """The folder of layers whose last one holds all labels."""
    ranker = folder / "ranker"
    ranker.mkdir(parents=True)
    features, labels = layers[-1].weights.shape
    parents = 1
    for depth, layer in enumerate(labels_in_order(layers)):
        _write_layer(layer, parents, post_processor_of(activation), ranker / f"{depth}.model")
        parents = layer.weights.shape[1]
    sizes = {"nr_features": features, "nr_codes": layers[-1].parent.max().item() + 1, "nr_labels": labels}
    head = {"model": "HierarchicalMLModel", "depth": len(layers), **sizes}
    _write_json(ranker, "pecos.xmc.base###HierarchicalMLModel", head)
    _write_json(folder, "pecos.xmc.xlinear.model###XLinearModel", {})


def _differences(model: Model, activation: Activation, padded: bool) -> list[str]:
    notes = []
    if padded:
        notes.append("labels above the last layer were moved down to it; in libpecos they take places in the beam")
    if activation.path == "log-exp":
        notes.append(f"scores are multiplied as {post_processor_of(activation)} and differ in their last digits")
    if "keys/blob" in model.info()["bytes_by_section"]:
        notes.append("libpecos knows labels by number; keys and names stay behind")
    if model.text is not None:
        notes.append("text features stay behind; make rows with model.transform")
    return notes


def _write_layer(layer: Layer, parents: int, post_processor: str, folder: Path) -> None:
    nodes = layer.weights.shape[1]
    bias = np.zeros(nodes, np.float32) if layer.bias is None else np.clip(layer.bias, -_CERTAIN, _CERTAIN)
    W = sp.vstack([layer.weights, sp.csr_array(bias[None, :].astype(np.float32))], format="csc")
    ones = np.ones(nodes, np.float32)
    C = sp.csc_array((ones, (np.arange(nodes), np.asarray(layer.parent, np.int64))), shape=(nodes, parents))
    meta = {"__meta__": {"class_fullname": "pecos.xmc.base###MLModel.PredParams"}}
    predict = {**meta, "only_topk": _TOP, "post_processor": post_processor}
    sizes = {"nr_labels": nodes, "nr_features": W.shape[0] - 1, "nr_codes": parents}
    folder.mkdir()
    values = {"model": "MLModel", **sizes, "bias": 1.0, "pred_kwargs": predict}
    _write_json(folder, "pecos.xmc.base###MLModel", values)
    write_csc(folder / "W.npz", W)
    write_csc(folder / "C.npz", C)


def _write_json(folder: Path, of: str, values: dict[str, Any]) -> None:
    (folder / "param.json").write_text(json.dumps({"__meta__": {"class_fullname": of}, **values}, indent=1))
