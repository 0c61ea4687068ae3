"""saving.py — a save whose every system call is killed, fails or is cut short in; old file or new one, whole, out.

Promise 2: killed before and after every call; power lost after every call, with every loss that a disk may make of what
was not synced. Promise 3: every call fails once, with each error a disk can give.
"""

from __future__ import annotations

import errno
import os
import random
import signal
from pathlib import Path

import numpy as np
from support.models import large_model, small_model

import beamwood as bw
from beamwood.storage import draft as drafts
from promises.outcome import FILES, KILL_AFTER, KILL_BEFORE, SHORT, Outcome, inside, library, read, show

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES, SHORT)
BLOCK = 512


def killed(folder: Path, size: float, seed: int, plant: str = "") -> Outcome:
    """Promise 2. plant: "in place" writes into the target itself, "no sync" forgets the sync of the draft."""
    return read(inside(folder, "saving", "killed", folder, size, seed, plant))


def failing(folder: Path, size: float, seed: int, plant: str = "") -> Outcome:
    """Promise 3. plant: "swallow" takes every error for success."""
    return read(inside(folder, "saving", "failing", folder, size, seed, plant))


def main(what: str, folder: str, size: str, seed: str, plant: str) -> None:
    """Inside the process that has the library."""
    place = Path(folder) / "place"
    place.mkdir(exist_ok=True)
    plant_bug(plant)
    models = [small_model(), bw.Model.from_trees([small_model()] * 2)]
    if float(size) >= 1:
        models.append(large_model())
    outcome, lost = Outcome(), 0
    for model in models:
        case = Case(place, model)
        if what == "killed":
            for how in (KILL_BEFORE, KILL_AFTER):
                case.each_call(how, outcome)
            losses = int(12_000 * float(size)) // len(models) or 100
            case.power_losses(losses, random.Random(int(seed)), outcome)
            lost += losses
        else:
            for how in ERRORS:
                case.each_call(how, outcome)
    outcome.told = f"seed {seed}" + (f"; {lost:,} of them power losses (long form: 12,000)" if lost else "")
    show(outcome)


def plant_bug(plant: str) -> None:
    """Bugs of the kind that a campaign is for."""
    if plant == "in place":
        setattr(os, "replace", _copied_in_place)  # noqa: B010
    elif plant == "no sync":
        setattr(os, "fsync", lambda _: None)  # noqa: B010
    elif plant == "swallow":
        setattr(os, "replace", _tried)  # noqa: B010


def _copied_in_place(source: str, target: str | Path) -> None:
    with open(target, "wb") as file:
        file.write(Path(source).read_bytes())
    os.unlink(source)


def _tried(source: str, target: str | Path) -> None:
    try:
        os.rename(source, target)
    except OSError:
        os.unlink(source)


