"""The command line: one file per verb. Results go to standard output, progress and messages to standard error."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """What `beamwood` runs. The rest is imported here, so that Ctrl-C ends even a slow start in one line."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not an error
    try:
        from beamwood.cli.app import app

        app(prog_name="beamwood")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


def _open_closed_streams() -> None:
    """Standard streams that whoever started us has closed lead nowhere.

    Otherwise the next file that is opened, a model perhaps, would take their number, and what is written for people
    would go into it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (for as long as we run)
