"""The short forms of campaigns, and a planted bug that each of them must find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from promises import cutting, memory, planted, reading, saving, threading_runs
from promises.commands import promises, server

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="the injected library needs gcc")


@needs_compiler
def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    found = saving.killed(tmp_path, 0.02, 1)
    assert found.failures == []
    assert found.cases > 300


@needs_compiler
@pytest.mark.parametrize("plant", ["in place", "no sync"])
def test_a_save_that_tears_files_is_found_out(tmp_path: Path, plant: str) -> None:
    assert saving.killed(tmp_path, 0.02, 1, plant).failures


@needs_compiler
def test_a_disk_that_fails_is_an_error_and_the_old_file_stays(tmp_path: Path) -> None:
    found = saving.failing(tmp_path, 0.02, 1)
    assert found.failures == []
    assert found.cases > 100


@needs_compiler
def test_an_error_of_the_disk_that_is_swallowed_is_found_out(tmp_path: Path) -> None:
    assert saving.failing(tmp_path, 0.02, 1, "swallow").failures


@needs_compiler
def test_refused_memory_is_an_error(tmp_path: Path) -> None:
    found = memory.refused(tmp_path, 0.004, 1)
    assert [one for one in found.failures if memory.NANOBIND not in one] == []


@needs_compiler
def test_refused_memory_that_becomes_an_answer_is_found_out(tmp_path: Path) -> None:
    assert memory.refused(tmp_path, 0.004, 1, "swallow").failures


def test_files_may_be_cut_under_threads(tmp_path: Path) -> None:
    assert cutting.cut(tmp_path, 0.003, 1).failures == []


def test_a_process_without_the_handler_dies(tmp_path: Path) -> None:
    assert any("SIGBUS" in one for one in cutting.cut(tmp_path, 0.003, 1, None, "no handler").failures)


def test_hostile_inputs_are_refused_or_read(tmp_path: Path) -> None:
    found = reading.hostile(tmp_path, 0.001, 1)
    assert found.failures == []
    assert found.cases >= 700


def test_a_reader_with_a_foreign_exception_is_found_out(tmp_path: Path) -> None:
    assert reading.hostile(tmp_path, 0.0002, 1, None, "assert").failures


def test_threads_and_forks_end(tmp_path: Path) -> None:
    assert threading_runs.runs(tmp_path, 0.003, 1).failures == []


def test_reloads_under_load_are_right_or_refused(tmp_path: Path) -> None:
    found = server("swap", swaps=200)(tmp_path, 0.02, 1, None)
    assert found.failures == []
    assert found.told == "swap: 1 hold"


@pytest.mark.parametrize(("campaign", "count"), [("swap", {"swaps": 200}), ("term", {"times": 100})])
def test_a_server_with_a_planted_bug_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: str, count: dict[str, float]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(planted.folder_of(tmp_path, campaign)))
    assert server(campaign, **count)(tmp_path, 0.02, 1, None).failures == [f"{campaign} does not hold"]


def test_there_are_twenty_promises() -> None:
    assert [promise.number for promise in promises()] == list(range(1, 21))
