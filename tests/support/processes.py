"""Children of tests: the environment they get, and the work that one still did which was told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path


def without_coverage() -> dict[str, str]:
    """The environment of a child that forks amid threads: a fork copies the lock of coverage's data as it is at that
    moment, also when another thread holds it, and then the child of the fork waits for ever to write its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def cpu_seconds(pid: int) -> float:
    """What all threads of a process have used so far, also when it has just ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(process: subprocess.Popen[str], patience: float = 120) -> tuple[str, float]:
    """Sends Ctrl-C: the next line that the process prints, and the processor time it took until then.

    With all threads at work that time, shared out over them, is what passes on a machine with nothing else to do.
    """
    assert process.stdout is not None
    watchdog = threading.Timer(patience, process.kill)  # one that waits for ever uses no time at all
    watchdog.start()
    before = cpu_seconds(process.pid)
    process.send_signal(signal.SIGINT)
    said = process.stdout.readline()
    spent = cpu_seconds(process.pid) - before
    watchdog.cancel()
    return said, spent
