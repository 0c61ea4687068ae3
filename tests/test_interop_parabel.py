"""Text models of Parabel and Bonsai, made by hand here: their scores are those that a plain script computes."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from foreign import check_refused

from beamwood.interop.convert import kind_of, read

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


def score_of(x: Column, column: Column, bias: float, logistic: bool) -> float:
    """The log score of one classifier for a row of length 1 and a bias behind it."""
    z = sum(x.get(f, 0.0) * w for f, w in column.items()) + bias * column.get(FEATURES, 0.0)
    return -math.log1p(math.exp(-z)) if logistic else -(max(0.0, 1 - z) ** 2)


def scores_of(root: Node, x: Column, bias: float, logistic: bool, discount: float, beam: int) -> dict[int, float]:
    """Beam search as both programs do it: leaves stay in the beam until all nodes of it are leaves."""
    length = math.sqrt(sum(v * v for v in x.values())) or 1.0
    x = {f: v / length for f, v in x.items()}
    open_ = [(0.0, root)]
    while any(node.children for _, node in open_):
        after = []
        for score, node in open_:
            if not node.children:
                after.append((score, node))
            for child, column in zip(node.children, node.columns, strict=True) if node.children else ():
                after.append((discount * score + score_of(x, column, bias, logistic), child))
        open_ = sorted(after, key=lambda pair: -pair[0])[:beam]
    found = {}
    for score, node in open_:
        for label, column in zip(node.labels, node.columns, strict=True):
            found[label] = math.exp(discount * score + score_of(x, column, bias, logistic))
    return found


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


def queries(seed: int) -> Any:
    return sp.random_array((9, FEATURES), density=0.4, rng=np.random.default_rng(seed), dtype=np.float32, format="csr")


@pytest.mark.parametrize("bonsai", [False, True])
@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_a_plain_script(bonsai: bool, logistic: bool, seed: int, tmp_path: Path) -> None:
    bias, discount = (1.0, 0.98) if seed % 2 else (0.5, 0.7)
    roots = saved(tmp_path / "m", seed, bonsai, logistic=logistic, bias=bias, discount=discount)
    assert kind_of(tmp_path / "m") == "parabel"
    found = read(tmp_path / "m")
    assert found.kind == ("Bonsai" if bonsai else "Parabel")
    X = queries(seed)
    for beam in (2, 3, 50):
        labels, scores = found.model.topk(X, LABELS, beam)
        for i in range(X.shape[0]):
            x = dict(zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True))
            wanted: dict[int, float] = {}
            for root in roots:
                for label, score in scores_of(root, x, bias, logistic, discount if bonsai else 1, beam).items():
                    wanted[label] = wanted.get(label, 0) + score / len(roots)
            ours = {int(j): float(s) for j, s in zip(labels[i], scores[i], strict=True) if j >= 0}
            assert ours.keys() == wanted.keys(), (beam, i)
            for label, score in wanted.items():
                assert ours[label] == pytest.approx(score, abs=1e-6), (beam, i, label)


@pytest.mark.parametrize("layout", ["chunk", "column", "threaded"])
def test_every_layout_answers_alike(layout: str, tmp_path: Path) -> None:
    saved(tmp_path / "m", 5, True)
    model = read(tmp_path / "m").model
    for one, other in zip(model.topk(queries(5)), model.using(layout=layout).topk(queries(5)), strict=True):
        assert one.tobytes() == other.tobytes()


def replace_line(name: str, line: int, text: str) -> Any:
    def spoil(folder: Path) -> None:
        lines = (folder / name).read_text().split("\n")
        lines[line - 1] = text
        (folder / name).write_text("\n".join(lines))

    return spoil


def many_features(folder: Path) -> None:
    """All files agree on a number of features that nothing bears out."""

    replace_line("param", 1, str(2**31 - 2))(folder)
    for path in folder.glob("*.tree"):
        first, *rest = path.read_text().split("\n")
        assert first == str(FEATURES)
        rest = [re.sub(rf"^(\d+) {FEATURES + 1}$", rf"\1 {2**31 - 1}", line) for line in rest]
        path.write_text("\n".join([str(2**31 - 2), *rest]))


HOSTILE: dict[str, tuple[Any, str]] = {
    "many features": (many_features, r"0.tree: it says 2,147,483,646 features; with \d+ weights"),
    "short param": (lambda f: (f / "param").write_text("1\n2\n"), r"param: it has 2 lines; 15 .* or 20"),
    "features": (replace_line("param", 1, "1e99"), r"param: line 1, num_Xf, is '1e99'"),
    "a word": (replace_line("param", 14, "abc"), r"param: line 14, discount, is 'abc'"),
    "a tree more": (replace_line("param", 7, "3"), r"2.tree: the file is not there"),
    "nodes": (replace_line("0.tree", 3, "9999999"), r"0.tree: line 3: "),
    "no leaf flag": (replace_line("0.tree", 4, "2"), r"0.tree: line 4: 2, 0 or 1 is wanted"),
    "children": (replace_line("0.tree", 5, "1 2 3 999"), r"0.tree: line 5: the children \[1, 2, 3, 999\]"),
    "twice": (replace_line("0.tree", 5, "1 2 2 4"), r"0.tree: .*node 2 is the child of two nodes"),
    "depth": (replace_line("0.tree", 6, ""), r"0.tree: line 6: '', the depth is wanted"),
    "labels": (replace_line("0.tree", 7, "3 1 2 99"), r"0.tree: line 7: \[3, 1, 2, 99\]"),
    "matrix": (replace_line("0.tree", 8, "4 99"), r"0.tree: line 8: 4 columns of 99 rows, 4 of 13 are wanted"),
    "column": (replace_line("0.tree", 9, "1:2 x"), r"0.tree: line 9: not a list of index:weight"),
    "index": (replace_line("0.tree", 9, "99:1"), r"0.tree: line 9: indices that do not rise"),
    "falling": (replace_line("0.tree", 9, "5:1 3:1"), r"0.tree: line 9: indices that do not rise"),
    "nan": (replace_line("0.tree", 9, "3:nan"), r"0.tree: line 9: a weight that is not a finite"),
    "cut": (lambda f: (f / "0.tree").write_text((f / "0.tree").read_text()[:200]), r"0.tree: "),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_file_and_line(name: str, tmp_path: Path) -> None:
    spoil, message = HOSTILE[name]
    saved(tmp_path / "m", 1, True)
    spoil(tmp_path / "m")
    check_refused(read, tmp_path / "m", message)
