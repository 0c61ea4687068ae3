"""The sources in, docs/guide/errors.md out: every message that is raised on purpose, by kind and room.

    python tools/error_catalogue.py          writes the page
    python tools/error_catalogue.py --check  says how many messages of the sources the page lacks

What differs from call to call (a name, a number) is `…`. What stands above the mark is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
SOURCES, PAGE = HOME / "src" / "beamwood", HOME / "docs" / "guide" / "errors.md"
HEAD = "<!-- what follows is made by tools/error_catalogue.py -->\n"
KINDS = {"DataError": "your data", "SettingsError": "an argument", "FormatError": "a model file"}
ROOMS = {
    "inputs": "Matrices, texts and files that you hand in",
    "training": "Training",
    "lexical": "Words of labels, indexes",
    "storage": "Model files",
    "interop": "Models of other programs",
    "life": "Probabilities, cuts, differences",
    "update": "Labels that come and go",
    "tuning": "Tuning",
    "batch": "Whole files",
    "cli": "Command line",
    "server": "Server",
    "ray": "Ray",
}


def text_of(node: ast.expr) -> str:
    """A message with `…` for what is only known when it is raised."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return "…"


def messages() -> Iterator[tuple[str, str, str]]:
    """(room, kind, message) of every error that a source raises in place."""
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).parts
        room = parts[0] if len(parts) > 1 else ""
        if room == "bench":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
                continue
            kind = getattr(node.exc.func, "id", "")
            said = re.sub(r"…(?:[\s,]*…)+", "…", text_of(node.exc.args[0])).strip()
            if kind in KINDS and len(re.findall(r"\w{3,}", said)) > 2:
                yield room, kind, said


def row(kind: str, said: str) -> str:
    """A row of a table in Markdown; the message stands as it is."""
    safe = said.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
    return f"| {safe} | {kind} |"


def page() -> str:
    """All of it, room by room."""
    found: dict[str, list[str]] = {}
    for room, kind, said in messages():
        found.setdefault(room if room in ROOMS else "", []).append(row(kind, said))
    parts = []
    for room, title in {**ROOMS, "": "Models, search and all else"}.items():
        if room in found:
            rows = "\n".join(sorted(set(found[room]), key=str.lower))
            parts.append(f"### {title}\n\n| message | kind |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def missing(shown: str) -> tuple[int, int]:
    """How many rows of the sources the page lacks, and how many there are."""
    rows = {row(kind, said) for _, kind, said in messages()}
    return len(rows - set(shown.splitlines())), len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    shown = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().check:
        print("{} of {} messages are not on the page".format(*missing(shown)))
        return
    PAGE.write_text(shown.partition(HEAD)[0] + HEAD + "\n" + page(), encoding="utf-8")


if __name__ == "__main__":
    main()
