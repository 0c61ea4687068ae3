"""commands.py — the twenty promises, each with its campaign: of this room, or of another called as a command."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attacks.foreign_campaign import KINDS

from promises import cluster, cutting, memory, reading, saving, threading_runs
from promises.outcome import Outcome

TESTS = Path(__file__).resolve().parents[1]
Campaign = Callable[[Path, float, int, "int | None"], Outcome]


@dataclass(frozen=True)
class Promise:
    """What we promise, how it is attacked, and by what."""

    number: int
    text: str
    how: str
    run: Campaign


def without_case(campaign: Callable[[Path, float, int], Outcome]) -> Campaign:
    """A campaign whose cases have no numbers: each is named by what is done in it."""
    return lambda folder, size, seed, _: campaign(folder, size, seed)


def pytest_of(
    *paths: str,
    variable: str = "",
    full: int = 0,
    first: str = "",
    times: int = 1,
    more: dict[str, str] | None = None,
) -> Campaign:
    """Tests of another room; variable: says how many cases they make of `full`, so many times; first: where they
    start; more: further variables."""

    def run(folder: Path, size: float, seed: int, case: int | None) -> Outcome:
        cases = 1 if case is not None else max(20, int(full * size))
        given = {**os.environ, **(more or {}), **({variable: str(cases)} if variable else {})}
        if first:
            given[first] = str(case if case is not None else seed % 1_000_000_000)
        command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "--timeout=0", *paths]
        found = subprocess.run(command, cwd=TESTS.parent, env=given, capture_output=True, text=True, check=False)
        passed = re.search(r"(\d+) passed", found.stdout)
        told = f"{passed[1] if passed else 0} tests passed" + (f", seed {seed}" if first else "")
        failures = [] if found.returncode == 0 else [found.stdout[-1500:] + found.stderr[-500:]]
        tried = cases * times if variable else int(passed[1]) if passed else 0
        return Outcome(tried, failures, told, full * times)

    return run


def server(names: str, **counts: float) -> Campaign:
    """Campaigns of `make test-serve`. counts: options that grow with the size, by their full value."""

    def run(folder: Path, size: float, seed: int, case: int | None) -> Outcome:
        words = names.split()
        for name, full in counts.items():
            words += [f"--{name.replace('_', '-')}", str(max(3, int(full * size)))]
        command = [sys.executable, str(TESTS / "campaigns" / "serve.py"), *words]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        bad = re.findall(r"^(\S+):.*\n((?:  .*\n)*?)  DOES NOT HOLD", found.stdout, re.M)
        cases = sum(int(max(3, full * size)) for full in counts.values()) or len(names.split())
        failures = [f"{name} does not hold: {' '.join(said.split())}" for name, said in bad] or (
            [found.stderr[-800:]] if found.returncode else []
        )
        told = f"{' '.join(words)}: {found.stdout.count('  holds')} hold"
        return Outcome(cases, failures, told, int(sum(counts.values())))

    return run


def resumed(folder: Path, size: float, seed: int, case: int | None, rows: str = "5000") -> Outcome:
    """Trainings of so many rows killed by SIGKILL."""
    kills = max(3, int(1000 * size))
    command = [sys.executable, str(TESTS / "campaigns" / "resume.py"), "--kills", str(kills), "--rows", rows]
    found = subprocess.run([*command, "--seed", str(seed)], capture_output=True, text=True, check=False)
    failures = [found.stdout[-500:] + found.stderr[-500:]] if found.returncode else []
    return Outcome(kills, failures, f"files of {rows} rows compared, seed {seed}", 1000)


def damaged(folder: Path, size: float, seed: int, case: int | None) -> Outcome:
    """Files spoiled in every way, and a tenth as many of which one bit is flipped."""
    parts = (("model_files", "FUZZ_FILES", 1_000_000), ("bit_flips", "FLIPS", 100_000))
    found = [
        pytest_of(
            f"tests/attacks/test_{test}.py", variable=f"BEAMWOOD_{variable}", full=full, first="BEAMWOOD_FUZZ_FIRST"
        )(folder, size, seed, case)
        for test, variable, full in parts
    ]
    told = f"{found[1].cases:,} of them single bits, with verify (long form: 100,000); {found[0].told}"
    return Outcome(sum(one.cases for one in found), found[0].failures + found[1].failures, told, 1_100_000)


@functools.cache
def promises() -> tuple[Promise, ...]:
    """All of them, by number."""
    # ruff: noqa: E501 (a row per promise)
    rows: list[tuple[str, str, Campaign]] = [
        ("A damaged file is a `FormatError`", "mutated files, with valid checksums too; single bits flipped; damaged forests under ASan: `make sanitize`", damaged),
        ("`save` leaves the old file or the new one", "killed before and after every system call; simulated power losses", without_case(saving.killed)),
        ("A disk that fails: an error, the old file whole, no rubbish", "every write, sync, rename and mode fails once, six ways", without_case(saving.failing)),
        ("Memory refused: `MemoryError` or ours", "one allocation after the other is refused", without_case(memory.refused)),
        ("A mapped file cut under us: an error, and life goes on", "files cut under four searching threads", cutting.cut),
        ("Same bits", "random models, every layout, matcher, instruction set, threads", pytest_of("tests/test_laws.py", variable="BEAMWOOD_LAWS_MODELS", full=10_000)),
        ("Foreign folders never crash", "damaged copies of each format", pytest_of("tests/attacks/test_foreign_folders.py", variable="BEAMWOOD_FUZZ_FOLDERS", full=10_000, times=len(KINDS))),
        ("Threads, forks, signals", "64 threads and a fork at random moments", threading_runs.runs),
        ("Bad matrices, texts, arguments", "one table of damaged inputs for every public function", pytest_of("tests/attacks/test_surface.py", "tests/attacks/test_bad_input.py")),
        ("Overload", "more than it can do", server("overload closed", seconds=600)),
        ("Hours of mixed load", "searches, batches, explanations, errors, cut connections and reloads; memory, files, threads compared", server("endure", minutes=240)),
        ("Reloads under load", "good, damaged, half-copied and missing files", server("swap cold", swaps=200)),
        ("SIGTERM and SIGKILL", "under load", server("term kill abort restart no-start hung", times=100)),
        ("Hostile requests", "raw sockets, smuggling, slow, unread, pipelined", server("hostile slow pipeline unread", cases=50_000, slow=1000)),
        ("The dearest request ends at its limit", "long and endless questions beside ordinary ones", server("long endless", attack_seconds=60)),
        ("Closed by default", "tokens, hosts, origins, files outside", pytest_of("tests/server/test_access.py")),
        ("Readers", "hostile inputs of every format", reading.hostile),
        ("Training goes on", "killed at random moments", resumed),
        ("Old files", "a golden file of every format", pytest_of("tests/storage/test_golden.py")),
        ("What a cluster cannot answer", "shards that fall silent; shards, ingresses and nodes killed under load; trainings that lose processes, nodes and their program", cluster.deaths),
    ]  # fmt: skip
    return tuple(Promise(number, *row) for number, row in enumerate(rows, 1))
