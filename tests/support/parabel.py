"""Hand-made trees of Parabel and Bonsai, and the folders that their programs would write for them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

FEATURES, LABELS = 12, 17
Column = dict[int, float]


@dataclass
class Node:
    """A node of a hand-made tree: a column of weights for each child or label."""

    labels: list[int]
    depth: int
    children: list[Node] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)


def grown(rng: random.Random, labels: list[int], depth: int, most: int, width: int) -> Node:
    """A tree over some labels, uneven on purpose."""
    node = Node(labels, depth)
    if len(labels) > 4 and depth < most:
        cuts = sorted(rng.sample(range(1, len(labels)), width - 1))
        parts = [labels[a:b] for a, b in zip([0, *cuts], [*cuts, len(labels)], strict=True)]
        node.children = [grown(rng, part, depth + 1, most, width) for part in parts]
    for _ in node.children or labels:
        features = sorted([*rng.sample(range(FEATURES), rng.randint(0, 6)), FEATURES])  # the bias keeps ties away
        node.columns.append({f: round(rng.uniform(-0.7, 0.7), 6) for f in features})
    return node


def breadth_first(root: Node) -> list[Node]:
    order = [root]
    for node in order:
        order += node.children
    return order


def written(root: Node, bonsai: bool) -> str:
    """The text of a tree file."""
    order = breadth_first(root)
    number = {id(node): i for i, node in enumerate(order)}
    lines = [str(FEATURES), str(LABELS), str(len(order))]
    for node in order:
        leaf = not node.children
        lines.append("1" if leaf else "0")
        if not bonsai:
            below = [number[id(child)] for child in node.children] or [-1, -1]
            lines.append(" ".join(map(str, below)))
        elif not leaf:
            lines.append(" ".join(str(number[id(child)]) for child in node.children))
        lines += [str(node.depth), " ".join(map(str, [len(node.labels), *node.labels]))]
        lines.append(f"{len(node.columns)} {FEATURES + 1}")
        lines += [" ".join(f"{f}:{w:.6f}" for f, w in column.items()) for column in node.columns]
    return "\n".join(lines) + "\n"


def param_of(bonsai: bool, trees: int, bias: float, logistic: bool, discount: float) -> str:
    """The text of the file `param`."""
    kind = int(logistic)
    values: list[object] = [FEATURES, LABELS, 1, 0, trees, 1.0, 100, bias, 0.1, 0, 0.0001, 20, kind, 0, 10]
    if bonsai:
        rest = [2, 0.1, 0, 0.0001, 1, 10, discount, 20, 0, kind, 0, "", 30]
        values = [FEATURES, LABELS, 1, 3, bias, 0, trees, *rest]
    return "\n".join(map(str, values)) + "\n"


def saved(folder: Path, seed: int, bonsai: bool, trees: int = 2, logistic: bool = False, **how: float) -> list[Node]:
    """A folder with some hand-made trees."""
    rng = random.Random(seed)
    folder.mkdir()
    (folder / "param").write_text(param_of(bonsai, trees, how.get("bias", 1.0), logistic, how.get("discount", 0.98)))
    roots = []
    for tree in range(trees):
        labels = list(range(LABELS))
        rng.shuffle(labels)
        roots.append(grown(rng, labels, 0, how.get("deep", 3), 4 if bonsai else 2))
        (folder / f"{tree}.tree").write_text(written(roots[-1], bonsai))
    return roots
