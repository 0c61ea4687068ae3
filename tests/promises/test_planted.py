"""A bug planted for each promise: its campaign finds it. BEAMWOOD_DEAR_BUGS=1 also plants those that take long."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from promises import planted
from promises.planted import Bug

CHOSEN = (*planted.CHEAP, *(planted.DEAR if os.environ.get("BEAMWOOD_DEAR_BUGS") else ()))
COMPILED = {2, 3, 4}  # campaigns with the injected library


def named(bug: Bug) -> str:
    return f"{bug.promise}: {bug.words}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", CHOSEN, ids=named)
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug.promise in COMPILED and shutil.which("gcc") is None:
        pytest.skip("the injected library needs gcc")
    for name in [name for name in os.environ if name.startswith("COV")]:
        monkeypatch.delenv(name)  # what its many processes run is no coverage, and writing it takes minutes
    if bug.code:
        monkeypatch.setenv("PYTHONPATH", str(planted.folder_of(tmp_path, bug)))
    failures = bug.find(tmp_path).failures
    assert any(bug.finds in one for one in failures), failures


def test_every_promise_has_a_planted_bug() -> None:
    assert {bug.promise for bug in (*planted.CHEAP, *planted.DEAR)} == set(range(1, 21))
