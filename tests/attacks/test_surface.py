"""Every public function against every damaged value: no crash, no foreign exception, no memory that is not warranted.

A new public function, method or reader without an entry in surface.py fails here.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import beamwood as bw
from attacks.surface import ROOMS
from beamwood import interop
from beamwood.inputs import data
from beamwood.sklearn import XMRClassifier

# Public, but nothing is handed in that could be damaged: results, errors, facts; or tried elsewhere.
NOTHING_TO_DAMAGE = {
    "LabelUpdate",
    *("BeamwoodError", "BeamwoodWarning", "DataError", "FormatError", "ServerError", "SettingsError", "__version__"),
    *(
        "Calibration",
        "CrossValidation",
        "Compression",
        "Cut",
        "AnswerChanges",
        "Answers",
        "ChangedQuery",
        "Difference",
        "Explanation",
        "Filter",
        "Hit",
        "Hits",
        "LayerChoice",
        "Metrics",
        "MissingFileError",
        "Report",
        "Stats",
        "Trial",
        "Tuned",
    ),  # what calls return
    "Client",  # what it sends is judged by the server: tests/server
    "Layer",  # judged by from_layers
    "Model",  # its methods
    "Model.info",
    "Model.native_parts",
    "Model.plot_tree",
    "Model.push_to_hub",  # tests/ecosystem/test_hub.py
    "Model.with_unit_rows",
    "XMRClassifier.get_metadata_routing",
    "XMRClassifier.get_params",
    "XMRClassifier.set_fit_request",
    "XMRClassifier.set_params",
    "XMRClassifier.set_score_request",
    "data.LabelledRows",
    "data.Records",
    "interop.Imported",
    "interop.ImportedText",
    "interop.TreeText",
}


def public() -> set[str]:
    """The names of all that users may call."""
    names = set(bw.__all__) - {"datasets", "stream", *data.__all__}  # the readers are named by their module
    names |= {f"Model.{name}" for name, found in inspect.getmembers(bw.Model) if callable(found)}
    names |= {f"XMRClassifier.{name}" for name, found in inspect.getmembers(XMRClassifier) if callable(found)}
    names |= {f"data.{name}" for name in data.__all__} | {f"interop.{name}" for name in interop.__all__}
    names |= {"datasets.load", "stream.write_model"}
    return {name for name in names if not name.rpartition(".")[2].startswith("_")} | {"__version__"}


def test_every_public_function_is_tried(tmp_path: Path) -> None:
    tried = {function for room in ROOMS.values() for function in room(tmp_path)}
    assert not public() - tried - NOTHING_TO_DAMAGE, "give these an entry in tests/attacks/surface.py"
    assert not (tried | NOTHING_TO_DAMAGE) - public(), "these are not public (any more)"


def run(room: str, first: int) -> tuple[list[tuple[str, str]], int]:
    """What calls of a room led to from the first-th on; and which to go on with, -1 when all were tried."""
    tests = Path(__file__).parents[1]
    child = subprocess.run(
        [sys.executable, tests / "attacks" / "surface.py", room, str(first)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = child.stdout.splitlines()
    if lines and lines[-1] == "done":
        lines.pop()
        return [(json.loads(a)[1], json.loads(b)) for a, b in zip(lines[::2], lines[1::2], strict=True)], -1
    assert lines, child.stderr
    found = [(json.loads(a)[1], json.loads(b)) for a, b in zip(lines[::2], lines[1::2], strict=False)]
    number, name = json.loads(lines[-1])
    why = " ".join(child.stderr.split())[-300:]
    return [*found, (name, f"the process ended with {child.returncode}: {why}")], number + 1


@pytest.mark.parametrize("room", ROOMS)
def test_no_damaged_value_gets_through(room: str) -> None:
    outcomes: list[tuple[str, str]] = []
    first = 0
    while first >= 0:
        more, first = run(room, first)
        outcomes += more
    wrong = [f"{name}: {said}" for name, said in outcomes if said not in ("taken", "refused")]
    assert len(outcomes) > 100
    assert not wrong, f"{len(wrong)} of {len(outcomes)} calls:\n" + "\n".join(wrong)
