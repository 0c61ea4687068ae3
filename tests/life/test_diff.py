"""What `diff` says of two models: counted by hand here; on the command line, as a page, and in a server's reload."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.problems import random_problem

import beamwood as bw

ROWS = [
    ("red wool socks", ["socks", "wool"]),
    ("blue wool socks", ["socks", "wool"]),
    ("warm wool hat", ["hats", "wool"]),
    ("straw hat for the sun", ["hats"]),
    ("leather boots", ["boots"]),
    ("rubber boots for rain", ["boots"]),
]
HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202eevil</td>'


def trained(rows: Any = ROWS, names: dict[str, str] | None = None, **more: Any) -> bw.Model:
    texts, labels = [text for text, _ in rows], [keys for _, keys in rows]
    return bw.train_text(texts, labels, names=names, **{"preset": "fast", **more}, progress=False)


def renamed(rows: Any, old: str, new: str) -> Any:
    return [(text, [new if key == old else key for key in keys]) for text, keys in rows]


def test_a_model_differs_from_itself_in_nothing() -> None:
    model = trained()
    found = bw.diff(model, model, [text for text, _ in ROWS], [keys for _, keys in ROWS])
    assert all(old == new for _, old, new in found.facts)
    assert (found.settings, found.added, found.removed, found.renamed) == ((), (), (), ())
    answers = found.answers
    assert answers is not None
    assert answers.changed == {1: 0, 5: 0, 10: 0}
    assert answers.overlap == {1: 1, 5: 1, 10: 1}
    assert answers.drift == {"mean": 0, "mean_size": 0, "largest": 0}
    assert answers.most == ()
    assert (answers.better, answers.worse) == (0, 0)
    assert all(old == new for old, new in answers.quality.values())


def test_labels_settings_and_sizes(tmp_path: Path) -> None:
    old = trained(names={"wool": "Wool", "hats": "Hats"})
    new = trained(renamed(ROWS, "boots", "wellingtons"), names={"wool": "Fleece", "hats": "Hats"}, C=3.0, trees=2)
    old.save(tmp_path / "old.bw")
    new.save(tmp_path / "new.bw")
    found = bw.diff(tmp_path / "old.bw", str(tmp_path / "new.bw"))
    assert (found.added, found.removed) == (("wellingtons",), ("boots",))
    assert found.renamed == (("wool", "Wool", "Fleece"),)
    assert ("C", 1.0, 3.0) in found.settings
    assert ("trees", 1, 2) in found.facts
    assert found.answers is None
    assert "1 added, 1 removed, 1 renamed" in str(found)


def test_answers_are_compared_by_key_and_counted() -> None:
    old = trained()
    new = trained(renamed(ROWS, "socks", "stockings")[::-1])  # other numbers of labels, one label under another key
    queries = ["red wool socks", "leather boots", "zeppelin"]
    found = bw.diff(old, new, queries, most=2).answers
    assert found is not None
    first = [[hits[0].key if hits else None for hits in model.search_many(queries)] for model in (old, new)]
    assert found.changed[1] == sum(a != b for a, b in zip(*first, strict=True)) / 3
    sets = [[{hit.key for hit in hits} for hits in model.search_many(queries)] for model in (old, new)]
    assert found.changed[10] == sum(a != b for a, b in zip(*sets, strict=True)) / 3
    shares = [len(a & b) / max(len(a), len(b)) if a or b else 1.0 for a, b in zip(*sets, strict=True)]
    assert found.overlap[10] == pytest.approx(np.mean(shares))
    assert found.empty == (1 / 3, 1 / 3)
    assert len(found.most) == 2
    assert found.most[0].query == "red wool socks"
    assert found.most[0].change > found.most[1].change > 0
    assert [hit[0] for hit in found.most[0].old] == [hit.key for hit in old.search("red wool socks")]
    assert [hit[0] for hit in found.most[0].new] == [hit.key for hit in new.search("red wool socks")]


def test_quality_of_both_is_what_evaluate_says() -> None:
    X, Y = random_problem(300, 60, 25, seed=2)
    keys = [str(label) for label in range(Y.shape[1])]
    old = bw.train(X[:100], Y[:100], preset="fast", progress=False)
    new = bw.train(X[:200], Y[:200], preset="fast", progress=False)
    truth = [[keys[i] for i in Y[row].indices] + ["unknown to both"] * (row == 200) for row in range(200, 300)]
    found = bw.diff(old, new, X[200:], truth).answers
    assert found is not None
    for place, model in enumerate((old, new)):
        measured = bw.evaluate(model.topk(X[200:]), Y[200:], at=(1, 5, 10)).as_dict()
        for name in ("precision@1", "precision@5", "precision@10"):
            assert found.quality[name][place] == pytest.approx(measured[name])
    assert found.better + found.worse > 0
    assert found.quality["recall@10"][0] <= bw.evaluate(old.topk(X[200:]), Y[200:], at=(10,)).recall[10]


def test_what_cannot_be_compared_is_refused() -> None:
    X, Y = random_problem(50, 20, 5, seed=2)
    numbers, words = bw.train(X, Y, preset="fast", progress=False), trained()
    for arguments, said in (
        ((numbers, numbers, ["a text"]), "old model was trained on matrices"),
        ((words, numbers, ["a text"]), "new model was trained on matrices"),
        ((words, numbers, X), "features; expected the same"),
        ((words, words, ["a"], [["x"], ["y"]]), "1 queries and 2 lists"),
        ((words, words, None, [["x"]]), "without queries"),
        ((words, 7), "new is a int"),
    ):
        with pytest.raises(bw.BeamwoodError, match=said):
            bw.diff(*arguments)


class Texts(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        self.open += tag == "td"

    def handle_endtag(self, tag: str) -> None:
        self.open -= tag == "td"


def test_hostile_names_are_text_on_the_page_and_in_the_terminal() -> None:
    old, new = trained(names={"wool": HOSTILE}), trained(renamed(ROWS, "hats", HOSTILE), names={"wool": "w"})
    found = bw.diff(old, new, [f"wool {HOSTILE} hat"])
    page = found.html()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    read = Texts()
    read.feed(page)
    assert read.open == 0
    assert not read.tags & {"script", "img", "iframe", "link", "object"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", str(found))
    json.dumps(found.to_dict())


def command(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "beamwood", "diff", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    old, new = trained(), trained(renamed(ROWS, "boots", "shoes"))
    old.save(tmp_path / "old.bw")
    new.save(tmp_path / "new.bw")
    rows = "".join(json.dumps({"text": text, "labels": keys}) + "\n" for text, keys in ROWS)
    (tmp_path / "rows.jsonl").write_text(rows)
    files = (tmp_path / "old.bw", tmp_path / "new.bw", tmp_path / "rows.jsonl")
    whole = bw.diff(old, new, [text for text, _ in ROWS], [keys for _, keys in ROWS])
    said = command(*files, "--truth", "--html", tmp_path / "page.html")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == f"{whole}\n"
    assert (tmp_path / "page.html").read_text() == whole.html()
    assert json.loads(command(*files, "--truth", "--json").stdout) == json.loads(json.dumps(whole.to_dict()))
    assert json.loads(command(*files[:2], "--json").stdout)["answers"] is None
    assert "is there already" in command(*files, "--html", tmp_path / "page.html").stderr
    assert "--truth" in command(*files[:2], "--truth").stderr


def test_a_guarded_server_refuses_a_model_that_answers_otherwise(tmp_path: Path) -> None:
    for needed in ("uvicorn", "uvloop", "httptools", "orjson"):
        pytest.importorskip(needed)
    from support.serving import BEARER, TOKEN, Running, wait_for

    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "queries.txt").write_text("leather boots\nwool socks\n")
    path = tmp_path / "m.bw"
    trained().save(path)
    words = ("--token-file", tmp_path / "token", "--reload-guard", "0.4", "--reload-guard-queries")
    with Running(path, *words, tmp_path / "queries.txt") as server:
        served = bw.load(path).version
        trained(renamed(renamed(ROWS, "boots", "shoes"), "wool", "fleece")).save(path)
        server.json("POST", "/v1/admin/reload", status=409, **BEARER)
        assert server.json("POST", "/v1/search", {"text": "boots"}, **BEARER)["version"] == served
        wait_for(lambda: any("--reload-guard" in line.get("message", "") for line in server.lines()))
        trained(C=2.0).save(path)
        server.json("POST", "/v1/admin/reload", **BEARER)
        assert server.json("POST", "/v1/search", {"text": "boots"}, **BEARER)["version"] == bw.load(path).version
