"""planted.py — the number of a promise in, a bug of its kind and the campaign that must find it out.

A bug is what Python runs first in every process of the campaign (`sitecustomize`), so that nothing of ours knows of it,
or a way that the campaign itself plants one inside. `DEAR`: those that only `make promises` plants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from promises import cutting, memory, reading, saving, silence, threading_runs
from promises.commands import pytest_of, resumed, server
from promises.outcome import Outcome

Find = Callable[[Path], Outcome]


@dataclass(frozen=True)
class Bug:
    """A bug: of which promise, in words, what it is, and the smallest form of the campaign, which must find it."""

    promise: int
    words: str
    find: Find
    code: str = ""
    finds: str = ""  # what a failure must say


def served(words: str) -> Find:
    """Campaigns of `make test-serve` with these words."""
    return lambda folder: server(words)(folder, 0, 1, None)


def room(path: str, cases: str = "", kinds: str = "") -> Find:
    """Tests of another room, with as few cases as there may be; cases: the variable that says how many."""
    more = {"BEAMWOOD_FUZZ_KINDS": kinds} if kinds else {}
    return lambda folder: pytest_of(path, variable=cases, more=more)(folder, 0, 1, None)


def silent(folder: Path) -> Outcome:
    """Questions to shards of which some do not answer."""
    return silence.silent(folder, 0, 1)


UNVERIFIED = """
import beamwood.storage.store as store
right = store.read
store.read = lambda buffer, target, verify: right(buffer, target, False)
"""
LAST_BIT = """
import numpy as np
from beamwood.engine import Searcher
right = Searcher.topk
def topk(self, *given, **more):
    labels, scores, stats = right(self, *given, **more)
    return labels, np.nextafter(scores, np.float32(0)) if self.engine.matcher == "hash" else scores, stats
Searcher.topk = topk
"""
FOREIGN = """
import beamwood.interop.npz as npz
npz.wrong = lambda path, what: ValueError(what)
"""
ARGUMENT = """
from beamwood.model import Model
right = Model.key
Model.key = lambda self, label: right(self, int(label))
"""
NO_LIMIT = """
from beamwood.server.process.admission import AdmissionQueue
AdmissionQueue.check_room = lambda self: None
"""
LEAK = """
import os
from beamwood.server.app.dispatch import App
right, seen = App._note, []
def note(self, *given):
    seen.append(os.dup(2) if len(seen) % 20 == 0 else None)
    right(self, *given)
App._note = note
"""
CHECKSUMS = """
import beamwood.server.process.verify as verify
from beamwood.server.process.registry import opened
verify.opened = lambda options, files, verify: opened(options, files, False)
"""
DRAIN = """
import os, time
from beamwood.server.app.dispatch import App
App.drain = lambda self: (time.sleep(1), os._exit(0))
"""
ODD_PATH = """
from beamwood.server.app.routes import Router
right = Router.find
def find(self, path):
    return right(self, path.encode("ascii").decode()) if "%" not in path else {}[path]
Router.find = find
"""
LATE = """
from beamwood.server.process.admission import AdmissionQueue
right = AdmissionQueue.__init__
def init(self, *given):
    right(self, *given)
    self._seconds += 2
AdmissionQueue.__init__ = init
"""
TOKEN = """
import hmac
hmac.compare_digest = lambda given, expected: given[:7] == expected[:7]
"""
HALVES = """
import numpy as np
from beamwood.training.checkpoint import Folder
right = Folder.get
def get(self, stage):
    found = right(self, stage)
    if found is None or not stage.startswith("layer"):
        return found
    return {n: a.astype(np.float16).astype(a.dtype) if a.dtype == np.float32 else a for n, a in found[0].items()}, found[1]
Folder.get = get
"""
OLD_LEAVES = """
import beamwood.storage.loading as loading
right = loading.upgraded
def upgraded(sections, shape):
    found = right(sections, shape)
    return {**found, "tree1/leaf_of_label": found["tree1/leaf_of_label"][::-1].copy()}
loading.upgraded = upgraded
"""
LEFT_OUT = """
from beamwood.shards.gather import Gathering
right = Gathering.__init__
def init(self, *given, **more):
    right(self, *given, **more)
    self._partial, send = True, self._send
    self._send = lambda asks: {shard: told for shard, told in send(asks).items() if hasattr(told, "labels")}
