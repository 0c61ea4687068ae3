"""calibrate.py — `beamwood calibrate`: a model and rows with labels in, the model with probabilities and a cut out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from beamwood.cli.compress import measured_on
from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import show, show_json
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores
from beamwood.life.calibration import Calibration


def calibrate(
    model_file: o.ModelFile,
    data: o.Data = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    x: o.X = None,
    y: o.Y = None,
    cut: Annotated[
        str | None, typer.Option(help="Store a threshold too: f1, precision>=0.8, recall>=0.9; none to store none.")
    ] = "f1",
    per: Annotated[str, typer.Option(help="One threshold for the model, or one per label.")] = "model",
    threads: o.Threads = None,
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
    """Teach a model how probable its answers are, on rows that it was not trained on, and where to cut.

    Example: beamwood calibrate model.bw held-out.jsonl -o calibrated.bw

    No ranking changes. Answers get a probability; --threshold leaves out labels that do not apply.
    """
    import beamwood as bw

    if output is None:
        raise SettingsError("There is no file to write; expected one. Give -o calibrated.bw.")
    if output.exists() and not force:
        raise SettingsError(f"{output} is there already. Give another name, or --force to replace it.")
    model = bw.load(model_file, encoder=encoder)
    rows = measured_on(model, Given.of(locals()))
    model = model.calibrate(*rows, threads=threads or cores())
    report = model.report
    assert isinstance(report, Calibration)  # calibrate always says how good it is
    if cut is not None and cut != "none":
        model = model.cut(*rows, for_=cut, per=per, threads=threads or cores())
    model.save(output)
    chosen = model.threshold
    if json_:
        show_json(
            {"file": str(output), "calibration": asdict(report), "cut": None if chosen is None else chosen.describe()}
        )
        return
    show(str(report))
    if chosen is not None:
        show(
            f"cut for {chosen.goal}: {chosen.on} >= {chosen.least:.3f}; precision {chosen.precision:.3f}, recall "
            f"{chosen.recall:.3f}, F1 {chosen.f1:.3f} on these rows"
        )
    show(f"{output}: {output.stat().st_size:,} bytes")
