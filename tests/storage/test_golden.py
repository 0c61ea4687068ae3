"""Model files of every released format version stay readable and give the same bits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import laws
import numpy as np
import pytest

import beamwood as bw
from beamwood.storage import store

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import make_golden  # noqa: E402

VERSIONS = sorted(path.name for path in GOLDEN.glob("format-*"))


def test_every_format_version_has_a_golden_file() -> None:
    assert [f"format-{version}" for version in range(1, store.FORMAT_VERSION + 1)] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("memory", ["map", "read"])
def test_a_golden_file_gives_the_same_bits(version: str, memory: str) -> None:
    model = bw.load(GOLDEN / version / "model.bw", memory=memory, verify=True)
    expected = json.loads((GOLDEN / version / "answers.json").read_text())
    for engine in laws.engines():
        assert make_golden.answers(model.using(**engine)) == expected, engine


@pytest.mark.parametrize("version", VERSIONS)
def test_the_way_to_each_label_of_a_golden_file_ends_in_its_score(version: str) -> None:
    """An explanation goes up from a label's leaf, where a search comes down to it."""
    model, row = bw.load(GOLDEN / version / "model.bw"), make_golden.golden_queries()[[0]]
    labels, scores = model.topk(row, 10, 40)
    explained = [model.explain(row, int(label), beam=40).score for label in labels[0]]
    assert np.float32(explained).tolist() == scores[0].tolist(), version


@pytest.mark.parametrize("version", VERSIONS)
def test_the_strings_of_a_golden_file_are_found(version: str) -> None:
    model = bw.load(GOLDEN / version / "model.bw")
    assert [model.label_of(model.key(label)) for label in range(45)] == list(range(45))
    assert (model.key(7), model.name(8), model.settings["note"]) == ("key-7", "naïve 靴下 1", "golden")


def test_today_s_writer_gives_the_golden_answers() -> None:
    expected = json.loads((GOLDEN / VERSIONS[-1] / "answers.json").read_text())
    assert make_golden.answers(make_golden.golden_model()) == expected


@pytest.mark.parametrize("memory", ["map", "read"])
def test_a_golden_file_with_words_and_a_head_gives_the_same_bits(memory: str) -> None:
    model = bw.load(GOLDEN / "words" / "model.bw", memory=memory, verify=True)
    expected = json.loads((GOLDEN / "words" / "answers.json").read_text())
    assert "new" in [hits[0][0] for hits in expected if hits]
    for isa in laws.isas():
        assert make_golden.word_answers(model.using(isa=isa)) == expected, isa


def test_a_model_of_a_preview_is_refused_with_advice() -> None:
    with pytest.raises(bw.FormatError, match=r"preview of beamwood 0\.1\.0 .* Train or convert the model again"):
        bw.load(GOLDEN / "preview.bw")
