"""predict.py — `beamwood predict`: a model and queries in, ranked labels out, in a file of the format its name says."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood._version import __version__
from beamwood.batch.meter import meter_for
from beamwood.batch.partial import partial_of
from beamwood.batch.rows import blocks, known_by
from beamwood.batch.score import Asked, Place, to_file, to_stream
from beamwood.batch.writers import kind_of, writer_for
from beamwood.cli.support import options as o
from beamwood.cli.support.allowed import filter_of
from beamwood.cli.support.cluster import on_cluster
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import STANDARD, check_free, is_device, say, show_json
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import cores


def predict(
    model_file: o.ModelFile,
    data: o.Data = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="A file in the format of its name: .jsonl, .csv, .tsv (each also .gz), .parquet, or a scipy .npz. "
            "'-': JSON lines to standard output.",
        ),
    ] = STANDARD,
    x: o.X = None,
    k: o.K = 10,
    beam: o.Beam = None,
    min_score: o.MinScore = None,
    threshold: o.Threshold = None,
    allow: o.Allow = None,
    allow_file: o.AllowFile = None,
    deny: o.Deny = None,
    deny_file: o.DenyFile = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Write what this column of the data holds beside each answer.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on where the same command was stopped or killed; start if it never ran."),
    ] = False,
    ray: o.Ray = None,
    threads: o.Threads = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    skip_bad: o.SkipBad = False,
    force: o.Force = False,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Rank labels for every row of a file, however many rows it has.

    Example: beamwood predict model.bw queries.jsonl -o answers.jsonl -k 5

    A line of the answer is {"row":0,"keys":["a",…],"scores":[0.93,…]}, with "names" where the model has names of its
    own, "probabilities" where it is calibrated and "id" with --id-column. Memory does not grow with the rows. A run
    that was stopped or killed leaves answers.jsonl.partial; the same command with --resume goes on there.

    With --ray the rows are those of a Parquet, JSONL or CSV file that all machines of the cluster see, the answers
    Parquet files in a new folder -o, in no order: --id-column tells them apart.
    """
    import beamwood as bw

    options = dict(locals())
    if ray is not None:
        return on_cluster(options)
    given = Given.of(options)
    to_a_stream = output == STANDARD or is_device(Path(output))
    kind = "jsonl" if output == STANDARD or (to_a_stream and not Path(output).suffix) else kind_of(output)
    again = known_by(given)
    _check(output, kind, to_a_stream, resume, again is not None)
    check_free(output, force)
    if not (to_a_stream or resume or force):
        _check_nothing_to_go_on_with(Path(output))
    model = bw.load(model_file, encoder=encoder)
    allowed = filter_of(model, allow, allow_file, deny, deny_file)
    asked = Asked(
        k=min(k, model.n_labels),
        beam=beam or model.beam,
        threads=threads or cores(),
        filter=allowed,
        min_score=min_score,
        threshold=o.threshold_of(threshold),
    )
    writer = writer_for(
        kind, model, with_ids=id_column is not None, packed=output.endswith(".gz"), threads=asked.threads, k=asked.k
    )
    meter = meter_for(not (quiet or json_), output == STANDARD)
    begun = time.perf_counter()
    rows = blocks(given, model.n_features, asked.k, id_column)
    if to_a_stream:
        with _stream(output) as out:
            done = to_stream(model, rows, asked, writer, out, meter)
    else:
        made_from = {"beamwood": __version__, "model": model.version, "data": again, **_made_from(options, kind)}
        place = Place(
            target=Path(output),
            made_from=made_from,
            resume=resume,
            again=again is not None,
            gathers=not _is_lines(kind),
        )
        with _told_how_to_go_on(Path(output)):
            done = to_file(model, rows, asked, writer, place, meter)
    if json_ and output != STANDARD:
        seconds = time.perf_counter() - begun
        show_json(
            {"output": output, "rows": done, "skipped": given.skipped, "k": k, "beam": asked.beam, "seconds": seconds}
        )
    else:
        given.note_skipped()


def _check(output: str, kind: str, to_a_stream: bool, resume: bool, again: bool) -> None:
    """Refuses what cannot be done before anything is."""
    if to_a_stream and not _is_lines(kind):
        raise SettingsError(f"{output} is a stream; expected a file for .{kind}. Give the name of one with -o.")
    if resume and (to_a_stream or not again):
        what = f"{output} is a stream" if to_a_stream else "the data is a stream"
        raise SettingsError(f"--resume is given and {what}; expected files, which can be gone on with.")


def _check_nothing_to_go_on_with(output: Path) -> None:
    left = partial_of(output)
    if left.exists() and left.stat().st_size:
        raise SettingsError(
            f"{left} of an earlier run is there. Give --resume to go on with it, or --force to start from row 0."
        )


def _is_lines(kind: str) -> bool:
    """Whether answers are final as they come."""
    return kind in ("jsonl", "csv", "tsv")


def _made_from(options: dict[str, Any], kind: str) -> dict[str, Any]:
    """The options that answers depend on."""
    names = ("k", "beam", "min_score", "threshold", "allow", "deny", "id_column", "format", "text_column", "skip_bad")
    files = {
        name: Path(options[name]).read_text(encoding="utf-8", errors="replace") if options[name] else None
        for name in ("allow_file", "deny_file")
    }
    return {"output format": kind, **{name: options[name] for name in names}, **files}


@contextlib.contextmanager
def _stream(output: str) -> Iterator[Any]:
    if output == STANDARD:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open(output, "wb") as stream:
        yield stream


@contextlib.contextmanager
def _told_how_to_go_on(output: Path) -> Iterator[None]:
    """Says what is left of a run that ended early."""
    try:
        yield
    except BaseException:
        left = partial_of(output)
        if left.exists() and left.stat().st_size:
            say(f"note: what was done is in {left}; the same command with --resume goes on")
        raise
