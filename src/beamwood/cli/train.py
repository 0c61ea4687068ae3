"""train.py — `beamwood train`: rows with labels in, a model file out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support import words as w
from beamwood.cli.support.given import Given
from beamwood.cli.support.held import Held, share_of
from beamwood.cli.support.output import bytes_in_words, check_free, say, show, show_json, written
from beamwood.cli.support.settings import notes_of, settings_of
from beamwood.lexical.label_texts import in_words
from beamwood.life.calibration import Calibration
from beamwood.training.checkpoint import remove
from beamwood.training.progress import progress_for

_MANY_LABELS = 0.2  # the share of labels with a mark from which it is worth a note


def train(
    data: o.Data = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The model file to write.")] = None,
    x: o.X = None,
    y: o.Y = None,
    preset: Annotated[str, typer.Option(help="fast, balanced or best.")] = "balanced",
    set_: o.Set = None,
    seed: Annotated[int, typer.Option(min=0, help="Same data, settings and seed: the same file.")] = 0,
    threads: o.Threads = None,
    labels_file: Annotated[
        Path | None, typer.Option(help="One line per label, `key<TAB>name`: the names that people see.")
    ] = None,
    label_texts: Annotated[
        Path | None,
        typer.Option(
            help="Texts that describe labels: lines of `key<TAB>text`, or a JSON object. Labels that have only a text "
            "can be found too."
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Keep the trees, text features and settings of this model and learn its weights anew from DATA; "
            "labels that it does not have are placed in its trees.",
        ),
    ] = None,
    lexical: Annotated[
        str | None,
        typer.Option(help="Words of labels beside the trees: auto (where they gain; not in preset fast), yes or no."),
    ] = None,
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
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep finished stages in this folder; the same command goes on after a crash or a kill. Removed once "
            "the model is written.",
            metavar="DIR",
        ),
    ] = None,
    max_memory: Annotated[
        float | None,
        typer.Option(
            min=0, help="GiB that training may take; what is free if not given. One that needs more is refused."
        ),
    ] = None,
    valid: Annotated[
        str | None,
        typer.Option(help="Hold this share of the rows back, e.g. 5%, and measure the model on them.", metavar="SHARE"),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Measure with so many folds first: each part of the rows by a model of the others."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="Learn probabilities and a cut on this share of the rows, e.g. 5%, or auto. The model stays the same; "
            "training takes about twice as long.",
            metavar="SHARE",
        ),
    ] = None,
    ray: o.Ray = None,
    shared: Annotated[
        Path | None,
        typer.Option(
            help="With --ray, a folder that all machines see: rows go there once instead of along with every task.",
            metavar="DIR",
        ),
    ] = None,
    note: o.Note = None,
    report: Annotated[Path | None, typer.Option(help="Write how the training went to this file, as JSON.")] = None,
    force: o.Force = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Train a model from texts with labels, or from sparse matrices.

    Example: beamwood train rows.jsonl -o model.bw --preset fast

    where a line of rows.jsonl is {"text": "red wool socks", "labels": ["socks", "wool"]}.
    """
    if output is None:
        raise typer.BadParameter("the model file to write is missing. Give it: -o model.bw")
    options = locals()
    given = Given.of(options)
    check_free(output, force, stream=False)
    check_free(report, force)
    progress = progress_for(not (quiet or json_))
    common = {"preset": preset, "seed": seed, "threads": threads, "progress": progress, **settings_of(set_ or [])}
    common["checkpoint"] = checkpoint
    notes = notes_of(note or [])
    common |= {} if max_memory is None else {"max_memory": int(max_memory * 2**30)}
    common |= {} if lexical is None else {"lexical": _lexical(lexical)}
    common["calibrate"] = False if calibrate is None else calibrate == "auto" or share_of(calibrate, "--calibrate")
    if label_texts is not None and not given.is_text:
        raise typer.BadParameter("--label-texts is given with matrices; expected rows of text, whose words they share")
    held = Held.of(valid, seed, folds, None if json_ else show)
    if given.is_text and label_texts is not None:
        common["label_texts"] = _label_texts(label_texts)
    with _learner(ray, shared) as common["learner"]:
        if from_ is not None:
            _check_from(options)
            model = _retrained(from_, given, common, held, encoder)
        elif given.is_text:
            model = _from_texts(given, labels_file, w.features(options), common, held)
        else:
            model = _from_rows(given, labels_file, common, held)
    model = model.with_notes(notes) if notes else model
    model.save(output)
    if checkpoint is not None:
        remove(checkpoint)
    found = held.measure(model, threads)
    measured = {} if found is None else {"valid": {"rows": found.rows, **found.as_dict()}}
    measured |= {} if held.folded is None else {"folds": {"folds": folds, **held.folded.as_dict()}}
    if report is not None:
        with written(report) as stream:
            stream.write((json.dumps({**model.report.to_dict(), **measured}, indent=1) + "\n").encode())
    _finish(model, output, given, json_, measured)
    if found is not None and not json_:
        show(f"measured on {found.rows:,} rows that were held back:\n{found}")


