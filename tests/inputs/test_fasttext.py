"""Lines of fastText on the command line: trained on, measured, scored; its dense models are refused with the way."""

from __future__ import annotations

from pathlib import Path

from support.commands import fails, run

LINES = """__label__socks __label__wool red wool socks
__label__hats blue cotton hat
__label__hats straw hat for the sun
__label__socks cotton socks
"""


def test_the_command_line_trains_measures_and_predicts(tmp_path: Path) -> None:
    rows, model = tmp_path / "train.txt", tmp_path / "m.bw"
    rows.write_text(LINES * 5)
    assert run("train", rows, "--format", "fasttext", "-o", model, "-q").exit_code == 0
    assert "precision" in run("evaluate", model, rows, "--format", "fasttext").stdout
    said = run("predict", model, rows, "--format", "fasttext", "-k", "1")
    assert said.exit_code == 0
    assert "socks" in said.stdout


def test_a_model_of_fasttext_cannot_be_converted_and_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes((793712314).to_bytes(4, "little") + bytes(60))
    assert "--format fasttext" in fails("convert", tmp_path / "model.bin", tmp_path / "m.bw")
