"""diff.py — `beamwood diff`: two model files and, where there are some, queries in; what changed out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given, left_out
from beamwood.cli.support.output import check_free, say, show, written


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The model file that is in use.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The one that is to take its place.")],
    data: o.Data = None,
    x: o.X = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="The queries have true labels: measure the quality of both models.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that shows it to this file.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Queries to show, of those that changed most.")] = 10,
    beam: o.Beam = None,
    threads: o.Threads = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    encoder: o.Encoder = None,
    force: o.Force = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Show what changed between two models: labels, settings, sizes and, on queries, answers.

    Example: beamwood diff old.bw new.bw queries.jsonl --html changes.html
    """
    import beamwood as bw

    check_free(html, force)
    if truth and data is None:
        raise typer.BadParameter("--truth is given without DATA; expected a file of queries with labels.")
    queries, labels, skipped = (None, None, 0) if data is None and x is None else _queries(Given.of(locals()), truth)
    before, after = (_with_encoder(bw.load(path), encoder) for path in (old, new))
    found = bw.diff(before, after, queries, labels, beam=beam, threads=threads, most=most)
    if html is not None:
        with written(html) as stream:
            stream.write(found.html().encode("utf-8", "replace"))
    if json_:
        show(json.dumps(found.to_dict()))
        return
    if skipped:
        say(left_out(skipped))
    show(str(found))


def _with_encoder(model: Any, encoder: str | None) -> Any:
    """One of two models: perhaps only the other one needs an encoder."""
    needed = encoder is not None and model.text is not None and model.text.encoder is not None
    return model.with_encoder(encoder) if needed else model


def _queries(given: Given, truth: bool) -> tuple[Any, Any, int]:
    """Texts or rows, their labels where they are asked for, and how many bad rows there were."""
    if not given.is_text:
        if truth:
            raise typer.BadParameter("--truth is given with rows of numbers; expected texts with label keys.")
        return given.rows(with_labels=False).X, None, given.skipped
    rows = list(given.records(with_labels=truth))
    return [text for text, _ in rows], [keys for _, keys in rows] if truth else None, given.skipped
