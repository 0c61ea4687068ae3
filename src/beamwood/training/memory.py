"""memory.py — a problem and settings in, the bytes a training needs out; a refusal if they are not there."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from beamwood.errors import SettingsError
from beamwood.lexical.fit import CANDIDATES
from beamwood.lexical.member import MOST_ROWS
from beamwood.training.problem import Problem
from beamwood.training.settings import Settings

_LANES = 8  # siblings solved side by side
_ENTRY = 8  # bytes of one non-zero: an id and a float
_BUILT = 20  # bytes of one weight while it is taken from the solver, or while the tree is built from it
_TREE = 14  # bytes of one weight of a tree that is done: a weight, and its share of a row
_MATCH = 96  # bytes of one node in the answers of a beam search, while they are turned into columns
_CANDIDATE = 120  # bytes that a candidate takes while the head is fitted
_SMALL = 2 << 20  # bytes that even the smallest training takes
_USUAL_PRUNE = 0.1  # from here on few weights per node are left; below, all are counted
_NO_LIMIT = 1 << 60  # version 1 of control groups has no word for it, only a number as large as can be


def estimated_bytes(problem: Problem, settings: Settings, threads: int) -> int:
    """What a training adds, at its peak, to the memory its data already takes; errs on the large side.

    `bench/train_memory.py` compares it with the truth.
    """
    number = 8 if settings.eps < 1e-3 or settings.loss == "logistic" else 4
    state = 2 * _LANES * number + (_LANES * number if settings.loss == "logistic" else 0)  # of a row
    gathered = problem.X.nnz * _ENTRY + problem.rows * 32
    solver = threads * (problem.rows * (state + 16) + problem.features * _LANES * number)
    positives = 4 * problem.Y.nnz * 16
    vectors = _label_vectors(problem)
    kept = _kept_weights(problem, settings, vectors)
    layers = kept * (_BUILT + _TREE * (settings.trees - 1))
    matched = 0
    if "man" in settings.negatives:  # the answers of a beam search for all rows, and the model that gives them
        matched = problem.rows * settings.beam * _MATCH + kept * _ENTRY
    words = 0
    if settings.lexical is not False:  # words of labels, and the candidates of held-out rows
        words = 2 * vectors * _ENTRY + min(problem.rows, MOST_ROWS) * 2 * CANDIDATES * _CANDIDATE
    return int(_SMALL + max(gathered + solver, 2 * vectors * _ENTRY) + positives + layers + matched + words)


def _label_vectors(problem: Problem) -> int:
    """Non-zeros of the label vectors before rows are merged."""
    merged = problem.labels * problem.features
    return min(int(np.diff(problem.Y.indptr).astype(np.int64) @ np.diff(problem.X.indptr)), merged)


def _kept_weights(problem: Problem, settings: Settings, vectors: int) -> int:
    """Weights of one tree: without pruning, a node may have one for each feature of the rows that reach its parent.

    A parent that m rows reach sees a feature that a share f of all rows has with probability 1 - (1 - f)^m, if rows
    came to it at random; rows of similar labels share more features, so that this errs on the large side.
    """
    share = np.unique(problem.X.indices, return_counts=True)[1] / problem.rows  # of features that some row has
    with np.errstate(divide="ignore"):
        missing = np.log1p(-share)  # the logarithm of the share of rows without the feature
    full, nodes = 0.0, problem.labels
    width = settings.max_leaf if settings.tree in ("balanced", "capped", "unbalanced", "random") else settings.branching
    while True:
        parents = -(-nodes // width)
        rows = min(problem.rows, _rows_that_reach(problem, settings, parents) / parents)
        full += nodes * float(-np.expm1(rows * missing).sum())
        if parents == 1:
            break
        nodes, width = parents, settings.branching
    if settings.top_weights:
        full = min(full, 2 * problem.labels * settings.top_weights)
    return int(full if settings.prune < _USUAL_PRUNE else min(full, vectors))


def _rows_that_reach(problem: Problem, settings: Settings, parents: int) -> int:
    """How often rows come to the parents of a layer, all taken together."""
    by_label, by_beam = problem.Y.nnz, problem.rows * min(settings.beam, parents)
    if settings.negatives == "user" and problem.negatives is not None:
        return int(by_label + problem.negatives.nnz)
    return int({"tfn": by_label, "user": by_label, "man": by_beam}.get(settings.negatives, by_label + by_beam))


def available_bytes(root: Path = Path("/")) -> int | None:
    """Memory that is free for this process, as far as the system tells; None: unknown.

    The least of what the machine has, what every control group around the process still allows, and what its own limit
    leaves. root: where /proc and /sys lie.
    """
    limits = [*_of_machine(root / "proc/meminfo"), *_of_groups(root), *_of_process(root / "proc/self/status")]
    return max(0, min(limits)) if limits else None


def _of_machine(meminfo: Path) -> Iterator[int]:
    yield from (kilobytes * 1024 for kilobytes in _numbers(meminfo, "MemAvailable:"))


def _of_process(status: Path) -> Iterator[int]:
    """What RLIMIT_AS leaves."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield from (limit - 1024 * kilobytes for kilobytes in _numbers(status, "VmSize:"))


def _of_groups(root: Path) -> Iterator[int]:
    """What each control group (version 2 or 1) around the process allows beyond what cannot be given back."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if number == "0" and not kinds:
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "")
        elif "memory" in kinds.split(","):
            top, names = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):  # a container sees its own group as the top
            yield from _of_group(folder, *names)
            if folder == top:
                break


def _of_group(folder: Path, limit: str, usage: str, prefix: str) -> Iterator[int]:
    """Limit less use; file pages count as free, for the system takes them back when memory is short."""
    allowed, used = _numbers(folder / limit), _numbers(folder / usage)
    if allowed and used and allowed[0] < _NO_LIMIT:
        stat = folder / "memory.stat"
        pages = sum(sum(_numbers(stat, f"{prefix}{kind}_file")) for kind in ("active", "inactive"))
        yield allowed[0] - used[0] + min(pages, used[0])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _numbers(path: Path, name: str = "") -> list[int]:
    """The whole numbers of the lines that have this name before them, or nothing; a word in its place is left out."""
    words = [line.split() for line in _lines(path)]
    found = [word[1] for word in words if len(word) > 1 and word[0] == name] if name else [w[0] for w in words if w]
    return [int(word) for word in found if word.isdecimal()]


def refuse_if_too_big(needed: int, limit: int | None, settings: Settings) -> None:
    """Stops before the work starts rather than an hour into it."""
    if limit is None or needed <= limit:
        return
    advice = ["raise prune", "set top_weights (200, say)", "train on fewer rows"]
    if settings.trees > 1:
        advice.insert(0, f"lower trees (now {settings.trees})")
    raise SettingsError(
        f"this training would need about {needed / 2**30:.2f} GiB; expected at most {limit / 2**30:.2f} GiB, "
        f"the memory that is free. {', '.join(advice).capitalize()}, set threads=1, "
        "or pass max_memory (in bytes; --max-memory is in GiB) if you know better."
    )