Gathering.__init__ = init
"""
UNDECLARED = """
from dataclasses import replace
from beamwood.shards.sharded import Partial
right = Partial.coverage.fget
Partial.coverage = property(lambda self: replace(right(self), missing=()))
"""

FLIPS = "tests/attacks/test_bit_flips.py"
LAWS = "tests/test_laws.py::test_same_bits_for_every_engine_on_random_models"
FOLDERS = "tests/attacks/test_foreign_folders.py"
SURFACE = "tests/attacks/test_surface.py::test_no_damaged_value_gets_through[queries]"
ACCESS = "tests/server/test_access.py::test_a_token_guards_everything_but_health_and_the_page"
# ruff: noqa: E501 (a row per bug)
CHEAP = (
    Bug(1, "`verify` compares no checksum of an array", room(FLIPS, cases="BEAMWOOD_FLIPS"), UNVERIFIED, "flip "),
    Bug(
        2,
        "`save` writes into the target itself",
        lambda folder: saving.killed(folder, 0.02, 1, "in place"),
        finds="torn",
    ),
    Bug(2, "`save` forgets to sync the draft", lambda folder: saving.killed(folder, 0.02, 1, "no sync"), finds="torn"),
    Bug(
        3,
        "an error of the disk is taken for success",
        lambda folder: saving.failing(folder, 0.02, 1, "swallow"),
        finds="a torn or wrong file",
    ),
    Bug(
        4,
        "refused memory becomes an empty answer",
        lambda folder: memory.refused(folder, 0.004, 1, "swallow"),
        finds="another answer",
    ),
    Bug(
        5,
        "no handler for a mapped file that is cut",
        lambda folder: cutting.cut(folder, 0.003, 1, None, "no handler"),
        finds="SIGBUS",
    ),
    Bug(
        6,
        "one matcher's scores differ in their last bit",
        room(LAWS, cases="BEAMWOOD_LAWS_MODELS"),
        LAST_BIT,
        "scores differ",
    ),
    Bug(
        7,
        "a reader of matrices lets a ValueError out",
        room(FOLDERS, cases="BEAMWOOD_FUZZ_FOLDERS", kinds="pecos"),
        FOREIGN,
        "ValueError",
    ),
    Bug(
        8,
        "a lock that a fork copies while it is held",
        lambda folder: threading_runs.runs(folder, 0, 1, 0, "lock"),
        finds="did not end",
    ),
    Bug(9, "a label that is no number is a foreign exception", room(SURFACE), ARGUMENT, "Error: "),
    Bug(12, "a reload that does not compare checksums", served("swap --swaps 4"), CHECKSUMS, "swap does not hold"),
    Bug(13, "SIGTERM ends a worker before it has answered", served("term --times 3"), DRAIN, "term does not hold"),
    Bug(16, "any token is taken for the right one", room(ACCESS), TOKEN, "401"),
    Bug(
        17,
        "a reader lets an AssertionError out",
        lambda folder: reading.hostile(folder, 0.0002, 1, None, "assert"),
        finds="foreign exception",
    ),
    Bug(
        19,
        "the leaves of an old file are read in another order",
        room("tests/storage/test_golden.py"),
        OLD_LEAVES,
        "format-1",
    ),
    Bug(20, "a shard that does not answer is left out of a whole answer", silent, LEFT_OUT, "taken for whole"),
    Bug(20, "a partial answer says that nothing is missing", silent, UNDECLARED, "declares"),
)
DEAR = (
    Bug(10, "no question is refused, however many there are", served("overload --seconds 3"), NO_LIMIT, "overload does not hold"),
    Bug(11, "one request of twenty leaves a file open", served("endure --minutes 0.1"), LEAK, "endure does not hold"),
    Bug(14, "an escaped letter in an address is a KeyError", served("hostile --cases 20"), ODD_PATH, "hostile does not hold"),
    Bug(15, "the time limit comes two seconds late", served("endless"), LATE, "endless does not hold"),
    Bug(18, "weights that come back from a checkpoint are halves", lambda folder: resumed(folder, 0, 1, None, "2000"), HALVES, "the file differs"),
)  # fmt: skip


def folder_of(folder: Path, bug: Bug) -> Path:
    """The folder, for PYTHONPATH, with the bug in it."""
    (folder / "sitecustomize.py").write_text(bug.code, encoding="utf-8")
    return folder


def table() -> str:
    """All bugs, for the page."""
    rows = [f"| {bug.promise} | {bug.words} |" for bug in sorted((*CHEAP, *DEAR), key=lambda bug: bug.promise)]
    return "| promise | bug that its campaign found |\n|---|---|\n" + "\n".join(rows) + "\n"
