"""A plain terminal for every test of the command line, and a folder with data and models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scipy.sparse as sp
from support.commands import ROWS
from support.problems import random_problem

import beamwood as bw
from beamwood.inputs.data import write_xmc


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every test in a folder of its own, with output that has no colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rows.jsonl, the text model shop.bw, and X.npz, Y.npz, rows.txt with the model numbers.bw."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    texts, labels = [r["text"] for r in ROWS], [r["labels"] for r in ROWS]
    names = {"socks": "Socks [bold]& more[/bold]"}
    bw.train_text(texts, labels, names=names, preset="fast", progress=False).save(folder / "shop.bw")
    X, Y = random_problem(60, 30, 12, seed=0)
    sp.save_npz(folder / "X.npz", X)
    sp.save_npz(folder / "Y.npz", Y)
    write_xmc(folder / "rows.txt", X, Y)
    lines = (folder / "rows.txt").read_text().splitlines()[1:]
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    bw.train(X, Y, preset="fast", progress=False).save(folder / "numbers.bw")
    return folder
