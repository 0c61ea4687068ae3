"""search.py — `beamwood search`: a model and words in, ranked names out; asks for words when none are given."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.table import Table

from beamwood.batch.score import text_of
from beamwood.cli.support import options as o
from beamwood.cli.support.allowed import filter_of
from beamwood.cli.support.output import STANDARD, show, show_json
from beamwood.errors import one_line

_PROMPT = "search> "
_MOST_WORDS = 50  # of a text whose unknown words are named


def search(
    model_file: o.ModelFile,
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="What to look for; asked for, line by line, when not given."),
    ] = None,
    k: o.K = 10,
    beam: o.Beam = None,
    min_score: o.MinScore = None,
    threshold: o.Threshold = None,
    allow: o.Allow = None,
    allow_file: o.AllowFile = None,
    deny: o.Deny = None,
    deny_file: o.DenyFile = None,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Find the labels for some words.

    Example: beamwood search model.bw history of jazz

    Without words, or with -, it asks for them, or reads one query per line from standard input.
    """
    import beamwood as bw

    model = bw.load(model_file, encoder=encoder)
    text_of(model)
    allowed = filter_of(model, allow, allow_file, deny, deny_file)
    least = o.threshold_of(threshold)
    queries = iter([" ".join(query)]) if query and query != [STANDARD] else _asked()
    how = {"k": k, "beam": beam, "min_score": min_score, "filter": allowed, "threshold": least}
    for number, text in enumerate(queries):
        if number == 0:
            model.search(text, **how)  # maps the file into memory; the next ones show what a question takes
        begun = time.perf_counter()
        hits = model.search(text, **how)
        took = (time.perf_counter() - begun) * 1e6
        if json_:
            found = [{n: v for n, v in hit._asdict().items() if n != "probability" or v is not None} for hit in hits]
            show_json({"query": text, "hits": found, "microseconds": round(took, 1)})
        else:
            _show(model, text, hits, took)


def _asked() -> Iterator[str]:
    """Queries from standard input: behind a prompt on a terminal, where an empty line or Ctrl-D ends them."""
    if not sys.stdin.isatty():
        for number, line in enumerate(sys.stdin.buffer):
            yield line.decode("utf-8-sig" if number == 0 else "utf-8", "replace").rstrip("\r\n")
        return
    show("Type words and press Enter; an empty line ends.")
    while True:
        try:
            text = input(_PROMPT)
        except EOFError:
            print()
            return
        if not text.strip():
            return
        yield text


def _in_digits(score: float) -> str:
    """Three decimals, or two digits that say something where these would be zeros."""
    return f"{score:.3f}" if abs(score) >= 0.001 or score == 0 else f"{score:.2g}"


def _show(model: Any, text: str, hits: Any, took: float) -> None:
    """The answers to one query as a table, or why there are none."""
    if not hits:
        show(("nothing found for " if hits.known_terms else "no known words in ") + repr(one_line(text)))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="dim")
    for hit in hits:
        shown = _in_digits(hit.score) if hit.probability is None else f"{100 * hit.probability:.1f} %"
        table.add_row(shown, one_line(hit.name), one_line(hit.key) if hit.key != hit.name else "")
    show(table)
    unknown = _unknown(model, text)
    left_out = f"; not known to the model: {one_line(', '.join(unknown))}" if unknown else ""
    show(f"{len(hits)} of {model.n_labels:,} labels in {took:,.0f} µs{left_out}")


def _unknown(model: Any, text: str) -> list[str]:
    """The words of a short text that the model does not know, each asked by itself."""
    words = dict.fromkeys(word for word in text.split() if len(word) > 1 and any(map(str.isalnum, word)))
    if len(words) > _MOST_WORDS:
        return []
    return [word for word in words if not model.search(word, 1).known_terms]
