"""napkinxc.py — a folder of napkinXC's PLT (0.6 and later) in, a model out; and a model in, such a folder out.

Every node has a classifier of its own, also the root, which becomes a layer of one node. Exact search is what agrees:
napkinXC's beam search returns more labels than it was asked for. A label on an inner node becomes one more child.

    args.bin     version, bias, norm, hash, threshold, type of model, its name, number of trees
    tree.bin     leaves, nodes, (index, label) of each, the root, the parent of each
    weights.bin  a record a node: classes, first class, loss, weights (bias at index 1, feature f at index f + 2)

All numbers are little endian. Ensembles have a folder `member_{i}` for each tree.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError
from beamwood.interop.foreign import MOST_FEATURES, Imported, check_features, errors_of, read_file, wrong
from beamwood.interop.layering import given_labels, layers_of_nodes
from beamwood.model import Model
from beamwood.storage.activations import Activation
from beamwood.storage.layers import Layer

Ints = npt.NDArray[np.int64]

KIND = "napkinXC PLT"
VERSION = "0.7.2"
_PLT = 3
_LOGISTIC, _SQUARED_HINGE = 0, 1
_ACTIVATIONS = {_LOGISTIC: "sigmoid", _SQUARED_HINGE: "hinge-2"}
_FIRST = 2  # index of feature 0; 1 is the bias, 0 is not used
_CONSTANT = 10.0  # what a node that saw only one class scores before the activation
_CERTAIN = 1e4  # an infinite bias, as a weight: every activation takes it for certainty
_MOST_TREES = 10_000
_PAIR = np.dtype([("index", "<i4"), ("value", "<f4")])


def is_folder(folder: Path) -> bool:
    """Whether it looks like one."""
    return (folder / "args.bin").is_file()


class _Bytes:
    """A binary file read from the front; what is not there is an error that names the field."""

    def __init__(self, path: Path) -> None:
        self.path, self.data, self.at = path, read_file(path), 0

    def take(self, form: str, field: str) -> tuple[Any, ...]:
        """Numbers by their struct form."""
        size = struct.calcsize(form)
        if self.at + size > len(self.data):
            raise wrong(self.path, f"it ends inside {field}, at byte {self.at:,}")
        found = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return found

    def one(self, form: str, field: str) -> Any:
        """One number."""
        return self.take(form, field)[0]

    def array(self, dtype: Any, count: int, field: str) -> npt.NDArray[Any]:
        """Some numbers, once they are known to be there."""
        size = np.dtype(dtype).itemsize * count
        if count < 0 or self.at + size > len(self.data):
            raise wrong(
                self.path,
                f"{field} has {count:,} entries; expected fewer, as {len(self.data) - self.at:,} bytes follow",
            )
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += size
        return found

    def text(self, field: str) -> str:
        """A string behind its length."""
        length = self.one("<Q", field)
        return bytes(self.array(np.uint8, length if length < 1000 else -1, field)).decode("ascii", "replace")

    def done(self) -> None:
        """Nothing may follow."""
        if self.at != len(self.data):
            raise wrong(self.path, f"{len(self.data) - self.at:,} bytes follow; expected the end of the file")


@dataclass(frozen=True)
class _Args:
    """What args.bin says."""

    version: str
    bias: float
    norm: bool
    trees: int


def _read_args(path: Path) -> _Args:
    file = _Bytes(path)
    version = file.text("version")
    number = version.split(".")
    if len(number) < 2 or not all(part.isdecimal() for part in number[:2]) or (int(number[0]), int(number[1])) < (0, 6):
        raise wrong(path, f"version is {version!r:.30}; expected napkinXC 0.6 or later, which can train it again")
    bias, norm = file.one("<f", "bias"), file.one("<B", "norm")
    hashed, threshold = file.one("<i", "hash"), file.one("<f", "featuresThreshold")
    kind, name, trees = file.one("<i", "modelType"), file.text("modelName"), file.one("<i", "ensemble")
    if not np.isfinite(bias) or norm > 1:
        raise wrong(path, f"bias is {bias} and norm is {norm}; expected a finite number and 0 or 1")
    if hashed != 0 or threshold != 0:
        raise wrong(
            path, f"hash is {hashed} and featuresThreshold {threshold}; expected 0 for both, others are not supported"
        )
    if kind != _PLT:
        raise wrong(path, f"modelType is {kind} ({name!r:.30}); expected 3 (plt)")
    if not 0 <= trees <= _MOST_TREES:
        raise wrong(path, f"ensemble is {trees}; expected 0 to {_MOST_TREES:,} trees")
    return _Args(version, bias, bool(norm), max(1, trees))


def read(folder: Path, features: int | None = None) -> Imported:
    """The model in a folder. features: columns of X, if there are more than the weights use."""
    args = _read_args(folder / "args.bin")
    members, trees, bases = [], [], []
    for number in range(args.trees):  # one by one: nothing is made for a tree that is announced and not there
        members.append(folder if args.trees == 1 else folder / f"member_{number}")
        trees.append(_read_tree(members[-1]))
        bases.append(_read_weights(members[-1] / "weights.bin", len(trees[-1].parent)))
    losses = {base.loss for base in bases}
    if len(losses) > 1:
        raise wrong(folder, f"its trees have the losses {sorted(losses)}; expected one for all")
    used = max(base.used for base in bases)
    columns = max(1, used - _FIRST) if features is None else features
    if columns < used - _FIRST:
        raise SettingsError(
            f"features is {features}; expected at least {used - _FIRST:,}, as the weights use. Give the columns of X."
        )
    if features is None:
        check_features(folder / "weights.bin", columns, sum(len(base.index) for base in bases))
    models = []
    for member, tree, base in zip(members, trees, bases, strict=True):
        with errors_of(member):
            layers = layers_of_nodes(tree.parent, *base.columns(columns, np.float32(args.bias), tree.label))
            models.append(
                Model.from_layers(
                    layers, activation=_ACTIVATIONS[base.loss], unit_rows=args.norm, settings={"made_by": KIND}
                )
            )
    with errors_of(folder):
        model = models[0] if len(models) == 1 else Model.from_trees(models)
    found = {"version": args.version, "normalised_rows": args.norm, "bias": args.bias}
    notes = ["answers agree with napkinXC's exact search; use topk(…, exact=True) or a wide beam"]
    if features is None:
        notes.append(f"the folder does not say how many features there are; {columns:,} are used (--features sets it)")
    return Imported(KIND, model, found, tuple(notes))


@dataclass(frozen=True)
class _Tree:
    parent: Ints
    label: Ints


def _read_tree(folder: Path) -> _Tree:
    path = folder / "tree.bin"
    file = _Bytes(path)
    leaves, nodes = file.take("<ii", "the number of nodes")
    if nodes < 1 or not 0 < leaves <= nodes:
        raise wrong(path, f"it has {leaves:,} leaves and {nodes:,} nodes; expected at least one of each")
    pairs = file.array("<i4", 2 * nodes, "the list of nodes").reshape(-1, 2)
    root = file.one("<i", "the root")
    parents = file.array("<i4", nodes, "the list of parents").astype(np.int64)
    file.done()
    if not np.array_equal(np.sort(pairs[:, 0]), np.arange(nodes)):
        raise wrong(path, "the nodes are not numbered in order; expected 0 to n - 1, each once")
    label = np.full(nodes, -1, np.int64)
    label[pairs[:, 0]] = pairs[:, 1]
    parent = np.full(nodes, -1, np.int64)
    parent[pairs[:, 0]] = parents
    if not 0 <= root < nodes or parent[root] != -1 or (parent == -1).sum() != 1:
        raise wrong(path, f"the root is {root}; expected the one node without a parent")
    if int((label >= 0).sum()) != leaves or (label < -1).any():
        raise wrong(path, f"{int((label >= 0).sum()):,} nodes have a label; expected {leaves:,}, as its start says")
    return _Tree(parent, label)


@dataclass(frozen=True)
class _Bases:
    """The classifiers of one tree: columns by node, in napkinXC's numbering of features."""

    loss: int
    used: int  # largest index with a weight, plus one
    start: Ints
    index: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]  # of constant nodes

    def columns(self, features: int, bias: np.float32, label: Ints) -> tuple[Any, Ints, Any]:
        """Weights, labels and biases as layers_of_nodes wants them."""
        node = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        own = self.bias.copy()
        is_bias = self.index == 1
        own[node[is_bias]] += self.value[is_bias] * bias
        kept_before = np.concatenate([[0], np.cumsum(~is_bias)])
        parts = self.value[~is_bias], self.index[~is_bias] - _FIRST, kept_before[self.start]
        weights = sp.csc_array(parts, shape=(features, len(self.start) - 1))
        return weights, label, own


