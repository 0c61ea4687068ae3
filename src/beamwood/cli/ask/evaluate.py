"""evaluate.py — `beamwood evaluate`: a model and rows with labels in, precision, recall and nDCG out."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from beamwood.batch.score import ask_texts
from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import say, show, show_json
from beamwood.errors import DataError
from beamwood.inputs.arguments import cores
from beamwood.inputs.data import read_matrix
from beamwood.life.truth import truth_of_keys
from beamwood.training.progress import progress_for


def evaluate(
    model_file: o.ModelFile,
    data: o.Data = None,
    x: o.X = None,
    y: o.Y = None,
    at: Annotated[str, typer.Option(help="Ranks to measure at.")] = "1,3,5,10",
    beam: o.Beam = None,
    threads: o.Threads = None,
    train_labels: Annotated[
        Path | None, typer.Option(help="The Y.npz of training: adds propensity-scored precision.")
    ] = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Measure a model on rows whose labels are known.

    Example: beamwood evaluate model.bw test.jsonl

    In percent, at each rank: precision, the share of right labels among the first; recall, the share of a row's labels
    that is among them; ndcg, right labels count more the higher they stand; coverage, the share of labels found rightly
    by some row; head, middle and tail, recall of labels with many, some and few training rows; psp, precision that
    counts rare labels more.
    """
    import beamwood as bw
    from beamwood.metrics import evaluate as measure

    ranks = _ranks(at)
    given = Given.of(locals())
    model = bw.load(model_file, encoder=encoder)
    threads = threads or cores()
    begun = time.perf_counter()
    with progress_for(not (quiet or json_)).stage(f"evaluate {given.name}", 0):
        truth, answers, unseen = _asked(model, given, k=min(max(ranks), model.n_labels), beam=beam, threads=threads)
    seconds = time.perf_counter() - begun
    known = None if train_labels is None else read_matrix(train_labels)
    metrics = measure(answers, truth, at=ranks, train_labels=known, rows_of_label=model.rows_of_label)
    if json_:
        counts = {"rows": metrics.rows, "skipped": given.skipped, "labels_never_seen": unseen}
        more = {"errors": metrics.errors, "by_rows": {name: asdict(each) for name, each in metrics.by_rows.items()}}
        show_json({**counts, "beam": beam, "seconds": seconds, **metrics.as_dict(), **more})
        return
    if unseen:
        say(f"note: {unseen:,} labels of these rows were not in the training; they count as missed")
    given.note_skipped()
    show(str(metrics))


def _asked(model: Any, given: Given, *, k: int, beam: int | None, threads: int) -> tuple[Any, Any, int]:
    """The true labels, the model's answers, and how many of the true labels it does not know."""
    if given.is_text:
        records = given.all_records()
        truth, unseen = truth_of_keys(model, records.labels)
        return truth, ask_texts(model, records.texts, k=k, beam=beam, threads=threads), unseen
    by_number = given.kind == "svmlight"
    rows = given.rows(model.n_features if by_number else None, model.n_labels if by_number else None)
    if rows.Y.shape[1] != model.n_labels:
        raise DataError(
            f"{given.name} has {rows.Y.shape[1]:,} labels; expected {model.n_labels:,}. "
            "Give rows with the labels of the model."
        )
    if not rows.X.shape[0]:
        raise DataError(f"{given.name} has no rows; expected at least one.")
    return rows.Y, model.topk(rows.X, k=k, beam=beam, threads=threads), 0


def _ranks(text: str) -> tuple[int, ...]:
    try:
        ranks = tuple(int(word) for word in text.split(","))
    except ValueError:
        ranks = ()
    if not ranks or min(ranks) < 1 or max(ranks) > np.iinfo(np.int32).max:
        raise typer.BadParameter(f"--at is {text}; expected whole numbers from 1 on, for example 1,3,5.")
    return ranks
