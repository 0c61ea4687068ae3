"""omikuji.py — a folder of omikuji's trees in, a model out; and a model in, such a folder out.

    settings.json   how many features there are, and the loss: "Hinge" or "Log"
    tree{i}.cbor    nodes in nodes: a Branch has the weights of its children and then the children, a Leaf the weights
                    of its labels and then the labels; the last row of weights is the bias

omikuji divides queries by their length, adds log scores along the path and shows exp; the mean of the trees is the
answer. A leaf that is reached early keeps one place in the beam until the end. All this is the same here. One thing is
not: inside each leaf omikuji keeps only the best `beam` labels, so with several trees and leaves of more labels than
the beam is wide a label's mean may lack a tree's share there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.errors import SettingsError
from beamwood.interop.cbor import Reader, Writer
from beamwood.interop.foreign import MOST_FEATURES, Imported, check_features, errors_of, read_json, whole, wrong
from beamwood.interop.layering import given_labels, layers_of_nodes
from beamwood.model import Model
from beamwood.storage.activations import Activation
from beamwood.storage.layers import Layer

Array = npt.NDArray[Any]

KIND = "omikuji"
_ACTIVATIONS = {"Hinge": "log-hinge-2", "Log": "log-sigmoid"}
_CERTAIN = 1e4  # an infinite bias, as a weight: both losses take it for certainty


def is_folder(folder: Path) -> bool:
    """Whether it looks like one."""
    return (folder / "settings.json").is_file() and (folder / "tree0.cbor").is_file()


def read(folder: Path) -> Imported:
    """The model in a folder."""
    path = folder / "settings.json"
    settings = read_json(path)
    features = whole(settings, "n_features", path, 1, MOST_FEATURES - 1)
    loss = settings.get("classifier_loss_type")
    if loss not in ("Hinge", "Log"):
        raise wrong(path, f"classifier_loss_type is {loss!r:.60}; expected 'Hinge' or 'Log'")
    trees = [_read_tree(path, features) for path in _tree_files(folder)]
    check_features(path, features, sum(columns.nnz for tree in trees for columns in tree.columns))
    labels = 1 + max(int(tree.label.max(initial=-1)) for tree in trees)
    models = []
    for tree in trees:
        with errors_of(tree.path):
            layers = layers_of_nodes(tree.parent, tree.weights, tree.label, tree.bias, level_labels=True, labels=labels)
            how: dict[str, Any] = {"activation": _ACTIVATIONS[loss], "path": "log-exp", "unit_rows": True}
            models.append(Model.from_layers(layers, **how, settings={"made_by": KIND}))
    with errors_of(folder):
        model = models[0] if len(models) == 1 else Model.from_trees(models)
    widest = max(tree.widest for tree in trees)
    notes = []
    if len(trees) > 1:
        notes.append(
            f"the largest leaf has {widest:,} labels; where a beam is narrower than that, omikuji leaves out labels "
            "inside a leaf before it takes the mean of its trees, which is not done here"
        )
    missing = max(labels - int((tree.label >= 0).sum()) for tree in trees)
    if missing:
        notes.append(f"{missing:,} labels are in no leaf of a tree; there they score 0")
    found = {"loss": loss, "trees": len(trees), "largest_leaf": widest}
    return Imported(KIND, model, found, tuple(notes))


def _tree_files(folder: Path) -> list[Path]:
    """The trees by number; there may be no gap."""
    numbered = {}
    for path in folder.glob("tree*.cbor"):
        if found := re.fullmatch(r"tree(\d{1,6})\.cbor", path.name):
            numbered[int(found[1])] = path
    for number in range(len(numbered)):
        if number not in numbered:
            raise wrong(
                folder / f"tree{number}.cbor", f"the file is not there; expected {len(numbered)} trees, numbered from 0"
            )
    if not numbered:
        raise wrong(folder / "tree0.cbor", "the file is not there")
    return [numbered[number] for number in range(len(numbered))]


@dataclass
class _Tree:
    """A tree node by node; the root, which has no classifier, is not among them."""

    path: Path
    features: int
    parents: list[Array] = field(default_factory=list)
    labels: list[Array] = field(default_factory=list)
    columns: list[Any] = field(default_factory=list)
    nodes: int = 0
    widest: int = 0

    def add(self, parent: int, columns: Any, labels: Array | None) -> int:
        """The children of a node; the number of the first."""
        count, first = columns.shape[1], self.nodes
        self.parents.append(np.full(count, parent, np.int64))
        self.labels.append(np.full(count, -1, np.int64) if labels is None else labels.astype(np.int64))
        self.columns.append(columns)
        self.nodes += count
        self.widest = max(self.widest, 0 if labels is None else count)
        return first

    @property
    def parent(self) -> Array:
        """The parent of each node."""
        return np.concatenate(self.parents)

    @property
    def label(self) -> Array:
        """The label of each node, -1 for inner ones."""
        return np.concatenate(self.labels)

    @property
    def weights(self) -> Any:
        """Features x nodes."""
        return self._all()[0]

    @property
    def bias(self) -> Array:
        """The last row of the weights."""
        return self._all()[1]

    def _all(self) -> tuple[Any, Array]:
        whole_ = sp.hstack(self.columns, format="csc")
        is_bias = whole_.indices == self.features
        bias = np.zeros(self.nodes, np.float32)
        bias[np.repeat(np.arange(self.nodes), np.diff(whole_.indptr))[is_bias]] = whole_.data[is_bias]
        kept = np.concatenate([[0], np.cumsum(~is_bias)])
        parts = whole_.data[~is_bias], whole_.indices[~is_bias], kept[whole_.indptr]
        return sp.csc_array(parts, shape=(self.features, self.nodes)), bias


def _read_tree(path: Path, features: int) -> _Tree:
    """Walks through nodes in nodes without recursion: a hostile tree may be deep."""
    reader, tree = Reader(path), _Tree(path, features)
    waiting = [(-1, 1)]  # (the next node to open, how many siblings are left)
    while waiting:
        node, left = waiting.pop()
        if left > 1:
            waiting.append((node + 1, left - 1))
        children = _read_node(reader, tree, node)
        if children is not None:
            waiting.append(children)
    reader.done()
    return tree


def _read_node(reader: Reader, tree: _Tree, node: int) -> tuple[int, int] | None:
    """One node up to its children: the first of them and their number, or None for a leaf."""
    kind = _tag(reader, "a node", ("Branch", "Leaf"))
    _begin(reader, kind, 2)
    _name(reader, "weights")
    cells = _read_weights(reader, tree.features)
    if cells.columns == 0:
        raise reader.wrong(f"a {kind} has no children; expected at least one")
    if kind == "Branch":
        _name(reader, "children")
        count = reader.elements("children")
        labels = None
    else:
        _name(reader, "labels")
        labels = reader.whole_numbers("labels")
        count = len(labels)
    if count != cells.columns:
        raise reader.wrong(
            f"a {kind} has {count:,} children; expected {cells.columns:,}, as many as its weights have columns"
        )
    first = tree.add(node, cells.csc(tree.features + 1), labels)
    return (first, count) if labels is None else None


def _tag(reader: Reader, what: str, known: tuple[str, ...]) -> str:
    """The name of a variant: a map of one entry."""
    _begin(reader, what, 1)
    name = reader.text(what)
    if name not in known:
        raise reader.wrong(f"{what} is called {name!r:.40}; expected {' or '.join(known)}")
    return name


def _begin(reader: Reader, what: str, entries: int) -> None:
    found = reader.entries(what)
    if found != entries:
        raise reader.wrong(f"{what} has {found:,} fields; expected {entries}")


def _name(reader: Reader, name: str) -> None:
    found = reader.text(f"the field {name}")
    if found != name:
        raise reader.wrong(f"the field is {found!r:.40}; expected {name}")


@dataclass(frozen=True)
class _Cells:
    """Weights cell by cell; no memory is taken for columns before the children are counted."""

    row: Array
    column: Array
    value: Array
    columns: int

    def csc(self, rows: int) -> Any:
        """The matrix."""
        made = sp.csc_array(sp.coo_array((self.value, (self.row, self.column)), shape=(rows, self.columns)))
        made.sum_duplicates()
        return made


def _read_weights(reader: Reader, features: int) -> _Cells:
    """(features + 1) x children."""
    if _tag(reader, "weights", ("Sparse", "Dense")) == "Dense":
        return _read_dense(reader, features + 1)
    _begin(reader, "Sparse", 6)
    _name(reader, "outer_dim")
    rows = reader.whole("outer_dim")
    _name(reader, "inner_dim")
    columns = reader.whole("inner_dim")
    arrays = []
    for name in ("indptr", "outer_inds", "inner_inds"):
        _name(reader, name)
        arrays.append(reader.whole_numbers(name).astype(np.int64))
    _name(reader, "data")
    data = reader.floats("data")
    indptr, outer, inner = arrays
    if rows != features + 1:
        raise reader.wrong(f"outer_dim is {rows:,}; expected {features + 1:,}, as settings.json says")
    if len(indptr) != len(outer) + 1 or len(inner) != len(data):
        raise reader.wrong("indptr, outer_inds, inner_inds and data do not fit each other; expected matching lengths")
    if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
        raise reader.wrong("indptr is not in order; expected it to rise from 0 to the number of values")
    if (np.diff(outer) <= 0).any() or (len(outer) and outer[-1] >= rows) or (len(inner) and inner.max() >= columns):
        raise reader.wrong(
            f"outer_inds or inner_inds lie outside; expected rising rows below {rows:,} and columns below {columns:,}"
        )
    return _checked(reader, _Cells(np.repeat(outer, np.diff(indptr)), inner, data, columns))


def _read_dense(reader: Reader, rows: int) -> _Cells:
    _begin(reader, "Dense", 3)
    _name(reader, "v")
    version = reader.whole("v")
    _name(reader, "dim")
    dim = reader.whole_numbers("dim").tolist()
    _name(reader, "data")
    data = reader.floats("data")
    if version != 1 or len(dim) != 2 or dim[0] != rows or dim[0] * dim[1] != len(data):
        raise reader.wrong(
            f"Dense weights have version {version}, dim {dim!r:.60} and {len(data):,} values; expected version 1, "
            f"{rows:,} rows and a value per cell"
        )
    at = np.flatnonzero(data)
    return _checked(reader, _Cells(at // dim[1], at % dim[1], data[at], dim[1]))


def _checked(reader: Reader, cells: _Cells) -> _Cells:
    if not np.isfinite(cells.value).all():
        raise reader.wrong("data holds a number that is not finite; expected finite numbers")
    return cells


# --- writing ----------------------------------------------------------------------------------------------------------


def write(model: Model, folder: Path, tree: int | None = None) -> list[str]:
    """Makes a folder that omikuji loads; returns what is not kept or not the same there."""
    info = model.info()
    loss = _loss_of(Activation.parse(info["activation"], info["path"], info["discount"]))
    folder.mkdir(parents=True)
    chosen = range(info["trees"]) if tree is None else [tree]
    for number, one in enumerate(chosen):
        with open(folder / f"tree{number}.cbor", "wb") as stream:
            _write_tree(Writer(stream), model.layers(one))
    settings = {"n_features": model.n_features, "classifier_loss_type": loss}
    (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")
    notes = ["omikuji keeps only the best `beam` labels of each leaf; use a beam as wide as the largest leaf"]
    if not info["unit_rows"]:
        notes.append("omikuji divides queries by their length: only rows of length 1 get the same answers there")
    if "keys/blob" in info["bytes_by_section"]:
        notes.append("omikuji knows labels by number; keys and names stay behind")
    if model.text is not None:
        notes.append("text features stay behind; make rows with model.transform")
    return notes


def _loss_of(activation: Activation) -> str:
    names = {name.removeprefix("log-"): loss for loss, name in _ACTIVATIONS.items()}
    name = activation.name.removeprefix("log-")
    if name not in names or activation.path in ("last", "sum") or activation.discount != 1:
        raise SettingsError(
            f"omikuji knows the losses of hinge-2 and sigmoid whose leaves show probabilities; a model with activation "
            f"{activation.name}, path {activation.path} and discount {activation.discount} cannot be written for it"
        )
    return names[name]


class _LayerChildren:
    """The children of each node of a layer's parents: places, columns, biases, labels."""

    def __init__(self, layer: Layer, parents: int, last: bool) -> None:
        self.weights = sp.csc_array(layer.weights)
        self.label = given_labels(layer, last)
        self.bias = np.zeros(len(self.label), np.float32) if layer.bias is None else np.asarray(layer.bias, np.float32)
        parent = np.asarray(layer.parent, np.int64)
        self.order = np.argsort(parent, kind="stable")
        self.start = np.searchsorted(parent[self.order], np.arange(parents + 1))

    def of(self, node: int) -> Array:
        """The places of a node's children."""
        return self.order[self.start[node] : self.start[node + 1]]


