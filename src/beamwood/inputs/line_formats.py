"""line_formats.py — lines as other programs write them in, (labels, text) of each out: fastText, PECOS, Annif.

fasttext   __label__socks __label__wool red wool socks     labels anywhere among the words
pecos      3,17<TAB>red wool socks                         labels first, commas between them
annif      red wool socks<TAB><http://…/socks> <http://…>  labels last, in angle brackets; brackets are dropped
"""

from __future__ import annotations

from collections.abc import Callable

Line = tuple[list[str], str]

_MARK = "__label__"
_ADVICE = 'As a file for {} it needs format="{}" (--format {}). As a table: '


def _fasttext(line: str) -> Line:
    words = line.split()
    labels = [word.removeprefix(_MARK) for word in words if word.startswith(_MARK)]
    if "" in labels:
        raise ValueError(f"it has {_MARK} without a name; expected {_MARK}name")
    return labels, " ".join(word for word in words if not word.startswith(_MARK))


def _pecos(line: str) -> Line:
    labels, tab, text = line.partition("\t")
    if not tab:
        raise ValueError("it has no tab; expected labels with commas between them, a tab and the text")
    return [label.strip() for label in labels.split(",") if label.strip()], text


def _annif(line: str) -> Line:
    text, tab, labels = line.rpartition("\t")
    if not tab:
        raise ValueError("it has no tab; expected the text, a tab and <labels> in angle brackets")
    found = labels.split()
    if not all(label.startswith("<") and label.endswith(">") and len(label) > 2 for label in found):
        raise ValueError(f"it has {labels!r:.40} after the tab; expected <labels> in angle brackets, spaces between")
    return [label[1:-1] for label in found], text


LINE_FORMATS: dict[str, Callable[[str], Line]] = {"fasttext": _fasttext, "pecos": _pecos, "annif": _annif}


def hint(first: list[str]) -> str:
    """Advice where the first row of a table, cell by cell, looks like a line of another program's format."""
    labels = first[-1].split()
    if first[0].startswith(_MARK):
        return _ADVICE.format("fastText", "fasttext", "fasttext")
    if len(first) == 2 and labels and all(label.startswith("<") and label.endswith(">") for label in labels):
        return _ADVICE.format("Annif", "annif", "annif")
    if len(first) == 2 and all(label.strip().isdigit() for label in first[0].split(",")):
        return _ADVICE.format("PECOS", "pecos", "pecos")
    return ""
