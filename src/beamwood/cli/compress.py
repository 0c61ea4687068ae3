"""compress.py — `beamwood compress`: a model file in, a smaller one out, with what that cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import show, show_json
from beamwood.errors import SettingsError
from beamwood.life.truth import rows_and_truth
from beamwood.storage.compress import Compression


def compress(
    model_file: o.ModelFile,
    small_file: Annotated[Path, typer.Argument(help="The file to write.", metavar="SMALL")],
    data: Annotated[
        str | None, typer.Option("--data", help="Rows whose labels are known: precision before and after is shown.")
    ] = None,
    x: o.X = None,
    y: o.Y = None,
    weights: Annotated[str, typer.Option(help="f16, u8, or f32 to keep them as they are.")] = "u8",
    top: Annotated[int | None, typer.Option(min=1, help="Keep so many of the largest weights of a node.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, help="Drop weights smaller than this.")] = None,
    force: o.Force = False,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Make a model file smaller, with weights of 16 or 8 bits or fewer of them, and say what that cost.

    Example: beamwood compress model.bw small.bw --weights u8 --data test.jsonl
    """
    import beamwood as bw

    if small_file.exists() and not force:
        raise SettingsError(f"{small_file} is there already. Give another name, or --force to replace it.")
    model = bw.load(model_file, encoder=encoder)
    measure = None
    if data is not None or x is not None:
        given = Given(
            data=data,
            x=x,
            y=y,
            format=format,
            text_column=text_column,
            labels_column=labels_column,
            separator=separator,
            skip_bad=skip_bad,
        )
        measure = measured_on(model, given)
    small = model.compress(weights, top=top, threshold=threshold, measure=measure)
    small.save(small_file)
    assert isinstance(small.report, Compression)  # compress always says what it cost
    if json_:
        show_json({"file": str(small_file), "file_bytes": small_file.stat().st_size, **asdict(small.report)})
        return
    show(f"{small_file}: {small_file.stat().st_size:,} bytes\n{small.report}")


def measured_on(model: Any, given: Given) -> tuple[Any, Any]:
    """Queries and true labels; labels that the model does not know are left out: no answer can have them."""
    if not given.is_text:
        rows = given.rows(model.n_features, model.n_labels)
        return rows.X, rows.Y
    records = given.all_records()
    if model.text is None:
        raise SettingsError("This model was trained from numbers and knows no words. Give --x and --y.")
    return rows_and_truth(model, records.texts, records.labels)
