"""Claims about the readers of texts with labels."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from beamwood import DataError, MissingFileError, SettingsError
from beamwood.inputs.records import Records, iter_records, iter_texts, read_records

ROWS = [
    ("red wool socks", ["sock", "wool"]),
    ("", []),
    ('quotes " and, commas\nand a line end', ["emoji 🧦", "tab\tin label"]),
    ("日本語 עברית", ["Ä"]),
]


def jsonl(rows: list[Any]) -> bytes:
    return b"".join(json.dumps({"text": t, "labels": ls}).encode() + b"\n" for t, ls in rows)


def test_jsonl_is_read(tmp_path: Path) -> None:
    expected = Records([t for t, _ in ROWS], [ls for _, ls in ROWS])
    (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + jsonl(ROWS) + b"\n"))
    assert read_records(tmp_path / "a.jsonl") == expected
    assert read_records(tmp_path / "a.jsonl.gz") == expected
    assert list(iter_records(io.BytesIO(jsonl(ROWS)), format="jsonl")) == ROWS


def test_labels_may_be_lists_numbers_or_strings_with_a_separator() -> None:
    def labels(value: object, separator: str | None = None) -> list[str]:
        line = json.dumps({"t": "x", "l": value}).encode()
        return read_records(io.BytesIO(line), format="jsonl", text="t", labels="l", separator=separator).labels[0]

    assert labels(["a", "b"]) == ["a", "b"]
    assert labels([3, 4]) == ["3", "4"]
    assert labels(7) == ["7"]
    assert labels("a; b;;c ", ";") == ["a", "b", "c"]
    assert labels("a; b") == ["a; b"]
    assert labels("") == []
    line = io.BytesIO(b'{"text": "x"}')
    assert read_records(line, format="jsonl", labels=None).labels == [[]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "x"', "expected one JSON object"),
        (b"[1, 2]", "expected one JSON object"),
        (b'{"labels": []}', "it has no 'text'"),
        (b'{"text": "x"}', "it has no 'labels'"),
        (b'{"text": 3, "labels": []}', "'text' is 3; expected a string"),
        (b'{"text": null, "labels": []}', "'text' is None"),
        (b'{"text": "x", "labels": null}', "'labels' has None"),
        (b'{"text": "x", "labels": [1.5]}', "'labels' has 1.5"),
        (b'{"text": "x", "labels": [""]}', "'labels' has ''"),
        (b'{"text": "x", "labels": [true]}', "'labels' has True"),
        (b'{"text": "\xff", "labels": []}', "byte 11 is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_json_line_is_described_or_skipped(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(jsonl(ROWS[:1]) + line + b"\n" + jsonl(ROWS[1:2]))
    with pytest.raises(DataError) as caught:
        read_records(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert message in str(caught.value)
    assert read_records(path, skip_bad=True) == Records([t for t, _ in ROWS[:2]], [ls for _, ls in ROWS[:2]], 1)


CSV = '\ufefflabels,id,text\r\na|b,1,"red, ""wool""\nsocks"\r\n,2,\r\n\r\nÄ 🧦,3,日本語\r\n'.encode()


def test_csv_and_tsv_are_read() -> None:
    expected = Records(['red, "wool"\nsocks', "", "日本語"], [["a", "b"], [], ["Ä 🧦"]])
    assert read_records(io.BytesIO(CSV), format="csv", separator="|") == expected
    tsv = b"text\tlabels\nsome words\tx\n"
    assert read_records(io.BytesIO(tsv), format="tsv") == Records(["some words"], [["x"]])
    long = b"text,labels\n" + b"word " * 2_000_000 + b",x\n"
    assert len(read_records(io.BytesIO(long), format="csv").texts[0]) == 10_000_000


def test_semicolons_between_columns_are_seen_by_the_header() -> None:
    read = read_records(
        io.BytesIO(b'\xef\xbb\xbf"text";labels\r\n"red; wool";socks\r\nblue, green;hats\r\n'), format="csv"
    )
    assert (list(read.texts), list(read.labels)) == (["red; wool", "blue, green"], [["socks"], ["hats"]])
    commas = read_records(io.BytesIO(b"text,labels\nred; wool,socks\n"), format="csv")
    assert list(commas.texts) == ["red; wool"]
    with pytest.raises(DataError, match="nowhere among 'words;labels'"):
        read_records(io.BytesIO(b"words;labels\nred;socks\n"), format="csv")


@pytest.mark.parametrize(("format", "mark"), [("csv", ","), ("csv", ";"), ("tsv", "\t")])
def test_columns_are_numbers_where_a_table_has_no_header(format: str, mark: str) -> None:
    rows = [("7", "red\nwool", "socks|wool"), ("8", "blue", "hats")]
    table = "".join(mark.join(f'"{cell}"' for cell in row) + "\r\n" for row in rows).encode()
    read = read_records(io.BytesIO(table), format=format, text="2", labels="3", separator="|")
    assert (read.texts, read.labels) == (["red\nwool", "blue"], [["socks", "wool"], ["hats"]])
    assert list(iter_texts(io.BytesIO(table), format=format, text="2", id="1")) == [("red\nwool", "7"), ("blue", "8")]


@pytest.mark.parametrize(("text", "labels", "header"), [("1", "2", ""), ("te\nxt", "labels", '"te\nxt";labels\r\n')])
def test_a_first_row_of_several_lines_shows_its_semicolons_too(text: str, labels: str, header: str) -> None:
    table = f'\r\n{header}"red\nwool, or";socks\r\n\r\n"blue";hats\r\n'.encode()
    read = read_records(io.BytesIO(table), format="csv", text=text, labels=labels)
    assert (read.texts, read.labels) == (["red\nwool, or", "blue"], [["socks"], ["hats"]])
    bad: list[str] = []
    table = f'\n\n{header}"red\nb\xff";socks\n'.encode("latin-1")
    assert list(iter_records(io.BytesIO(table), format="csv", text=text, labels=labels, on_bad=bad.append)) == []
    assert f"line {5 if header else 3}: it has bytes that are not UTF-8" in bad[0]


def test_a_quote_inside_a_cell_does_not_hide_commas() -> None:
    read = read_records(io.BytesIO(b'5;"6,socks\nblue,hats\n'), format="csv", text="1", labels="2")
    assert (read.texts, read.labels) == (['5;"6', "blue"], [["socks"], ["hats"]])
    with pytest.raises(DataError, match="column 'text' is nowhere"):
        read_records(io.BytesIO(b'a;"b,c\n' + b"x,y\n" * 5000), format="csv")


def test_a_first_row_of_numbers_is_data_where_no_data_frame_wrote_it() -> None:
    read = read_records(io.BytesIO(b"1984,7\nblue,8\n"), format="csv", text="1", labels="2")
    assert (read.texts, read.labels) == (["1984", "blue"], [["7"], ["8"]])
    with pytest.raises(DataError, match="column '2' is nowhere among '0', '1'"):
        read_records(io.BytesIO(b"0,1\nred,socks\n"), format="csv", text="1", labels="2")
    with pytest.raises(DataError, match="is nowhere among 'red', 'socks'"):
        read_records(io.BytesIO(b"red,socks\n"), format="csv", text="1" * 5000, labels="2")


def test_a_name_that_is_a_number_stays_a_name() -> None:
    header = b"2,1,0\nsocks,red,7\n"  # what a data frame writes that has no names of its own
    assert read_records(io.BytesIO(header), format="csv", text="1", labels="2") == Records(["red"], [["socks"]])
    line = b'{"1": "red", "2": ["socks"]}'
    assert read_records(io.BytesIO(line), format="jsonl", text="1", labels="2") == Records(["red"], [["socks"]])


def test_columns_that_a_table_without_a_header_lacks_are_described() -> None:
    for asked in ("0", "3", "-1", "²"):
        with pytest.raises(DataError, match=f"column '{asked}' is nowhere among .* all by number, from 1 on"):
            read_records(io.BytesIO(b"red,socks\n"), format="csv", text=asked, labels="2")
    with pytest.raises(DataError, match="column '1' is nowhere among 'red', 'socks'"):
        read_records(io.BytesIO(b"red,socks\n"), format="csv", text="1")
    with pytest.raises(DataError, match="line 2: it has 1 cell; expected 2 like the first row"):
        read_records(io.BytesIO(b"red,socks\nblue\n"), format="csv", text="1", labels="2")
    bad: list[str] = []
    rows = list(iter_records(io.BytesIO(b"r\xff,x\nblue,y\n"), format="csv", text="1", labels="2", on_bad=bad.append))
    assert rows == [("blue", ["y"])]
    assert "line 1: it has bytes that are not UTF-8" in bad[0]


def test_ragged_rows_and_broken_bytes_in_csv_are_described_or_skipped() -> None:
    text = b'text,labels\ngood,x\n"two\nlines",x,extra\nshort\nb\xffd,x\nlast,y\n'
    with pytest.raises(DataError, match="line 3: it has 3 cells; expected 2"):
        read_records(io.BytesIO(text), format="csv")
    messages: list[str] = []
    rows = list(iter_records(io.BytesIO(text), format="csv", on_bad=messages.append))
    assert rows == [("good", ["x"]), ("last", ["y"])]
    assert [m.split(": ")[0].split(", ")[1] for m in messages] == ["line 3", "line 5", "line 6"]
    assert "not UTF-8" in messages[2]


def test_missing_columns_and_formats_are_described() -> None:
    with pytest.raises(DataError, match="column 'text' is nowhere among 'title', 'labels'"):
        read_records(io.BytesIO(b"title,labels\n"), format="csv")
    with pytest.raises(DataError, match="column 'text' is twice"):
        read_records(io.BytesIO(b"text,text,labels\n"), format="csv")
    with pytest.raises(DataError, match="file is empty"):
        read_records(io.BytesIO(b""), format="csv")
    with pytest.raises(SettingsError, match="format is 'xml'"):
        read_records(io.BytesIO(b""), format="xml")
    with pytest.raises(SettingsError, match=r"tells no format.*fasttext.*one JSON object per line"):
        read_records(io.BytesIO(b""))
    with pytest.raises(SettingsError, match="separator"):
        read_records(io.BytesIO(b""), format="csv", separator="")
    with pytest.raises(MissingFileError, match="no such file"):
        read_records("nowhere.jsonl")


def test_parquet_is_read(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [t for t, _ in ROWS], "labels": [ls for _, ls in ROWS]}), path)
    assert read_records(path) == Records([t for t, _ in ROWS], [ls for _, ls in ROWS])
    pq.write_table(pa.table({"t": ["x", None, "y"], "l": ["a;b", "c", "d"]}), path)
    with pytest.raises(DataError, match="row 2: 't' is None"):
        read_records(path, text="t", labels="l")
    assert read_records(path, text="t", labels="l", separator=";", skip_bad=True) == Records(
        ["x", "y"], [["a", "b"], ["d"]], 1
    )
    with pytest.raises(DataError, match="nowhere"):
        read_records(path)
    path.write_bytes(b"not parquet at all")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_records(path)
