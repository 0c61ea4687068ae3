"""resident.py — a model file and an engine in, the bytes a fresh process needs to have in memory for it out.

python -m beamwood.bench.resident MODEL.bw binary chunk
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def resident() -> int:
    """Bytes of this process in memory, mapped files included, after giving back what malloc holds unused."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resident_of(path: Path, matcher: str, layout: str = "auto") -> int:
    """Growth of a fresh process that loads the file, reads all of it and answers a query."""
    command = [sys.executable, "-m", "beamwood.bench.resident", str(path), matcher, layout]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    import beamwood as bw

    path, matcher, layout = sys.argv[1:]
    before = resident()
    model = bw.load(path, verify=True).using(matcher=matcher, layout=layout)
    query = sp.csr_matrix(([1.0], [0], [0, 1]), shape=(1, model.n_features), dtype=np.float32)
    model.topk(query, k=10, beam=10, threads=1)
    print(resident() - before)


if __name__ == "__main__":
    main()
