"""Lines of fastText, PECOS and Annif: read with --format; bad ones are named by their number and can be left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import fails, good

import beamwood as bw

LINES = {
    "fasttext": "__label__socks __label__wool red wool socks\n__label__hats straw hat\nwarm __label__hats hat\n\n",
    "pecos": "socks,wool\tred wool socks\nhats\tstraw hat\nhats\twarm hat\n",
    "annif": "red wool socks\t<socks> <wool>\r\nstraw hat\t<hats>\nwarm hat\t<hats>\n",
}


@pytest.mark.parametrize("format", LINES)
def test_the_same_rows_in_three_formats(format: str, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("\ufeff" + LINES[format], encoding="utf-8", newline="")
    found = bw.read_records(tmp_path / "rows.txt", format=format)
    assert found.texts == ["red wool socks", "straw hat", "warm hat"]
    assert found.labels == [["socks", "wool"], ["hats"], ["hats"]]
    good("train", tmp_path / "rows.txt", "--format", format, "-o", tmp_path / "m.bw", "--preset", "fast", "-q")
    assert "hats" in good("search", tmp_path / "m.bw", "straw")
    assert "precision" in good("evaluate", tmp_path / "m.bw", tmp_path / "rows.txt", "--format", format, "-q")
    good("predict", tmp_path / "m.bw", tmp_path / "rows.txt", "--format", format, "-o", tmp_path / "a.jsonl", "-q")
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("format", "line", "said"),
    [
        ("fasttext", b"__label__ red socks", "without a name"),
        ("pecos", b"socks red wool socks", "no tab"),
        ("annif", b"red wool socks", "no tab"),
        ("annif", b"red wool socks\tsocks wool", "angle brackets"),
        ("pecos", b"socks\t\xff", "UTF-8"),
    ],
)
def test_a_bad_line_is_named_and_can_be_left_out(format: str, line: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_bytes(LINES[format].encode() + line + b"\n")
    how = ("train", tmp_path / "rows.txt", "--format", format, "-o", tmp_path / "m.bw", "--preset", "fast", "-q")
    message = fails(*how)
    assert said in message
    assert "line" in message
    assert "--skip-bad" in message
    good(*how, "--skip-bad")


@pytest.mark.parametrize("format", LINES)
def test_a_table_that_is_another_programs_file_is_told_its_format(format: str, tmp_path: Path) -> None:
    lines = {
        "fasttext": "__label__socks red wool socks\n",
        "pecos": "3,17\tred wool\n",
        "annif": "red\t<socks> <hats>\n",
    }
    (tmp_path / "rows.tsv").write_text(lines[format])
    assert f"--format {format}" in fails("train", tmp_path / "rows.tsv", "-o", tmp_path / "m.bw")
    (tmp_path / "rows.tsv").write_text("words\tsubjects\nred wool\tsocks\n")
    assert "--format" not in fails("train", tmp_path / "rows.tsv", "-o", tmp_path / "m.bw")
