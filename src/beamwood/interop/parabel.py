"""parabel.py — a folder of text files of Parabel or Bonsai in, a model out.

    param       one value a line; Parabel has 15 of them, Bonsai 20 (an empty line is a value too)
    {t}.tree    features, labels, number of nodes; then the nodes, the root first, each as: is it a leaf; its children
                (Parabel: two numbers always, Bonsai: only inner nodes); its depth; its labels; and a matrix, "columns
                rows" and a line "index:weight …" for each child or label; the last index is the bias

Both divide queries by their length, add log scores along the path and show exp; the mean of the trees is the answer.
Bonsai multiplies a node's log score by `discount` before its children add theirs. Leaves that are reached early keep
one place in the beam until the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.interop.foreign import MOST_FEATURES, Imported, check_features, errors_of, read_text, wrong
from beamwood.interop.layering import layers_of_nodes
from beamwood.model import Model

Array = npt.NDArray[Any]

_PARABEL, _BONSAI = 15, 20
_KINDS = {_PARABEL: "Parabel", _BONSAI: "Bonsai"}
_MOST_TREES = 10_000
_LARGEST_PARAM = 1 << 16


def is_folder(folder: Path) -> bool:
    """Whether it looks like one."""
    return (folder / "param").is_file() and (folder / "0.tree").is_file()


@dataclass(frozen=True)
class _Param:
    """What the file `param` says."""

    bonsai: bool
    features: int
    labels: int
    trees: int
    bias: float
    discount: float
    loss: str


def _read_param(path: Path) -> _Param:
    lines = read_text(path, _LARGEST_PARAM).split("\n")
    while lines and lines[-1] == "":
        lines.pop()
    if len(lines) not in _KINDS:
        raise wrong(path, f"it has {len(lines)} lines; expected {_PARABEL} (Parabel) or {_BONSAI} (Bonsai)")
    bonsai = len(lines) == _BONSAI

    def value(line: int, name: str, least: float, most: float) -> float:
        try:
            found = float(lines[line])
        except ValueError:
            found = float("nan")
        if not least <= found <= most:
            raise wrong(path, f"line {line + 1}, {name}, is {lines[line]!r:.60}; expected {least:g} to {most:g}")
        return found

    features, labels = (int(value(i, name, 1, MOST_FEATURES)) for i, name in ((0, "num_Xf"), (1, "num_Y")))
    trees = int(value(6 if bonsai else 4, "num_tree", 1, _MOST_TREES))
    if bonsai:
        bias, kind, discount = value(4, "bias", -1e30, 1e30), value(16, "septype", 0, 1), value(13, "discount", 1e-6, 1)
    else:
        bias, kind, discount = value(7, "bias_feat", -1e30, 1e30), value(12, "classifier_kind", 0, 1), 1.0
    loss = "log-sigmoid" if kind == 1 else "log-hinge-2"
    return _Param(bonsai, features, labels, trees, bias, discount, loss)


def read(folder: Path) -> Imported:
    """The model in a folder."""
    param = _read_param(folder / "param")
    models = []
    for number in range(param.trees):
        path = folder / f"{number}.tree"
        with errors_of(path):
            tree = _Lines(path).tree(param)
            check_features(path, param.features, tree[1].nnz)
            layers = layers_of_nodes(*tree, level_labels=True, labels=param.labels)
            how: dict[str, Any] = {"activation": param.loss, "path": "log-exp", "discount": param.discount}
            made_by = _KINDS[_BONSAI if param.bonsai else _PARABEL]
            models.append(Model.from_layers(layers, **how, unit_rows=True, settings={"made_by": made_by}))
    with errors_of(folder):
        model = models[0] if len(models) == 1 else Model.from_trees(models)
    found = {"trees": param.trees, "bias": param.bias, "loss": param.loss, "discount": param.discount}
    return Imported(made_by, model, found, ())


class _Lines:
    """A tree file line by line; an error names the line."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.at = path, read_text(path).split("\n"), 0

    def wrong(self, what: str) -> Exception:
        """An error in the line that was read last."""
        return wrong(self.path, f"line {self.at}: {what}")

    def next(self, what: str) -> str:
        """The next line."""
        if self.at >= len(self.lines):
            raise wrong(self.path, f"it ends too early; expected {what}")
        self.at += 1
        return self.lines[self.at - 1]

    def numbers(self, what: str, count: int | None = None) -> list[int]:
        """Whole numbers of a line."""
        words = self.next(what).split()
        if (count is not None and len(words) != count) or not all(re.fullmatch(r"-?\d{1,10}", word) for word in words):
            raise self.wrong(f"found {' '.join(words)!r:.60}; expected {what}")
        return [int(word) for word in words]

    def tree(self, param: _Param) -> tuple[Array, Any, Array, Array]:
        """Parents, weights, labels and biases of all nodes but the root."""
        sizes = [self.numbers(what, 1)[0] for what in ("the number of features", "of labels", "of nodes")]
        if sizes[0] != param.features or sizes[1] != param.labels or not 1 <= sizes[2] <= len(self.lines):
            raise self.wrong(
                f"features, labels and nodes are {sizes}; expected {param.features} and {param.labels}, as param says"
            )
        children: list[list[int]] = []
        labels: list[list[int]] = []
        columns: list[Any] = []
        for _ in range(sizes[2]):
            leaf, below = self._head(param.bonsai, sizes[2])
            own = self.numbers("the number of labels and the labels")
            if not own or own[0] != len(own) - 1 or not all(0 <= label < param.labels for label in own[1:]):
                raise self.wrong(
                    f"found {own!r:.60}; expected the number of labels and the labels, each below {param.labels:,}"
                )
            matrix = self._matrix(param.features + 1, len(own) - 1 if leaf else len(below))
            children.append([] if leaf else below)
            labels.append(own[1:] if leaf else [])
            columns.append(matrix)
        return _assembled(self, children, labels, columns, param)

    def _head(self, bonsai: bool, nodes: int) -> tuple[bool, list[int]]:
        """Whether a node is a leaf, and its children; reads on to its depth."""
        leaf = self.numbers("0 or 1: is it a leaf", 1)[0]
        if leaf not in (0, 1):
            raise self.wrong(f"the leaf flag is {leaf}; expected 0 or 1")
        below = [] if bonsai and leaf else self.numbers("children", None if bonsai else 2)
        if not leaf and (not below or not all(0 < child < nodes for child in below)):
            raise self.wrong(f"the children are {below!r:.60}; expected numbers from 1 to {nodes - 1:,}")
        self.numbers("the depth", 1)
        return bool(leaf), below

    def _matrix(self, rows: int, columns: int) -> list[tuple[Array, Array]]:
        """(indices, weights) of each column."""
        found = self.numbers("the numbers of columns and rows", 2)
        if found != [columns, rows]:
            raise self.wrong(f"the matrix has {found[0]} columns of {found[1]} rows; expected {columns} of {rows}")
        return [self._column(rows) for _ in range(columns)]

    def _column(self, rows: int) -> tuple[Array, Array]:
        words = self.next("a column").split()
        try:
            pairs = np.array([word.split(":") for word in words], np.float64).reshape(len(words), 2)
        except ValueError:
            raise self.wrong("the column cannot be read; expected a list of index:weight") from None
        index = pairs[:, 0].astype(np.int64) if (np.abs(pairs[:, 0]) < 2**31).all() else np.full(len(words), -1)
        if (index != pairs[:, 0]).any() or (index < 0).any() or (index >= rows).any() or (np.diff(index) <= 0).any():
            raise self.wrong(f"indices do not rise, or lie outside; expected rising ones from 0 to {rows - 1:,}")
        with np.errstate(over="ignore"):
            weight = pairs[:, 1].astype(np.float32)
        if not np.isfinite(weight).all():
            raise self.wrong("a weight is not finite; expected finite float32 numbers")
        return index, weight


