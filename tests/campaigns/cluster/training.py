"""training.py — data sets and random kills in, whether files trained on Ray nodes are those of one machine out.

    python tests/campaigns/cluster/training.py [--preset balanced] [--sets FOLDER …]     # whole sets
    python tests/campaigns/cluster/training.py --kills 20 [--rows 20000] [--seed 0]      # a part of the first

Every training is `beamwood train`, a program of its own. A set is trained here, then on 1, 2 and 3 Ray nodes, then on 3
of which one is killed in the middle; the first is the set that comes with the project. With --kills a training on 3
nodes loses at a random moment a process that learns, a node, or the program itself, which is then started again with
the checkpoint that it left. Files are compared byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import beamwood as bw
from campaigns.cluster.nodes import LEARNING, Nodes, killed, nodes

QUIETLY = {"NO_COLOR": "1", "TERM": "dumb"}


@dataclass(frozen=True)
class Task:
    """What is trained: the words of the command."""

    name: str
    words: tuple[str, ...]

    def started(self, output: Path, *more: str) -> subprocess.Popen[str]:
        """A training under way."""
        words = [sys.executable, "-m", "beamwood", "train", *self.words, "-q", "-o", str(output), *more]
        given = {**os.environ, **QUIETLY}
        return subprocess.Popen(words, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ended(training: subprocess.Popen[str]) -> None:
    """Waits for its end, which must be a good one."""
    _, said = training.communicate()
    if training.returncode:
        sys.exit(f"a training was lost: it ended with {training.returncode}: {said[-800:]}")


def equal(model: Path, whole: Path, what: str, seconds: float) -> bool:
    """Says whether the files are; the first one is removed."""
    same = model.read_bytes() == whole.read_bytes()
    print(f"{what:52} {seconds:6.1f} s  {'equal' if same else 'DIFFERS'}", flush=True)
    model.unlink()
    return same


def whole_set(task: Task, cluster: Nodes, folder: Path) -> int:
    """How many files differ."""
    here, there, different = folder / "here.bw", folder / "there.bw", 0
    begun = time.monotonic()
    ended(task.started(here))
    took = time.monotonic() - begun
    print(f"{task.name + ', one machine':52} {took:6.1f} s  {here.stat().st_size:,} bytes", flush=True)
    for count in (1, 2, 3):
        cluster.be(count)
        begun = time.monotonic()
        ended(task.started(there, "--ray", cluster.address, *(("--shared", str(folder)) if count == 2 else ())))
        what = f"{task.name}, nodes: {count}{', rows from a folder' if count == 2 else ''}"
        different += not equal(there, here, what, time.monotonic() - begun)
    begun, dice = time.monotonic(), random.Random(0)
    training = task.started(there, "--ray", cluster.address)
    if not killed(LEARNING, dice, lambda: training.poll() is None):
        sys.exit("no piece was learned on the cluster: the kill hit nothing")
    cluster.lose_one(dice)
    ended(training)
    return different + (not equal(there, here, f"{task.name}, a node of 3 killed", time.monotonic() - begun))


def with_kills(task: Task, cluster: Nodes, folder: Path, args: argparse.Namespace) -> int:
    """How many files differ; one kill a training."""
    here, there, different, hits = folder / "here.bw", folder / "there.bw", 0, Counter[str]()
    ended(task.started(here))
    cluster.be(3)
    begun = time.monotonic()
    ended(task.started(there, "--ray", cluster.address))
    took = time.monotonic() - begun
    different += not equal(there, here, f"{task.name}, no kill", took)
    dice, number, ends = random.Random(args.seed), 0, time.monotonic() + 60 * args.minutes
    while number < args.kills and time.monotonic() < ends:
        kind = dice.choice(("process", "node", "program"))
        begun, moment = time.monotonic(), dice.uniform(0.2, 0.95) * took
        more = ("--ray", cluster.address, "--checkpoint", str(folder / f"kept-{number}"))
        training = task.started(there, *more)
        hit = _hit(kind, training, cluster, dice, moment)
        hits[kind if hit else "too late"] += 1
        if kind == "program" and hit:
            training.wait()
            training = task.started(there, *more)
        ended(training)
        number += 1
        what = f"{task.name}, kill {number}: {kind}{'' if hit else ' (too late)'}"
        different += not equal(there, here, what, time.monotonic() - begun)
    print(f"{number} trainings, kills {dict(hits)}: 0 lost, {different} files differ")
    return different + (hits["too late"] == number)


def _hit(kind: str, training: subprocess.Popen[str], cluster: Nodes, dice: random.Random, moment: float) -> bool:
    """Whether the kill hit a training that went on."""
    ends = time.monotonic() + moment
    while training.poll() is None and time.monotonic() < ends:
        time.sleep(0.02)
    if training.poll() is not None:
        return False
    if kind == "process":
        return killed(LEARNING, dice, lambda: training.poll() is None)
    if kind == "node":
        cluster.lose_one(dice)
    else:
        training.kill()
    return True


def tasks(args: argparse.Namespace, folder: Path) -> list[Task]:
    """What the command line names."""
    found = bw.datasets.load("library-subjects")
    many = args.rows if args.kills else len(found.train_texts)
    rows = folder / "rows.jsonl"
    some = zip(found.train_texts[:many], found.train_labels[:many], strict=True)
    rows.write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in some))
    how = ("--preset", args.preset)
    made = [Task(f"library-subjects, {many:,} rows", (str(rows), *how))]
    for place in args.sets:
        matrices = ("--x", str(place / "X.trn.npz"), "--y", str(place / "Y.trn.npz"))
        made.append(Task(place.name, (*matrices, *how)))
    return made if args.only is None else [task for task in made if task.name.startswith(args.only)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--sets", type=Path, nargs="*", default=[], help="folders with X.trn.npz and Y.trn.npz")
    parser.add_argument("--only", help="the set whose name starts so")
    parser.add_argument("--kills", type=int, default=0, help="of trainings of a part of the first set, instead")
    parser.add_argument("--rows", type=int, default=20_000, help="of that part")
    parser.add_argument("--minutes", type=float, default=60.0, help="at most; fewer kills then")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, nodes(num_cpus=1) as cluster:
        folder = Path(name)
        if args.kills:
            sys.exit(1 if with_kills(tasks(args, folder)[0], cluster, folder, args) else 0)
        sys.exit(1 if sum(whole_set(task, cluster, folder) for task in tasks(args, folder)) else 0)


if __name__ == "__main__":
    main()
