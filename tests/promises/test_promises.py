"""The short forms of campaigns: no failure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from promises import cutting, memory, reading, saving, silence, threading_runs
from promises.commands import promises, server

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="the injected library needs gcc")


@needs_compiler
def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    found = saving.killed(tmp_path, 0.02, 1)
    assert found.failures == []
    assert found.cases > 300


@needs_compiler
def test_a_disk_that_fails_is_an_error_and_the_old_file_stays(tmp_path: Path) -> None:
    found = saving.failing(tmp_path, 0.02, 1)
    assert found.failures == []
    assert found.cases > 100


@needs_compiler
def test_refused_memory_is_an_error(tmp_path: Path) -> None:
    assert memory.refused(tmp_path, 0.004, 1).failures == []


def test_files_may_be_cut_under_threads(tmp_path: Path) -> None:
    assert cutting.cut(tmp_path, 0.003, 1).failures == []


def test_hostile_inputs_are_refused_or_read(tmp_path: Path) -> None:
    found = reading.hostile(tmp_path, 0.001, 1)
    assert found.failures == []
    assert found.cases >= 700


def test_threads_and_forks_end(tmp_path: Path) -> None:
    assert threading_runs.runs(tmp_path, 0.003, 1).failures == []


def test_shards_that_do_not_answer_are_named(tmp_path: Path) -> None:
    found = silence.silent(tmp_path, 0.02, 1)
    assert found.failures == []
    assert found.cases == 400


def test_reloads_under_load_are_right_or_refused(tmp_path: Path) -> None:
    found = server("swap", swaps=200)(tmp_path, 0.02, 1, None)
    assert found.failures == []
    assert found.told == "swap --swaps 4: 1 hold"


def test_there_are_twenty_promises() -> None:
    assert [promise.number for promise in promises()] == list(range(1, 21))
