"""tree_text.py — a tree as text, as extremeText and napkinXC exchange it, in, a parent list out; and back.

leaves nodes
parent node [label]     a line per node, the root's parent is -1
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import SettingsError
from beamwood.interop.foreign import read_text, wrong
from beamwood.interop.layering import depths_of, given_labels
from beamwood.model import Model
from beamwood.storage.draft import checked_path

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeText:
    """The parent of each node (-1: the root) and its label (-1: none)."""

    parent: Ints
    label: Ints

    def parent_list(self) -> tuple[int, ...]:
        """As Settings(tree=…) wants it: one parent a node, the labels first, in order, -1 for the root."""
        labels = int((self.label >= 0).sum())
        has_child = np.zeros(len(self.parent), bool)
        has_child[self.parent[self.parent >= 0]] = True
        if (has_child & (self.label >= 0)).any():
            raise SettingsError("an inner node has a label; expected labels only at leaves. Give it a leaf.")
        if not np.array_equal(np.sort(self.label[self.label >= 0]), np.arange(labels)):
            raise SettingsError("labels are not numbered in order; expected 0 to n - 1, each once.")
        order = np.concatenate([np.flatnonzero(self.label >= 0), np.flatnonzero(self.label < 0)])
        order[:labels] = order[:labels][np.argsort(self.label[order[:labels]])]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        parent = self.parent[order]
        return tuple(np.where(parent < 0, -1, place[parent]).tolist())


def read_tree(source: Path | str) -> TreeText:
    """The tree in a file."""
    path = checked_path(source)
    first, *lines = read_text(path).split("\n")
    lines = [line for line in lines if line.strip()]
    head = _numbers(first, path, 1)
    if len(head) != 2 or head[1] != len(lines) or not 0 < head[0] <= head[1]:
        raise wrong(path, f"line 1 is {first!r:.60}; expected the numbers of leaves and nodes ({len(lines):,})")
    parent, label = np.full(len(lines), -2, np.int64), np.full(len(lines), -1, np.int64)
    for number, line in enumerate(lines, start=2):
        found = _numbers(line, path, number)
        if len(found) not in (2, 3) or not 0 <= found[1] < len(lines) or parent[found[1]] != -2:
            raise wrong(path, f"line {number} is {line!r:.60}; expected parent, node (once each) and maybe a label")
        if not -1 <= found[0] < len(lines) or (len(found) == 3 and found[2] < -1):
            limits = f"a parent from -1 to {len(lines) - 1:,}, a label from -1 on"
            raise wrong(path, f"line {number} has parent {found[0]}, label {found[2:]}; expected {limits}")
        parent[found[1]] = found[0]
        label[found[1]] = found[2] if len(found) == 3 else -1
    if int((label >= 0).sum()) != head[0] or int((parent == -1).sum()) != 1:
        there = f"{int((label >= 0).sum()):,} labels and {int((parent == -1).sum()):,} roots"
        raise wrong(path, f"{there}; expected {head[0]:,} and 1")
    try:
        depths_of(parent)
    except ValueError as error:
        raise wrong(path, str(error)) from None
    return TreeText(parent, label)


def _numbers(line: str, path: Path, number: int) -> list[int]:
    words = line.split()
    if not all(word.lstrip("-").isdecimal() and word.isascii() and len(word) < 11 for word in words):
        raise wrong(path, f"line {number} is {line!r:.60}; expected whole numbers")
    return [int(word) for word in words]


def tree_of(model: Model, tree: int = 0) -> TreeText:
    """The structure of a model's tree, with a root on top."""
    parents, labels = [np.array([-1])], [np.array([-1])]
    above, first = 0, 1
    layers = model.layers(tree)
    for layer in layers:
        parents.append(np.asarray(layer.parent, np.int64) + above)
        labels.append(given_labels(layer, layer is layers[-1]))
        above, first = first, first + len(parents[-1])
    return TreeText(np.concatenate(parents), np.concatenate(labels))


def write(model: Model, target: Path, tree: int | None = None) -> list[str]:
    """Writes a model's tree to a file."""
    if tree is None and model.info()["trees"] > 1:
        raise SettingsError(
            f"the model has {model.info()['trees']} trees; expected one. Choose it with tree=0 (--tree 0)."
        )
    found: Any = tree_of(model, tree or 0)
    lines = [f"{int((found.label >= 0).sum())} {len(found.parent)}"]
    both = zip(found.parent.tolist(), found.label.tolist(), strict=True)
    lines += [f"{up} {node} {'' if name < 0 else name}".rstrip() for node, (up, name) in enumerate(both)]
    target.write_text("\n".join(lines) + "\n")
    return ["only the tree, without weights"]