def _assembled(
    lines: _Lines, children: list[list[int]], labels: list[list[int]], columns: list[Any], param: _Param
) -> tuple[Array, Any, Array, Array]:
    """Nodes by number, the root's place taken by -1, then one more node for each label of a leaf."""
    parent = np.full(len(children), -2, np.int64)
    own: list[tuple[Array, Array]] = [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(children)
    more_parents: list[int] = []
    more_labels: list[int] = []
    more: list[tuple[Array, Array]] = []
    for node, (below, names) in enumerate(zip(children, labels, strict=True)):
        for child, column in zip(below, columns[node], strict=True) if below else ():
            if parent[child] != -2:
                raise lines.wrong(f"node {child} is the child of two nodes; expected one parent")
            parent[child], own[child] = node - 1, column
        more_parents += [node - 1] * len(names)
        more_labels += names
        more += columns[node] if names else []
    if (parent[1:] == -2).any():
        raise lines.wrong(f"node {1 + int(np.flatnonzero(parent[1:] == -2)[0])} is nobody's child; expected one parent")
    every = own[1:] + more
    start = np.concatenate([[0], np.cumsum([len(index) for index, _ in every])]).astype(np.int64)
    index = np.concatenate([np.zeros(0, np.int64), *(index for index, _ in every)])
    weight = np.concatenate([np.zeros(0, np.float32), *(weight for _, weight in every)])
    node_of = np.repeat(np.arange(len(every)), np.diff(start))
    is_bias = index == param.features
    bias = np.zeros(len(every), np.float32)
    bias[node_of[is_bias]] = weight[is_bias] * np.float32(param.bias)
    kept = np.concatenate([[0], np.cumsum(~is_bias)])
    parts = weight[~is_bias], index[~is_bias], kept[start]
    weights = sp.csc_array(parts, shape=(param.features, len(every)))
    label = np.concatenate([np.full(len(children) - 1, -1), np.array(more_labels, np.int64)]).astype(np.int64)
    return np.concatenate([parent[1:], np.array(more_parents, np.int64)]), weights, label, bias
