"""train_memory.py — data sets in, the memory that training was estimated to take and really took out.

Every training runs in a process of its own: what it held at most beyond what it held with its data loaded, beside
`report.estimated_bytes`. The estimate must not be below the truth.

    python bench/train_memory.py FOLDER …        (folders with X.trn.npz and Y.trn.npz)
    python bench/train_memory.py FOLDER --rows 60000 --threads 2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

CASES: dict[str, dict[str, Any]] = {
    "fast": {"preset": "fast"},
    "fast, prune=0": {"preset": "fast", "prune": 0.0},
    "fast, top_weights=50": {"preset": "fast", "top_weights": 50},
    "fast, tfn+man": {"preset": "fast", "negatives": "tfn+man"},
    "fast, man, prune=0": {"preset": "fast", "negatives": "man", "prune": 0.0},
    "fast, logistic": {"preset": "fast", "loss": "logistic", "activation": "sigmoid"},
    "fast, eps=1e-4": {"preset": "fast", "eps": 1e-4},
    "fast, huffman, branching=2": {"preset": "fast", "tree": "huffman", "branching": 2},
    "fast, trees=3": {"preset": "fast", "trees": 3},
    "balanced": {"preset": "balanced"},
    "balanced, prune=0": {"preset": "balanced", "prune": 0.0},
}


def held(what: str) -> int:
    """Bytes of memory that /proc tells of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def measure(folder: str, rows: int, threads: int, case: str) -> None:
    """Trains once and prints both numbers."""
    import scipy.sparse as sp

    import beamwood as bw

    warnings.simplefilter("ignore")
    X, Y = (sp.csr_matrix(sp.load_npz(f"{folder}/{name}.trn.npz"))[:rows] for name in "XY")
    X, Y = X.astype("float32"), Y.astype("float32")
    bw.train(X[:50], Y[:50], "fast", progress=False)  # what the first training of a process loads is no part of this
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again here
    before = held("VmRSS")
    report = bw.train(X, Y, threads=threads, progress=False, max_memory=1 << 60, **CASES[case]).report
    assert isinstance(report, bw.Report)
    print(json.dumps({"estimated": report.estimated_bytes, "real": held("VmHWM") - before}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--rows", type=int, default=1 << 40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.case:
        measure(told.folders[0], told.rows, told.threads, told.case)
        return
    print(f"{'set':20} {'settings':28} {'estimate MB':>12} {'real MB':>9} {'ratio':>6}")
    short = 0
    for folder in told.folders:
        for case in CASES:
            command = [sys.executable, __file__, folder, "--case", case, "--threads", str(told.threads)]
            run = subprocess.run([*command, "--rows", str(told.rows)], capture_output=True, text=True, check=False)
            if run.returncode:
                sys.exit(run.stderr)
            found = json.loads(run.stdout)
            ratio = found["estimated"] / max(1, found["real"])
            short += ratio < 1
            megabytes = (found["estimated"] / 2**20, found["real"] / 2**20)
            print(
                f"{Path(folder).name:20} {case:28} {megabytes[0]:12,.1f} {megabytes[1]:9,.1f} {ratio:6.2f}", flush=True
            )
    sys.exit(f"{short} estimates are too small" if short else 0)


if __name__ == "__main__":
    main()
