"""tune.py — `beamwood tune`: rows with labels and a budget of time in, what settings are worth and a model out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support import words as w
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import bytes_in_words, check_free, show, show_json
from beamwood.cli.support.settings import settings_of


def tune(
    data: o.Data = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Train with what was found and write the model here.")
    ] = None,
    x: o.X = None,
    y: o.Y = None,
    budget: Annotated[str, typer.Option(help="Time for the search and the training at its end: 90s, 10m, 2h.")] = "10m",
    preset: Annotated[str, typer.Option(help="Where the search starts: fast, balanced or best.")] = "balanced",
    set_: o.Set = None,
    target_us: Annotated[float | None, typer.Option(help="Microseconds that one query may take.")] = None,
    target_mb: Annotated[float | None, typer.Option(help="Megabytes that the model may take.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="What rows are held out by, and trainings start from.")] = 0,
    threads: o.Threads = None,
    plot: Annotated[Path | None, typer.Option(help="Draw quality against time per query into this file.")] = None,
    ngrams: w.Ngrams = "1",
    chars: w.Chars = None,
    min_df: w.MinDf = 1,
    max_df: w.MaxDf = None,
    max_features: w.MaxFeatures = None,
    sublinear: w.Sublinear = False,
    single_letters: w.SingleLetters = False,
    fold_accents: w.FoldAccents = False,
    stem: w.Stem = None,
    stop_words: w.StopWords = None,
    signs: w.Signs = False,
    no_segment: w.NoSegment = False,
    no_typos: w.NoTypos = False,
    encoder: w.Encoder = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    force: o.Force = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Search settings that rank rows better which are held out, and train with them.

    Example: beamwood tune rows.jsonl --budget 10m -o model.bw

    What it starts from is kept unless something is better by more than chance. Ctrl-C ends the search, and the best so
    far is trained and written; a second Ctrl-C ends that too.
    """
    import beamwood as bw

    options = locals()
    given = Given.of(options)
    check_free(output, force, stream=False)
    check_free(plot, force)
    X, Y, how = _material(given, options)
    found = bw.tune(
        X,
        Y,
        budget,
        preset=preset,
        seed=seed,
        threads=threads,
        target_us=target_us,
        target_mb=target_mb,
        train=output is not None,
        progress=not (quiet or json_),
        **how,
        **settings_of(set_ or []),
    )
    size = None
    if found.model is not None and output is not None:
        found.model.save(output)
        size = output.stat().st_size
    if plot is not None:
        from beamwood.plot import plot_tuning

        plot_tuning(found).savefig(plot)
    if json_:
        show_json({**found.to_dict(), "output": None if size is None else str(output), "bytes": size})
        return
    given.note_skipped()
    show(str(found))
    if size is not None:
        show(f"{output}: {bytes_in_words(size)}, trained on all rows")


def _material(given: Given, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Texts and keys with their features, or matrices."""
    if given.is_text:
        records = given.all_records()
        return records.texts, records.labels, {"text": w.features(options)}
    rows = given.rows()
    return rows.X, rows.Y, {}
