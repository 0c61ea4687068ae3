"""run.py — numbers of promises in, campaigns against them and a page with what came of each out: `make promises`.

    python tests/promises/run.py [--long] [--size 0.1] [--seed N] [--case N] [--page FILE] [NUMBER]...

--size: the share of each promise's full number of cases; 1 with --long. --case replays one case of promises that number
theirs. Rows of the page that were not run now stay as they are, with the commit and the date of their own run.
"""

from __future__ import annotations

import argparse
import datetime
import re
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for _place in Path(__file__).resolve().parents[1:3]:
    sys.path.insert(0, str(_place))

from promises import planted  # noqa: E402
from promises.commands import Promise, promises  # noqa: E402
from promises.outcome import Outcome  # noqa: E402

HEAD = """# What we promise, and how we tried to break it

`make promises` writes this page: each row is one campaign, with the commit that it last ran on, and of how many cases
of its long form it tried how many. A promise without a run says so. `PROMISES=long make promises` takes hours;
`ONLY="2 3"` chooses, `SIZE=0.1` says which share of the long form is tried (0.02 when nothing is said).

| promise | how it was attacked | cases | failures | seconds | commit, day |
|---|---|---|---|---|---|
"""
FOOT = """
## Bugs that were planted

A campaign that finds nothing may be blind. For each promise `tests/promises/test_planted.py` puts a bug of its kind
into the code that the campaign runs, and fails when the campaign does not notice. `make test` plants most of them,
`make promises` all.

"""


def main() -> int:
    """Runs what is named, all of them when nothing is."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("numbers", nargs="*", type=int)
    options.add_argument("--long", action="store_true")
    options.add_argument("--size", type=float)
    options.add_argument("--seed", type=int)
    options.add_argument("--case", type=int)
    options.add_argument("--page", type=Path)
    given = options.parse_args()
    size = given.size or (1.0 if given.long else 0.02)
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    failed = 0
    for promise in promises():
        if given.numbers and promise.number not in given.numbers:
            continue
        print(f"promise {promise.number}: {promise.text} (size {size:g}, seed {seed})", flush=True)
        begun = time.monotonic()
        outcome = attempt(promise, size, seed, given.case)
        seconds = time.monotonic() - begun
        if not outcome.cases and not outcome.failures:
            print(f"  nothing was tried. {outcome.told or promise.how}", flush=True)
            continue
        print(
            f"  {outcome.cases:,} cases, {len(outcome.failures)} failures, {seconds:.0f} s. {outcome.told}", flush=True
        )
        for failure in outcome.failures[:5]:
            print(f"  FAILURE {failure[:1500]}", flush=True)
        failed += bool(outcome.failures)
        if given.page:
            write_row(given.page, promise, outcome, seconds)
    return 1 if failed else 0


def attempt(promise: Promise, size: float, seed: int, case: int | None) -> Outcome:
    """One campaign in a folder of its own; one that breaks is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return promise.run(Path(folder), size, seed, case)
        except Exception as error:
            return Outcome(0, [f"the campaign itself broke: {type(error).__name__}: {error}"])


def write_row(page: Path, promise: Promise, outcome: Outcome, seconds: float) -> None:
    """Puts a row into the page; the others stay."""
    rows = {}
    if page.exists():
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\| (\d+)\. ", line):
                rows[int(found[1])] = line
    for other in promises():
        rows.setdefault(other.number, f"| {other.number}. {other.text} | {other.how} | not run | | | |")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    day = datetime.datetime.now(datetime.timezone.utc).date()
    failures = f"{len(outcome.failures)}" + "".join(f"; {plain(one)}" for one in outcome.failures[:2])
    tried = f"{outcome.cases:,}" + (f" of {outcome.full:,}" if outcome.full else "")
    rows[promise.number] = (
        f"| {promise.number}. {promise.text} | {promise.how}. {plain(outcome.told)} | {tried} | {failures} "
        f"| {seconds:.0f} | {commit.stdout.strip() or 'unknown'}, {day} |"
    )
    lines = "\n".join(rows[number] for number in sorted(rows))
    page.write_text(f"{HEAD}{lines}\n{FOOT}{planted.table()}", encoding="utf-8")


def plain(text: str) -> str:
    """A text that can stand in a cell of a table."""
    short = re.sub(r"\s+", " ", text.replace("|", "/")).strip()[:160]
    return re.sub(r"/(?:tmp|home|root|work)/\S*", "…", short)


if __name__ == "__main__":
    sys.exit(main())
