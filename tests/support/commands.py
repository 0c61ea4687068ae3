"""The command line inside this process, and a few rows to give it."""

from __future__ import annotations

import sys
from typing import Any

from typer.testing import CliRunner

from beamwood.cli.app import app

ROWS = [
    {"text": "red wool socks for winter", "labels": ["socks", "wool"]},
    {"text": "thick grey wool socks", "labels": ["socks", "wool"]},
    {"text": "cotton shirt with short sleeves", "labels": ["shirts", "cotton"]},
    {"text": "blue cotton shirt", "labels": ["shirts", "cotton"]},
    {"text": "waterproof hiking boots", "labels": ["boots"]},
    {"text": "leather boots for winter", "labels": ["boots"]},
]
VERBS = ("train", "predict", "evaluate", "search", "explain", "inspect", "bench", "serve", "convert")
VERBS += ("calibrate", "compress", "diff", "index", "update", "mcp", "estimate", "shard", "tune")


def run(*words: object, stdin: str | bytes | None = None) -> Any:
    """The verb inside this process."""
    try:
        runner = CliRunner(mix_stderr=False)  # before click 8.2
    except TypeError:
        runner = CliRunner()
    return runner.invoke(app, [str(word) for word in words], input=stdin)


def fails(*words: object, code: int = 1, stdin: str | bytes | None = None) -> str:
    """What a failing verb says: one line, no traceback."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code == 1:
        assert result.stderr.count("\n") == 1, result.stderr
        assert result.stderr.startswith("error: ")
    return str(result.stderr)


def good(*words: object, stdin: str | bytes | None = None) -> str:
    """What a verb prints on standard output."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "beamwood", *map(str, words)]
