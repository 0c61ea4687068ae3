"""Text models of Parabel and Bonsai, made by hand here: their scores are those that a plain script computes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.foreign import check_refused
from support.parabel import FEATURES, LABELS, Column, Node, saved

from beamwood.interop.convert import kind_of, read


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
            expected: dict[int, float] = {}
            for root in roots:
                for label, score in scores_of(root, x, bias, logistic, discount if bonsai else 1, beam).items():
                    expected[label] = expected.get(label, 0) + score / len(roots)
            ours = {int(j): float(s) for j, s in zip(labels[i], scores[i], strict=True) if j >= 0}
            assert ours.keys() == expected.keys(), (beam, i)
            for label, score in expected.items():
                assert ours[label] == pytest.approx(score, abs=1e-6), (beam, i, label)


@pytest.mark.parametrize("layout", ["chunk", "column", "cascade"])
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
    "many features": (many_features, r"0.tree: it says 2,147,483,646 features; expected at most"),
    "short param": (lambda f: (f / "param").write_text("1\n2\n"), r"param: it has 2 lines; expected 15 .* or 20"),
    "features": (replace_line("param", 1, "1e99"), r"param: line 1, num_Xf, is '1e99'"),
    "a word": (replace_line("param", 14, "abc"), r"param: line 14, discount, is 'abc'"),
    "a tree more": (replace_line("param", 7, "3"), r"2.tree: the file is not there"),
    "nodes": (replace_line("0.tree", 3, "9999999"), r"0.tree: line 3: "),
    "no leaf flag": (replace_line("0.tree", 4, "2"), r"0.tree: line 4: the leaf flag is 2; expected 0 or 1"),
    "children": (replace_line("0.tree", 5, "1 2 3 999"), r"0.tree: line 5: the children are \[1, 2, 3, 999\]"),
    "twice": (replace_line("0.tree", 5, "1 2 2 4"), r"0.tree: .*node 2 is the child of two nodes"),
    "depth": (replace_line("0.tree", 6, ""), r"0.tree: line 6: found ''; expected the depth"),
    "labels": (replace_line("0.tree", 7, "3 1 2 99"), r"0.tree: line 7: found \[3, 1, 2, 99\]"),
    "matrix": (
        replace_line("0.tree", 8, "4 99"),
        r"0.tree: line 8: the matrix has 4 columns of 99 rows; expected 4 of 13",
    ),
    "column": (replace_line("0.tree", 9, "1:2 x"), r"0.tree: line 9: .*expected a list of index:weight"),
    "index": (replace_line("0.tree", 9, "99:1"), r"0.tree: line 9: indices do not rise"),
    "falling": (replace_line("0.tree", 9, "5:1 3:1"), r"0.tree: line 9: indices do not rise"),
    "nan": (replace_line("0.tree", 9, "3:nan"), r"0.tree: line 9: a weight is not finite"),
    "cut": (lambda f: (f / "0.tree").write_text((f / "0.tree").read_text()[:200]), r"0.tree: "),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_file_and_line(name: str, tmp_path: Path) -> None:
    spoil, message = HOSTILE[name]
    saved(tmp_path / "m", 1, True)
    spoil(tmp_path / "m")
    check_refused(read, tmp_path / "m", message)