def _read_weights(path: Path, nodes: int) -> _Bases:
    file = _Bytes(path)
    count = file.one("<i", "the number of classifiers")
    if count != nodes:
        raise wrong(path, f"it has {count:,} classifiers; expected {nodes:,}, one per node of the tree")
    start, indices, values = [0], [], []
    bias = np.zeros(nodes, np.float32)
    losses: set[int] = set()
    for node in range(nodes):
        classes, first, loss = file.take("<iii", f"classifier {node}")
        if classes not in (0, 1, 2) or first not in (0, 1) or loss not in _ACTIVATIONS:
            raise wrong(
                path,
                f"classifier {node} has {classes} classes, the first {first}, loss {loss}; 1 or 2 classes, 0 or 1, and "
                "loss 0 (logistic) or 1 (squared hinge) are known",
            )
        if classes > 1:
            index, value = _read_vector(file, node)
            indices.append(index)
            values.append(-value if first == 0 else value)
            start.append(start[-1] + len(index))
            losses.add(loss)
        else:
            bias[node] = _CONSTANT if first == 1 else -_CONSTANT
            start.append(start[-1])
            losses |= set() if losses or node + 1 < nodes else {loss}
    file.done()
    if len(losses) != 1:
        raise wrong(path, f"its classifiers have the losses {sorted(losses)}; expected one for all")
    index = np.concatenate(indices) if indices else np.zeros(0, np.int32)
    value = np.concatenate(values) if values else np.zeros(0, np.float32)
    used = int(index.max(initial=1)) + 1
    return _Bases(losses.pop(), used, np.array(start, np.int64), index, value, bias)