class Case:
    """One model that replaces another file, three ways: over a file, through a link, where nothing was."""

    def __init__(self, place: Path, model: bw.Model) -> None:
        self.place, self.model, self.target = place, model, place / "model.bw"
        model.save(self.target)
        self.new = self.target.read_bytes()
        self.old = b"the old file " * 100
        self.faults = library()

    def each_call(self, how: int, outcome: Outcome) -> None:
        """The first call is hit, then the second, until a save has fewer."""
        for way in ("file", "link", "nothing"):
            for number in range(10_000):
                fired, failure = self.once(number, how, way)
                if not fired:
                    break
                what = f"{way}, call {number}, how {how}, {len(self.new)} bytes: {failure}"
                outcome.add(what if failure else None)

    def prepare(self, way: str) -> None:
        for path in list(self.place.iterdir()):
            path.unlink()
        if way == "link":
            (self.place / "real.bw").write_bytes(self.old)
            self.target.symlink_to("real.bw")
        elif way == "file":
            self.target.write_bytes(self.old)

    def once(self, number: int, how: int, way: str) -> tuple[bool, str | None]:  # noqa: PLR0911 (a way out per fault)
        """Whether the fault came, and what was wrong afterwards."""
        self.prepare(way)
        before = {path.name for path in self.place.iterdir()}
        child = os.fork()
        if child == 0:
            os._exit(self.save(number, how))
        status = os.waitpid(child, 0)[1]
        by_signal = os.WIFSIGNALED(status)
        if by_signal and os.WTERMSIG(status) != signal.SIGKILL:
            return True, f"died by signal {os.WTERMSIG(status)}"
        code = -1 if by_signal else os.WEXITSTATUS(status)
        if code == 10:
            return False, None
        found = self.target.read_bytes() if self.target.exists() else b""
        old = b"" if way == "nothing" else self.old
        allowed = {0: [self.new], 1: [old], 2: [self.new], -1: [old, self.new]}.get(code)
        if allowed is None:
            return True, f"ended with {code}"
        if found not in allowed:
            return True, f"a torn or wrong file of {len(found)} bytes after outcome {code}"
        rest = {path.name for path in self.place.iterdir()} - before - {self.target.name}
        if code >= 0 and rest:
            return True, f"left {sorted(rest)}"
        if by_signal:  # the next save removes what a killed one left
            self.model.save(self.target)
            rest = {path.name for path in self.place.iterdir()} - before - {self.target.name}
            if rest or self.target.read_bytes() != self.new:
                return True, f"the next save left {sorted(rest)}"
        return True, None

    def save(self, number: int, how: int) -> int:
        """In a child: 0 it was saved, 1 our error, 2 our error that says the new file is there, 10 no fault came."""
        self.faults.bw_arm(number, how, FILES)
        try:
            self.model.save(self.target)
        except bw.FormatError as error:
            self.faults.bw_disarm()
            return 2 if "complete and in place" in str(error) else 1
        except BaseException:
            self.faults.bw_disarm()
            return 4
        return 0 if self.faults.bw_disarm() else 10

    def recorded(self) -> list[tuple[str, int, int, str]]:
        """The calls that one save makes."""
        self.prepare("file")
        log = os.memfd_create("calls")
        self.faults.bw_log(log)
        self.faults.bw_arm(1 << 40, 0, FILES)
        self.model.save(self.target)
        self.faults.bw_disarm()
        self.faults.bw_log(-1)
        lines = os.pread(log, os.fstat(log).st_size, 0).decode().splitlines()
        os.close(log)
        split = [line.split(" ", 3) for line in lines]
        return [(what, int(a), int(b), name) for what, a, b, name in split]

    def power_losses(self, count: int, dice: random.Random, outcome: Outcome) -> None:
        """The power goes after some call: what was not synced may be there, in part, or not at all."""
        calls = self.recorded()
        for _ in range(count):
            at = dice.randrange(len(calls) + 1)
            found = after_power_loss(calls[:at], self.old, self.new, dice)
            outcome.add(None if found in (self.old, self.new) else f"torn after call {at} of {calls}"[:600])


def after_power_loss(calls: list[tuple[str, int, int, str]], old: bytes, new: bytes, dice: random.Random) -> bytes:
    """What a disk may hold under the target's name: the worst that POSIX allows.

    Blocks written and not synced are there or are zeros; a rename whose folder was not synced happened or not.
    """
    waiting: list[tuple[int, int]] = []
    disk = bytearray(len(new))
    draft, folders, name = -1, set(), old
    renamed = False
    for what, a, b, text in calls:
        if what == "open":
            if drafts._SUFFIX in text:
                draft = a
            else:
                folders.add(a)
        elif what == "write":
            waiting.append((a, a + b))
        elif what in ("fsync", "fdatasync") and a == draft and a not in folders:
            for first, end in waiting:
                disk[first:end] = new[first:end]
            waiting = []
        elif what == "rename":
            renamed = True
            draft = -1
    synced = renamed and any(what == "fsync" and a in folders for what, a, _, _ in calls)
    there = np.frombuffer(disk, np.uint8)
    for first, end in waiting:
        blocks = -(-(end - first) // BLOCK)
        kept = np.unpackbits(np.frombuffer(dice.randbytes(-(-blocks // 8)), np.uint8))[:blocks].repeat(BLOCK)
        there[first:end] = np.frombuffer(new, np.uint8)[first:end] * kept[: end - first]
    if renamed and (synced or dice.random() < 0.5):
        name = bytes(disk)
    return name
