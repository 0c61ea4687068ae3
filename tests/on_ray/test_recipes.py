"""The recipes of docs/ray/recipes.md, each as a script of its own against the real thing, where that is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import beamwood as bw

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ray" / "recipes.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"```python\n# recipe: (\w+)\n(.*?)```", PAGE, re.DOTALL))


def test_the_page_has_a_recipe_for_each() -> None:
    assert list(RECIPES) == ["multiprocessing", "dask", "pyspark"]


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_runs_and_finds_the_labels(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make test-ray")
    texts = ["red wool socks", "warm wool hat", "straw hat for the sun", "leather boots"]
    labels = [["socks", "wool"], ["hats", "wool"], ["hats"], ["boots"]]
    bw.train_text(texts, labels, progress=False).save(tmp_path / "shop.bw")
    (tmp_path / "recipe.py").write_text(RECIPES[name], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    for query in ("wool socks", "a hat", "boots"):
        best = bw.load(tmp_path / "shop.bw").search(query)[0].key
        assert best in ran.stdout, ran.stdout
