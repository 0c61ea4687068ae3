"""A model file in; what making its cascade layout anew from plain layers takes out, in seconds and in memory.

    python bench/engine/build_memory.py model.bw other.bw

A fresh process reads the layers, forgets its peak so far, and builds. The peak beyond the layers themselves, over the
bytes of the model, is what building needs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import beamwood as bw
from beamwood.bench.resident import resident
from beamwood.bench.timing import print_table
from beamwood.training.report import peak_bytes


def measure(path: str) -> None:
    """Prints bytes of the model, bytes that building it took, and seconds."""
    given = bw.load(path)
    layers, activation = given.layers(), given.info()["activation"]
    del given
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far: proc(5)
    started = time.perf_counter()
    made = bw.Model.from_layers(layers, activation=activation)
    seconds = time.perf_counter() - started
    print(made.info()["bytes_of_weights"], peak_bytes() - before, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="model files of one tree")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        return measure(given.models[0])
    rows = []
    for path in given.models:
        command = [sys.executable, __file__, "--measure", path]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        size, peak, seconds = int(out[0]), int(out[1]), float(out[2])
        rows.append((Path(path).name, size / 1e6, peak / 1e6, peak / size, seconds))
    print_table(("model", "model MB", "peak MB while building", "times the model", "seconds"), rows)


if __name__ == "__main__":
    main()
