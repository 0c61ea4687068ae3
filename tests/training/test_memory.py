"""What training needs and what there is: estimates beside real peaks, control groups of both versions, real limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.problems import random_problem

import beamwood as bw
from beamwood.training.memory import available_bytes

MB = 1 << 20

PEAK = """
import json, sys, warnings
from pathlib import Path
import numpy as np, scipy.sparse as sp
import beamwood as bw

def held(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
rows, features, labels = 6000, 20_000, 1500
topic = rng.integers(0, labels, 2 * rows)
common, own = (rng.random((rows, 40)) ** 3 * features).astype(int), topic[:rows, None] * 7 % features + np.arange(10)
cells = np.hstack([common, own % features])
X = sp.csr_matrix((rng.random(cells.size, dtype=np.float32), cells.ravel(), np.arange(rows + 1) * 50), (rows, features))
X.sum_duplicates()
Y = sp.csr_matrix((np.ones(2 * rows), (np.arange(2 * rows) % rows, topic)), (rows, labels))
bw.train(X[:50], Y[:50], "fast", progress=False)
Path("/proc/self/clear_refs").write_text("5")
before = held("VmRSS")
report = bw.train(X, Y, threads=2, progress=False, **json.loads(sys.argv[1])).report
print(json.dumps([report.estimated_bytes, held("VmHWM") - before]))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "fast"},
        {"preset": "fast", "prune": 0},
        {"preset": "fast", "prune": 0, "negatives": "man"},
        {"preset": "fast", "negatives": "tfn+man"},
        {"preset": "balanced", "prune": 0},
    ],
    ids=str,
)
def test_the_memory_estimate_errs_on_the_large_side(settings: dict[str, Any]) -> None:
    """bench/train_memory.py does the same on real sets."""
    run = subprocess.run([sys.executable, "-c", PEAK, json.dumps(settings)], capture_output=True, text=True, check=True)
    estimated, real = json.loads(run.stdout)
    assert real <= estimated <= 20 * real + 20 * MB


def root(tmp_path: Path, files: dict[str, str]) -> Path:
    """A made-up / with these files."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


MEMINFO = {"proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {900 * 1024} kB\n"}


def group(folder: str, limit: object, usage: int, pages: int = 0) -> dict[str, str]:
    """The files of a control group of version 2."""
    stat = f"anon 5\nfile {pages}\ninactive_file {pages // 2}\nactive_file {pages - pages // 2}\n"
    return {
        f"{folder}/memory.max": f"{limit}\n",
        f"{folder}/memory.current": f"{usage}\n",
        f"{folder}/memory.stat": stat,
    }


def old_group(folder: str, limit: int, usage: int, pages: int = 0) -> dict[str, str]:
    """The files of a control group of version 1."""
    return {
        f"{folder}/memory.limit_in_bytes": f"{limit}\n",
        f"{folder}/memory.usage_in_bytes": f"{usage}\n",
        f"{folder}/memory.stat": f"cache 1\ninactive_file 1\ntotal_inactive_file {pages}\ntotal_active_file 0\n",
    }


TOP, OLD = "sys/fs/cgroup", "sys/fs/cgroup/memory"
NO_LIMIT = 9223372036854771712
HERE, HERE_OLD = {"proc/self/cgroup": "0::/a/b\n"}, {"proc/self/cgroup": "4:cpu:/x\n3:memory:/a/b\n0::/x\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MEMINFO, 900),
        (MEMINFO | HERE | group(f"{TOP}/a/b", "max", 50 * MB), 900),
        (MEMINFO | HERE | group(f"{TOP}/a/b", 300 * MB, 100 * MB), 200),
        (MEMINFO | HERE | group(f"{TOP}/a/b", 300 * MB, 100 * MB, pages=80 * MB), 280),
        (MEMINFO | HERE | group(f"{TOP}/a", 150 * MB, 100 * MB) | group(f"{TOP}/a/b", 300 * MB, 60 * MB), 50),
        (MEMINFO | HERE | group(TOP, 120 * MB, 20 * MB) | group(f"{TOP}/a/b", "max", 10 * MB), 100),
        (MEMINFO | HERE | group(TOP, 120 * MB, 20 * MB), 100),  # a container that sees its own group as the top
        (MEMINFO | HERE | group(f"{TOP}/a/b", 100 * MB, 130 * MB), 0),
        (MEMINFO | HERE_OLD | old_group(f"{OLD}/a/b", 300 * MB, 100 * MB), 200),
        (MEMINFO | HERE_OLD | old_group(f"{OLD}/a/b", 300 * MB, 100 * MB, pages=90 * MB), 290),
        (MEMINFO | HERE_OLD | old_group(f"{OLD}/a/b", NO_LIMIT, 100 * MB), 900),
        (MEMINFO | HERE_OLD | old_group(OLD, 200 * MB, 100 * MB) | old_group(f"{OLD}/a/b", NO_LIMIT, MB), 100),
        (MEMINFO | HERE | {f"{TOP}/a/b/memory.max": "rubbish\n"}, 900),
    ],
)
def test_control_groups_count_with_those_around_them(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    assert available_bytes(root(tmp_path, files)) == expected * MB


def test_nothing_known_is_none(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) is None


LIMITED = """
import resource, sys
import beamwood as bw
from beamwood.training.memory import available_bytes
free = available_bytes()
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
assert 0 < available_bytes() < min(free, 6 << 30)
"""


def test_a_real_limit_of_the_process_counts() -> None:
    run = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_training_that_does_not_fit_is_refused_before_it_starts() -> None:
    X, Y = random_problem(300, 40, 30, seed=0)
    with pytest.raises(bw.SettingsError, match="max_memory"):
        bw.train(X, Y, max_memory=1000, progress=False)
