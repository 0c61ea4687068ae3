"""verify.py — open model files in, a verdict out: checksums right, filters readable, answers alike. Run by reload.py.

A process of its own, for two reasons: to read and to hash every byte of a large file takes no time from those who
answer, not even Python's lock, and a file that takes the process down takes no one else down. It is as nice as can be
from its first instruction on (reload.py): to start Python and import everything is half of its work.
"""

from __future__ import annotations

import json
import os
import sys

from beamwood import _core
from beamwood.server.process.guard import guard
from beamwood.server.process.handover import BadModel, OpenFiles, options_of, read_memory
from beamwood.server.process.registry import opened


def main() -> None:
    """The words of the command line are numbers of open files: options, verdict, then models and filters twice, of the
    server as it is and as it is to be."""
    _core.give_way()
    settings, verdict, *files = map(int, sys.argv[1:])
    options, half = options_of(read_memory(settings)), len(files) // 2
    current, candidate = (OpenFiles.from_numbers(list(options.models), some) for some in (files[:half], files[half:]))
    try:
        guard(options, current, opened(options, candidate, verify=True))
    except BadModel as error:
        os.ftruncate(verdict, 0)
        os.pwrite(verdict, json.dumps({"name": error.name, "message": str(error)}).encode(), 0)


if __name__ == "__main__":
    main()
