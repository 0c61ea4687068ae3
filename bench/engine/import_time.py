"""Nothing in; how long `import beamwood` takes against `import scipy.sparse`, out.

Each import runs in a fresh interpreter, in turns, after one warm-up of each. A child times the import statement itself,
in time that passes and in processor time. Exits with 1 when the ratio of the medians is above --most.

    python bench/engine/import_time.py
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from beamwood.bench.timing import print_header, print_table

IMPORTS = ("import scipy.sparse", "import beamwood", "import numpy")
CHILD = """
import time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def seconds(statement: str) -> tuple[float, float]:
    """Seconds that passed and seconds of the processor, for one statement in a fresh interpreter."""
    code = CHILD.format(statement=statement)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    wall, cpu = map(float, ran.stdout.split())
    return wall, cpu


def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """The medians of every import over the rounds."""
    for statement in IMPORTS:
        seconds(statement)
    found: dict[str, list[tuple[float, float]]] = {statement: [] for statement in IMPORTS}
    for _ in range(rounds):
        for statement in IMPORTS:
            found[statement].append(seconds(statement))
    return {
        statement: (statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times))
        for statement, times in found.items()
    }


def main() -> int:
    asked = argparse.ArgumentParser(description="Time of import beamwood against import scipy.sparse.")
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--most", type=float, default=2.0, help="the largest ratio that passes")
    given = asked.parse_args()
    found = measure(given.rounds)
    base = found["import scipy.sparse"]
    print_header("import time", {"rounds": given.rounds})
    print_table(
        ("statement", "ms", "processor ms", "x scipy.sparse"),
        [
            (name, f"{wall * 1e3:.0f}", f"{cpu * 1e3:.0f}", f"{cpu / base[1]:.2f}")
            for name, (wall, cpu) in found.items()
        ],
    )
    ratio = found["import beamwood"][1] / base[1]
    print(f"import beamwood takes {ratio:.2f} times as long as import scipy.sparse; at most {given.most:g} is expected")
    return int(ratio > given.most)


if __name__ == "__main__":
    sys.exit(main())
