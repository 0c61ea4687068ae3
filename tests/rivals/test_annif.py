"""A real Annif with our module in omikuji's place: a project of its backend `omikuji` is trained, asked, evaluated."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bench.rivals.install import python_of
from rivals.homes import nltk_data, ours, run

pytestmark = pytest.mark.skipif("BEAMWOOD_RIVALS" not in os.environ, reason="make test-rivals")

TOPICS = {
    "jazz": "saxophone trumpet swing band improvisation blues melody",
    "bread": "flour yeast dough oven baking crust sourdough",
    "bees": "honey hive queen pollen wax swarm beekeeper",
    "rivers": "water stream delta flood bank current estuary",
    "chess": "pawn rook bishop opening endgame checkmate board",
    "wool": "sheep knitting yarn sweater spinning loom felt",
}
PROJECT = """[beams]
name=beams
language=en
backend=omikuji
analyzer=simple
vocab=topics
limit=5
min_df=1
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vocabulary, a corpus and a project, and our module under omikuji's name beside them."""
    home = tmp_path_factory.mktemp("annif")
    (home / "projects.cfg").write_text(PROJECT)
    uris = {name: f"<http://example.org/{name}>" for name in TOPICS}
    (home / "topics.tsv").write_text("".join(f"{uri}\t{name}\n" for name, uri in uris.items()))
    lines = []
    for number in range(120):
        first, second = sorted(TOPICS)[number % 6], sorted(TOPICS)[(number * 5 + number // 6) % 6]
        words = TOPICS[first].split()[number % 4 :] + TOPICS[second].split()[: 3 + number % 3] + ["history", "of"]
        lines.append(f"{' '.join(words)}\t{' '.join(sorted({uris[first], uris[second]}))}\n")
    (home / "train.tsv").write_text("".join(lines[:100]))
    (home / "test.tsv").write_text("".join(lines[100:]))
    nltk_data(home)
    (ours(home) / "omikuji.py").write_text("from beamwood.compat.omikuji import *\n")
    return home


def annif(home: Path, *words: object) -> str:
    """The command line of Annif."""
    place = {"PYTHONPATH": str(ours(home)), "ANNIF_DATADIR": str(home / "d"), "NLTK_DATA": str(home / "nltk")}
    place["ANNIF_PROJECTS"] = str(home / "projects.cfg")
    script = python_of("annif").parent / "annif"
    return run("annif", script, *words, **place)


def test_annif_trains_suggests_and_evaluates(home: Path, tmp_path: Path) -> None:
    annif(home, "load-vocab", "topics", "--language", "en", home / "topics.tsv")
    annif(home, "train", "beams", home / "train.tsv", "--jobs", 1)
    assert (home / "d" / "projects" / "beams" / "omikuji-model" / "model.bw").is_file()
    (tmp_path / "text.txt").write_text("the bread came out of the oven with a fine crust; the dough had yeast")
    said = annif(home, "suggest", "beams", tmp_path / "text.txt")
    assert said.splitlines()[1].split("\t")[:2] == ["<http://example.org/bread>", "bread"]
    report = annif(home, "eval", "beams", home / "test.tsv")
    found = re.search(r"F1@5:\s+([\d.]+)", report)
    assert found, report
    precision = re.search(r"Precision@1:\s+([\d.]+)", report)
    assert precision, report
    assert float(precision[1]) > 0.9, report


def test_annif_runs_on_a_model_that_omikuji_trained(home: Path, tmp_path: Path) -> None:
    """The project's model is replaced by one of omikuji itself; it is read as it is."""
    from rivals.homes import ask

    project = home / "d" / "projects" / "beams"
    given = {"data": project / "omikuji-train.txt", "folder": tmp_path / "theirs", "loss": "HINGE"}
    ask("omikuji", tmp_path, "train", **given)
    model = project / "omikuji-model"
    (model / "model.bw").unlink()
    for path in (tmp_path / "theirs").iterdir():
        path.rename(model / path.name)
    (tmp_path / "text.txt").write_text("honey from the hive, pollen and wax of the swarm")
    said = annif(home, "suggest", "beams", tmp_path / "text.txt")
    assert said.splitlines()[1].split("\t")[:2] == ["<http://example.org/bees>", "bees"]