def _write_tree(writer: Writer, layers: list[Layer]) -> None:
    """Nodes in nodes, front to back. A label beside inner nodes becomes a leaf of its own with a certain classifier."""
    sizes = [1, *(layer.weights.shape[1] for layer in layers)]
    rooms = [_LayerChildren(layer, above, layer is layers[-1]) for layer, above in zip(layers, sizes, strict=False)]
    features = layers[0].weights.shape[0]
    only = sp.csc_array((features, 1), dtype=np.float32)
    waiting: list[tuple[int, int]] = [(0, 0)]  # (layer of the children, node); the last is written next
    while waiting:
        depth, node = waiting.pop()
        writer.entries(1)
        if depth < 0:  # a lone label
            writer.text("Leaf")
            _write_weights(writer, only, np.array([np.inf], np.float32))
            writer.text("labels")
            writer.whole_numbers([node])
            continue
        room = rooms[depth]
        children = room.of(node)
        leaf = bool((room.label[children] >= 0).all())
        writer.text("Leaf" if leaf else "Branch")
        _write_weights(writer, room.weights[:, children], room.bias[children])
        if leaf:
            writer.text("labels")
            writer.whole_numbers(room.label[children])
            continue
        writer.text("children")
        writer.elements(len(children))
        for child in children[::-1].tolist():
            label = int(room.label[child])
            waiting.append((depth + 1, child) if label < 0 else (-1, label))


def _write_weights(writer: Writer, columns: Any, bias: Array) -> None:
    """The head of a node and its sparse weights: the rows that have any, the bias as the last."""
    clipped = np.clip(bias, -_CERTAIN, _CERTAIN).astype(np.float32)
    rows = sp.csr_array(sp.vstack([columns, sp.csr_array(clipped[None, :])], format="csr"))
    rows.sort_indices()
    filled = np.flatnonzero(np.diff(rows.indptr))
    writer.entries(2)
    writer.text("weights")
    writer.entries(1)
    writer.text("Sparse")
    writer.entries(6)
    for name, size in (("outer_dim", rows.shape[0]), ("inner_dim", rows.shape[1])):
        writer.text(name)
        writer.whole(size)
    starts = [0, *rows.indptr[filled + 1]]
    for name, values in (("indptr", starts), ("outer_inds", filled), ("inner_inds", rows.indices)):
        writer.text(name)
        writer.whole_numbers(values)
    writer.text("data")
    writer.floats(rows.data)
