"""The light handle: what it pickles to, when it loads, whom it shares with, and what it says when the file is wrong."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import beamwood as bw

TEXTS = ["red wool socks", "blue cotton socks", "wool hat", "straw hat", "rubber boots", "leather boots"] * 3
LABELS = [["socks", "wool"], ["socks"], ["hats", "wool"], ["hats"], ["boots"], ["boots"]] * 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    bw.train_text(TEXTS, LABELS, preset="fast", progress=False).save(tmp_path / "shop.bw")
    return tmp_path / "shop.bw"


def answers(handle: bw.Lazy, texts: list[str]) -> list[bw.Hits]:
    return list(handle.search_many(texts))


def test_a_handle_answers_as_the_model_does(file: Path) -> None:
    model, handle = bw.load(file), bw.Lazy(file)
    X = model.text.transform(TEXTS)
    assert handle.search_many(TEXTS) == model.search_many(TEXTS)
    assert handle.search(TEXTS[0]) == model.search(TEXTS[0])
    assert all(np.array_equal(*both) for both in zip(handle.topk(X, k=3), model.topk(X, k=3), strict=True))
    assert (handle.predict(X) != model.predict(X)).nnz == 0
    assert (handle.version, handle.n_labels, handle.expected_version) == (model.version, 4, model.version)


def test_its_pickle_is_small_and_works_in_other_processes(file: Path) -> None:
    handle = bw.Lazy(file)
    assert len(pickle.dumps(handle)) < 500
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(answers, [(handle, TEXTS[:6]), (handle, TEXTS[6:])])
    assert found[0] + found[1] == bw.load(file).search_many(TEXTS)


def test_all_handles_of_a_process_share_one_model(file: Path) -> None:
    first, second = bw.Lazy(file), pickle.loads(pickle.dumps(bw.Lazy(str(file))))
    assert first.model is second.model is first.model
    assert bw.Lazy(file, memory="read").model is not first.model
    assert bw.Lazy(file, layout="column").model.search_many(TEXTS) == first.search_many(TEXTS)


def test_nothing_is_loaded_before_it_is_used(tmp_path: Path, file: Path) -> None:
    handle = bw.Lazy(tmp_path / "later.bw")
    assert handle.expected_version is None
    assert "not fixed" in repr(handle)
    assert not hasattr(handle, "shape")
    assert not hasattr(handle, "__array__")
    with pytest.raises(bw.FormatError, match=r"later\.bw cannot be opened on .*Bring it there"):
        handle.search("wool")
    shutil.copy(file, tmp_path / "later.bw")
    assert handle.search("wool") == bw.load(file).search("wool")


def test_another_model_under_the_name_is_refused(file: Path) -> None:
    handle, any_version = bw.Lazy(file), bw.Lazy(file.parent / "next.bw")
    before = handle.search("wool socks")
    other = bw.train_text(TEXTS, LABELS, preset="fast", seed=1, C=0.5, progress=False)
    shutil.copy(file, file.parent / "next.bw")
    assert any_version.search("wool socks") == before
    for name in ("shop.bw", "next.bw"):
        other.save(file.parent / name)
    with pytest.raises(bw.FormatError, match=f"has version {other.version}; expected .*Bring the same file"):
        handle.search("wool socks")
    assert any_version.search("wool socks") == other.search("wool socks")
    with pytest.raises(bw.FormatError, match="expected 0123"):
        bw.Lazy(file, version="0123").search("wool")


def test_what_cannot_be_meant_is_refused_at_once(file: Path) -> None:
    with pytest.raises(bw.SettingsError, match="memory is 'disk'; expected 'map', 'read' or 'huge'"):
        bw.Lazy(file, memory="disk")
    with pytest.raises(bw.SettingsError, match="no argument 'beam'"):
        bw.Lazy(file, beam="3")
    with pytest.raises(bw.SettingsError, match="layout"):
        bw.Lazy(file, layout="round")
