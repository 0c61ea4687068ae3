"""Tables of strings: found again by number and by text, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import small_model

import beamwood as bw
from beamwood import _core
from beamwood.storage import store
from beamwood.storage.strings import StringTable

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True, max_size=60)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, foreign=st.text(max_size=12))
def test_every_string_is_found_and_no_other(texts: list[str], foreign: str) -> None:
    table = StringTable.of(texts, "key", searchable=True)
    assert len(table) == len(texts)
    assert [table[i] for i in range(len(texts))] == texts
    assert [table.find(text) for text in texts] == list(range(len(texts)))
    if foreign not in texts:
        assert table.find(foreign) is None


def test_keys_and_names_come_back() -> None:
    keys = [f"SKU-{i:03}" for i in range(40)]
    names = ["socks"] * 39 + ["naïve — 靴下 🧦"]
    model = small_model(keys=keys, names=names)
    assert [model.key(i) for i in range(40)] == keys
    assert [model.name(i) for i in range(40)] == names
    assert [model.label_of(key) for key in keys] == list(range(40))
    assert model.label_of("socks") is None


def test_names_are_keys_when_no_keys_are_given() -> None:
    model = small_model(names=[f"n{i}" for i in range(40)])
    assert model.key(3) == model.name(3) == "n3"
    assert model.label_of("n39") == 39


def test_numbers_are_keys_when_nothing_is_given() -> None:
    model = small_model()
    assert model.key(7) == model.name(7) == "7"
    assert model.label_of("7") == 7
    assert [model.label_of(text) for text in ("40", "-1", "x", "", "٣", "1e1")] == [None] * 6


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"keys": ["a"] * 40}, r"key 1 is 'a', the same as key 0. Each must be unique"),
        ({"names": ["a"] * 40}, r"name 1 is 'a', the same as name 0. .* give keys of their own"),
        ({"names": ["a"] * 39}, r"There are 39 names; expected 40, one for each label"),
        ({"keys": [*map(str, range(39)), 7]}, r"key 39 is 7; expected a str"),
        ({"keys": [*map(str, range(39)), "\ud800"]}, r"not valid Unicode"),
    ],
)
def test_strings_that_cannot_be_keys_are_refused(form: dict[str, list[str]], message: str) -> None:
    with pytest.raises(bw.DataError, match=message):
        small_model(**form)


@pytest.mark.parametrize("label", [-1, 40])
def test_a_label_that_does_not_exist_is_refused(label: int) -> None:
    for model in (small_model(), small_model(names=[f"n{i}" for i in range(40)])):
        with pytest.raises(bw.DataError, match=rf"Label {label} does not exist; expected a number from 0 to 39"):
            model.key(label)
        with pytest.raises(bw.DataError, match=r"does not exist"):
            model.name(label)


def test_damaged_tables_end_in_a_format_error_or_a_miss() -> None:
    table = StringTable.of(["one", "two", "three"], "key", searchable=True)
    assert table.slots is not None
    outside = StringTable(table.blob, table.offsets + np.uint64(100), table.slots)
    with pytest.raises(bw.FormatError, match=r"string 1 lies outside its table. Get a fresh copy"):
        outside[1]
    with pytest.raises(bw.FormatError, match=r"lie outside their tables. Get a fresh copy"):
        outside.find("two")
    full = StringTable(table.blob, table.offsets, np.ones_like(table.slots))  # no empty slot: must still end
    assert full.find("nine") is None
    wild = StringTable(table.blob, table.offsets, np.full_like(table.slots, 2**32 - 1))
    with pytest.raises(bw.FormatError, match=r"lie outside their tables"):
        wild.find("two")


def test_slots_are_the_same_for_any_number_of_threads() -> None:
    table = StringTable.of([f"key {i}" for i in range(20_000)], "key", searchable=True)
    for threads in (1, 2, 7):
        slots, _, _ = _core.key_slots(table.blob, table.offsets, threads)
        np.testing.assert_array_equal(slots, table.slots)
    assert xxhash.xxh3_64_hexdigest(table.slots.tobytes()) == "6e46419de2adf68e"  # as files of format 1 and 2 have them


@pytest.fixture
def damaged(tmp_path: Path) -> bw.Model:
    """A text model whose tables of keys and names lead outside; it loads, for loading reads the header only."""
    texts, labels = ["wool socks", "red hats", "wool hats", "red socks"], [["wool"], ["red"], ["hat"], ["sock"]]
    path = tmp_path / "model.bw"
    model = bw.train_text(texts, labels, names={"wool": "Wool", "red": "Red", "hat": "Hat", "sock": "Sock"})
    model.save(path)
    header, start = store.read_header(np.frombuffer(path.read_bytes(), np.uint8), path)
    with open(path, "r+b") as file:
        for name in ("keys/offsets", "names/offsets"):
            first, end = header[name]["data_offsets"]
            file.seek(start + first)
            file.write(b"\xff" * (end - first))
    return bw.load(path)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.search("wool"),
        lambda model: model.search_many(["wool", "red hats"]),
        lambda model: model.key(1),
        lambda model: model.name(1),
        lambda model: model.label_of("wool"),
        lambda model: model.filter(allow=["wool"]),
        lambda model: model.explain("wool socks", "wool"),
    ],
)
def test_damaged_keys_are_a_format_error_wherever_they_are_met(damaged: bw.Model, ask: Callable[..., Any]) -> None:
    with pytest.raises(bw.FormatError, match=r"The model is damaged.* Get a fresh copy"):
        ask(damaged)