@contextlib.contextmanager
def _learner(address: str | None, shared: Path | None) -> Iterator[Any]:
    """Who learns layers: a cluster, or None for this process."""
    if address is None:
        if shared is not None:
            raise typer.BadParameter("--shared is given without --ray; expected both. Give the address of a cluster.")
        yield None
        return
    from beamwood.ray.train import cluster_learner

    with cluster_learner(address, shared, {}) as learner:
        yield learner


def _from_texts(given: Given, labels_file: Path | None, features: Any, common: dict[str, Any], held: Held) -> Any:
    """Trains on a file of texts; a labels file names the labels that the rows have."""
    import beamwood as bw
    from beamwood.inputs.label_table import LabelTable

    records = given.all_records()
    seen = {key for keys in records.labels for key in keys}
    if given.separator is None:
        _note_separators(seen)
    if labels_file is not None:
        table = LabelTable.from_file(labels_file)
        common["names"] = dict(zip(table.keys, table.names, strict=True))
        if table.names and all("\t" in name for name in table.names):
            say(f"note: {labels_file} has more than two columns; all behind the key is taken as the name")
        named = len(seen & set(table.keys))
        if named < len(seen):
            say(f"note: {labels_file} has names for {named:,} of {len(seen):,} labels; column 1 holds their keys")
    texts, labels = held.split(records.texts, records.labels)
    held.fold(texts, labels, {"text": features, **common})
    return bw.train_text(texts, labels, text=features, **common)


def _check_from(options: dict[str, Any]) -> None:
    """Refuses what a model that is trained on from decides itself."""
    texts = ("chars", "stem", "stop_words")
    for name in ("set_", "labels_file", "label_texts", "lexical", "checkpoint", "max_memory", *texts):
        if options[name]:
            flag = name.rstrip("_").replace("_", "-")
            raise typer.BadParameter(f"--{flag} is given with --from; expected none: settings are the model's.")


def _retrained(path: Path, given: Given, common: dict[str, Any], held: Held, encoder: str | None) -> Any:
    """Trains the trees of a model anew."""
    import beamwood as bw

    how = {name: common[name] for name in ("seed", "threads", "progress")}
    model = bw.load(path, encoder=encoder)
    if given.is_text:
        records = given.all_records()
        return model.retrain(*held.split(records.texts, records.labels), **how)
    rows = given.rows(features=model.n_features, labels=model.n_labels)
    return model.retrain(*held.split(rows.X, rows.Y), **how)


def _note_separators(seen: set[str]) -> None:
    """Says when many labels look like several that were written in one string."""
    for mark in (";", "|", ","):
        share = sum(mark in key for key in seen) / max(1, len(seen))
        if share >= _MANY_LABELS:
            advice = f"If it stands between labels, give --separator '{mark}'"
            say(f"note: {share:.0%} of the labels contain {mark!r}. {advice}")
            return


def _from_rows(given: Given, labels_file: Path | None, common: dict[str, Any], held: Held) -> Any:
    """Trains on matrices; line j of a labels file names column j of Y."""
    import beamwood as bw
    from beamwood.inputs.label_table import LabelTable

    rows = given.rows()
    if labels_file is not None:
        table = LabelTable.from_file(labels_file)
        common |= {"keys": table.keys, "names": table.names}
    X, Y = held.split(rows.X, rows.Y)
    held.fold(X, Y, common)
    return bw.train(X, Y, **common)


def _lexical(word: str) -> bool | str:
    """The setting that the option's word stands for."""
    known: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
    if word not in known:
        raise typer.BadParameter(f"--lexical is {word}; expected auto, yes or no")
    return known[word]


def _label_texts(path: Path) -> dict[str, str]:
    from beamwood.lexical.label_texts import read_label_texts

    return read_label_texts(path)


def _finish(model: Any, output: Path, given: Given, as_json: bool, measured: dict[str, Any]) -> None:
    """Says what was made and what to do with it."""
    size = output.stat().st_size
    report = model.report
    if as_json:
        how = {"output": str(output), "bytes": size, "skipped": given.skipped, "report": report.to_dict()}
        show_json({"labels": model.n_labels, "features": model.n_features, **how, **measured})
        return
    given.note_skipped()
    show(
        f"{output}: {model.n_labels:,} labels, {model.n_features:,} features, {bytes_in_words(size)}, "
        f"trained on {report.rows:,} rows in {report.total_seconds:.1f} s"
    )
    if report.lexical is not None:
        show(in_words(report.lexical))
    if report.calibration is not None:
        show(str(Calibration.read(report.calibration)))
