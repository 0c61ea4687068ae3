"""The command line: one file per verb. Results go to standard output, progress and messages to standard error."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """What `beamwood` runs. The rest is imported here, so that Ctrl-C ends even a slow start in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not an error
    try:
        from beamwood.cli.app import app

        app(prog_name="beamwood")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
