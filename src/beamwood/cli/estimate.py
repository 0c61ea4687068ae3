"""estimate.py — `beamwood estimate`: rows with labels, or only how many, in; what each preset would take out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import bytes_in_words, show, show_json
from beamwood.errors import SettingsError
from beamwood.sizing.estimate import Counts, advice, expected

_HERE = ("rows", "labels", "words", "labels_per_row")  # what stands for data


def estimate(
    data: o.Data = None,
    x: o.X = None,
    y: o.Y = None,
    rows: Annotated[float | None, typer.Option(help="Without DATA: how many rows.")] = None,
    labels: Annotated[float | None, typer.Option(help="Without DATA: how many different labels.")] = None,
    words: Annotated[float | None, typer.Option(help="Without DATA: words of a row, on average.")] = None,
    labels_per_row: Annotated[float | None, typer.Option(help="Without DATA: labels of a row, on average.")] = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Say what training would take and what the model would weigh, for each preset, without training.

    Example: beamwood estimate rows.jsonl

    or: beamwood estimate --rows 2e6 --labels 5e4 --words 12 --labels-per-row 1.5
    """
    options = locals()
    numbers = {name: options[name] for name in _HERE if options[name] is not None}
    if data is None and x is None:
        missing = [f"--{name.replace('_', '-')}" for name in _HERE if name not in numbers]
        if missing:
            raise SettingsError(f"DATA is not given, nor {', '.join(missing)}; expected DATA, or all four counts.")
        counts = Counts(**numbers)
    elif numbers:
        raise SettingsError("DATA is given with counts; expected one of them. Leave out --rows and the like.")
    else:
        counts = _counted(Given.of(options))
    found = expected(counts)
    if json_:
        show_json({"counts": asdict(counts), "presets": [asdict(each) for each in found], "advice": advice(counts)})
        return
    show(
        f"{counts.rows:,.0f} rows, {counts.labels:,.0f} labels, {counts.words:.1f} words and "
        f"{counts.labels_per_row:.1f} labels per row, {counts.rows_per_label:.1f} rows per label"
    )
    table = Table("preset", "training, CPU", "memory for it", "model file", "per query", box=None, pad_edge=False)
    for each in found:
        sizes = (bytes_in_words(each.memory), bytes_in_words(each.file))
        table.add_row(each.preset, _in_time(each.training_s), *sizes, f"{each.query_us:.0f} µs")
    show(table, *advice(counts))
    show("Within a factor of two on five real sets, one thread of an AMD EPYC; yours may differ as much again.")


def _counted(given: Given) -> Counts:
    """The same from the data itself: read, and for texts split into words; nothing is trained."""
    if not given.is_text:
        found = given.rows()
        pairs, entries, rows = found.Y.nnz, found.X.nnz, found.X.shape[0]
        labels = len(set(found.Y.indices.tolist()))
    else:
        from beamwood.inputs.text import TextFeatures

        records = given.all_records()
        rows, pairs = len(records.texts), sum(map(len, records.labels))
        labels = len({key for keys in records.labels for key in keys})
        entries = TextFeatures().fit(records.texts).transform(records.texts).nnz
    given.note_skipped()
    if not rows or not pairs or not entries:
        raise SettingsError(f"{given.name} has no labels or no words; expected rows to learn from.")
    return Counts(rows, labels, entries / rows, pairs / rows)


def _in_time(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