def _read_vector(file: _Bytes, node: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The weights of one classifier, indices rising; index 0 and stored zeros left out."""
    field = f"the weights of classifier {node}"
    file.take("<QQ", field)
    size, nonzeros, sparse = file.take("<QQB", field)
    if size > MOST_FEATURES or nonzeros > size or sparse > 1:
        raise wrong(file.path, f"{field} are {nonzeros:,} of {size:,}; expected at most as many as there are")
    if sparse:
        pairs = file.array(_PAIR, nonzeros, field)
        order = np.argsort(pairs["index"], kind="stable")
        index, value = pairs["index"][order], pairs["value"][order]
    else:
        dense = file.array("<f4", size, field)
        index = np.flatnonzero(dense).astype(np.int32)
        value = dense[index]
    if file.one("<B", f"the gradients of classifier {node}") != 0:
        raise wrong(file.path, f"classifier {node} has gradients: it is still being trained, which is not supported")
    if len(index) and (index[0] < 0 or index[-1] >= size or (np.diff(index) <= 0).any()):
        raise wrong(
            file.path,
            f"{field} have indices that lie outside or are there twice; expected 0 to {size - 1:,}, each once",
        )
    if not np.isfinite(value).all():
        raise wrong(file.path, f"{field} are not all finite; expected finite numbers")
    kept = (index > 0) & (value != 0)
    return index[kept], value[kept]


# --- writing ----------------------------------------------------------------------------------------------------------


def write(model: Model, folder: Path, tree: int | None = None) -> list[str]:
    """Makes a folder that napkinXC loads and whose exact search answers the same; returns what is not kept."""
    info = model.info()
    activation = Activation.parse(info["activation"], info["path"], info["discount"])
    loss = _loss_of(activation)
    trees = range(info["trees"]) if tree is None else [tree]
    folder.mkdir(parents=True)
    many = len(trees) > 1
    for number, one in enumerate(trees):
        member = folder / f"member_{number}" if many else folder
        member.mkdir(exist_ok=True)
        _write_member(model.layers(one), loss, member)
    name = b"plt"
    args = struct.pack(f"<Q{len(VERSION)}s", len(VERSION), VERSION.encode())
    args += struct.pack("<fBif", 1.0, info["unit_rows"], 0, 0.0)
    args += struct.pack(f"<iQ{len(name)}si", _PLT, len(name), name, len(trees))
    (folder / "args.bin").write_bytes(args)
    return _differences(model, activation)


def _loss_of(activation: Activation) -> int:
    if activation.path in ("last", "sum") or activation.discount != 1:
        raise SettingsError(
            f"napkinXC multiplies probabilities; a model with activation {activation.name}, path {activation.path} and "
            f"discount {activation.discount} cannot be written for it"
        )
    name = activation.name.removeprefix("log-")
    for loss, ours in _ACTIVATIONS.items():
        if name == ours:
            return loss
    raise SettingsError(f"napkinXC knows sigmoid and hinge-2; a model with {activation.name} cannot be written for it")


def _differences(model: Model, activation: Activation) -> list[str]:
    info = model.info()
    notes = [
        "napkinXC's Python class reads these from its caller, not from the folder: "
        f"PLT(folder, norm={bool(info['unit_rows'])}, bias=1.0, ensemble={info['trees']})"
    ]
    if activation.path == "log-exp":
        notes.append("scores are multiplied there, not added as logs, and differ in their last digits")
    if "keys/blob" in model.info()["bytes_by_section"]:
        notes.append("napkinXC knows labels by number; keys and names stay behind")
    if model.text is not None:
        notes.append("text features stay behind; make rows with model.transform")
    return notes


def _write_member(layers: list[Layer], loss: int, folder: Path) -> None:
    """One tree. A root is put on top unless the top layer is a single node already."""
    parents, labels, columns, biases = [np.array([-1])], [np.array([-1])], [], []
    first = 1
    if layers[0].weights.shape[1] == 1 and len(layers) > 1:
        parents, labels, first = [], [], 0
    above = 0  # number of the first node of the layer above
    for depth, layer in enumerate(layers):
        nodes = layer.weights.shape[1]
        parent = np.asarray(layer.parent, np.int64) + above
        parents.append(np.full(nodes, -1) if depth == 0 and first == 0 else parent)
        labels.append(given_labels(layer, depth == len(layers) - 1))
        columns.append(sp.csc_array(layer.weights))
        biases.append(np.zeros(nodes, np.float32) if layer.bias is None else np.asarray(layer.bias, np.float32))
        above = first if depth == 0 else above + layers[depth - 1].weights.shape[1]
    parent, label = np.concatenate(parents), np.concatenate(labels)
    _write_tree(parent, label, folder)
    with open(folder / "weights.bin", "wb") as stream:
        stream.write(struct.pack("<i", len(parent)))
        if first == 1:
            _write_base(stream, loss, np.zeros(0, np.int64), np.zeros(0, np.float32), np.float32(np.inf), 0)
        for weights, bias in zip(columns, biases, strict=True):
            for node, own in enumerate(bias):
                part = slice(weights.indptr[node], weights.indptr[node + 1])
                _write_base(stream, loss, weights.indices[part], weights.data[part], own, weights.shape[0])


def _write_tree(parent: Ints, label: Ints, folder: Path) -> None:
    nodes = len(parent)
    pairs = np.stack([np.arange(nodes), label], axis=1).astype("<i4")
    head = struct.pack("<ii", int((label >= 0).sum()), nodes)
    (folder / "tree.bin").write_bytes(head + pairs.tobytes() + struct.pack("<i", 0) + parent.astype("<i4").tobytes())
    lines = [f"{int((label >= 0).sum())} {nodes}"]
    lines += [f"{up} {i} {'' if name < 0 else name}" for i, (up, name) in enumerate(zip(parent, label, strict=True))]
    (folder / "tree.txt").write_text("\n".join(lines) + "\n")


def _write_base(stream: Any, loss: int, index: Any, value: Any, bias: np.float32, features: int) -> None:
    """One classifier: the bias at index 1, features behind it, as a sparse vector."""
    own = np.clip(bias, -_CERTAIN, _CERTAIN)
    pairs = np.empty(len(index) + 1, _PAIR)
    pairs["index"][0], pairs["value"][0] = 1, own
    pairs["index"][1:], pairs["value"][1:] = index + _FIRST, value
    pairs = pairs[pairs["value"] != 0]
    size, count = features + _FIRST, len(pairs)
    stream.write(struct.pack("<iii", 2, 1, loss) + struct.pack("<QQ", size, count))
    stream.write(struct.pack("<QQB", size, count, 1) + pairs.tobytes() + b"\0")
