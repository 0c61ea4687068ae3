"""A real Annif with our backend: a project is trained, asked, taught, tuned, by Annif's own commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("BEAMWOOD_ANNIF")  # the interpreter that has Annif and beamwood: make test-ecosystem
pytestmark = pytest.mark.skipif(not PYTHON, reason="make test-ecosystem")

TOPICS = {
    "jazz": "saxophone trumpet swing band improvisation blues melody",
    "bread": "flour yeast dough oven baking crust sourdough",
    "bees": "honey hive queen pollen wax swarm beekeeper",
    "rivers": "water stream delta flood bank current estuary",
    "chess": "pawn rook bishop opening endgame checkmate board",
}
NEW = ("wool", "sheep knitting yarn sweater spinning loom felt")  # that no document of the first training has
PROJECT = (
    "[beams]\nname=beams\nlanguage=en\nbackend=beamwood\nanalyzer=simple\nvocab=topics\nlimit=5\nallow_learn=True\n"
)


def uri(name: str) -> str:
    return f"<http://example.org/{name}>"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vocabulary, corpora and a project."""
    home = tmp_path_factory.mktemp("annif")
    (home / "projects.cfg").write_text(PROJECT)
    (home / "topics.tsv").write_text("".join(f"{uri(name)}\t{name}\n" for name in (*TOPICS, NEW[0])))
    lines, names = [], sorted(TOPICS)
    for number in range(120):
        first, second = names[number % 5], names[(number * 3 + number // 5) % 5]
        words = TOPICS[first].split()[number % 4 :] + TOPICS[second].split()[: 3 + number % 3] + ["history", "of"]
        lines.append(f"{' '.join(words)}\t{' '.join(sorted({uri(first), uri(second)}))}\n")
    (home / "train.tsv").write_text("".join(lines[:100]))
    (home / "test.tsv").write_text("".join(lines[100:]))
    words = NEW[1].split()
    (home / "more.tsv").write_text("".join(f"{' '.join(words[n % 3 :])}\t{uri(NEW[0])}\n" for n in range(12)))
    sentences = home / "nltk" / "tokenizers" / "punkt_tab" / "english"  # parameters that know no abbreviations
    sentences.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (sentences / name).touch()
    annif(home, "load-vocab", "topics", "--language", "en", home / "topics.tsv")
    annif(home, "train", "beams", home / "train.tsv", "--jobs", 1)
    return home


def annif(home: Path, *words: object, fails: bool = False) -> str:
    """The command line of Annif with our backend; what it said."""
    place = {"ANNIF_DATADIR": str(home / "d"), "NLTK_DATA": str(home / "nltk")}
    place["ANNIF_PROJECTS"] = str(home / "projects.cfg")
    command = [str(PYTHON), "-m", "beamwood.annif", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **place})
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + (done.stderr if fails else "")


def suggested(home: Path, text: str) -> list[str]:
    """The URIs that are suggested for a text."""
    (home / "text.txt").write_text(text)
    return re.findall(r"^(<.*?>)\t", annif(home, "suggest", "beams", home / "text.txt"), re.MULTILINE)


def test_it_trains_suggests_and_evaluates(home: Path) -> None:
    folder = home / "d" / "projects" / "beams"
    assert sorted(path.name for path in folder.iterdir()) == ["beamwood-model.bw", "beamwood-train.jsonl.gz"]
    assert suggested(home, "the bread came out of the oven with a fine crust; the dough had yeast")[0] == uri("bread")
    found = re.search(r"Precision@1:\s+([\d.]+)", annif(home, "eval", "beams", home / "test.tsv"))
    assert found
    assert float(found[1]) > 0.9


def test_a_text_without_a_known_word_gets_nothing(home: Path) -> None:
    assert suggested(home, "xyzzy") == []


def test_it_trains_again_on_what_it_kept(home: Path) -> None:
    path = home / "d" / "projects" / "beams" / "beamwood-model.bw"
    before = path.read_bytes()
    annif(home, "train", "beams", "--cached", "--jobs", 1)
    assert path.read_bytes() == before
    annif(home, "train", "beams", "--cached", "--backend-param", "beamwood.preset=fast")
    assert path.read_bytes() != before


def test_it_learns_documents_of_a_subject_that_it_did_not_know(home: Path) -> None:
    annif(home, "learn", "beams", home / "more.tsv")
    assert suggested(home, "knitting a sweater of yarn")[0] == uri("wool")
    assert suggested(home, "honey from the hive")[0] == uri("bees")


def test_settings_are_searched_for(home: Path) -> None:
    said = annif(home, "hyperopt", "beams", home / "test.tsv", "--trials", 2, "--jobs", 1, "--metric", "F1@5")
    for name in ("C=", "prune=", "ngram=", "min_df="):
        assert re.search(rf"^{name}[\d.]+$", said, re.MULTILINE), said


def test_wrong_settings_and_damaged_models_are_said(home: Path) -> None:
    said = annif(home, "train", "beams", "--cached", "--backend-param", "beamwood.preset=huge", fails=True)
    assert "expected" in said
    path = home / "d" / "projects" / "beams" / "beamwood-model.bw"
    kept = path.read_bytes()
    path.write_bytes(b"no model")
    try:
        (home / "text.txt").write_text("honey")
        assert "Traceback" not in annif(home, "suggest", "beams", home / "text.txt", fails=True)
    finally:
        path.write_bytes(kept)


def test_the_patch_for_annif_applies(tmp_path: Path) -> None:
    """What we would offer upstream: three hunks of the table of backends."""
    code = "import annif.backend; print(annif.backend.__file__)"
    file = Path(subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    (tmp_path / "annif" / "backend").mkdir(parents=True)
    (tmp_path / "annif" / "backend" / "__init__.py").write_bytes(file.read_bytes())
    patch = Path(__file__).resolve().parents[2] / "docs" / "ecosystem" / "annif.patch"
    subprocess.run(["patch", "-p1", "-d", tmp_path, "-i", patch], check=True, capture_output=True)
    changed = (tmp_path / "annif" / "backend" / "__init__.py").read_text()
    compile(changed, "annif", "exec")
    assert '"beamwood": _beamwood' in changed
