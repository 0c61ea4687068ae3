"""update.py — `beamwood update`: a model file and labels that come, go or are renamed in, a new model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import bytes_in_words, check_free, say, show, show_json
from beamwood.errors import DataError
from beamwood.training.progress import progress_for

_MANY = 0.1  # of the labels were added: said, for by then training anew finds more


def update(
    model_file: o.ModelFile,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="DATA", help="Rows with new labels, as for train."),
    ] = None,
    remove: Annotated[Path | None, typer.Option("--remove", help="Keys of labels to remove, one per line.")] = None,
    rename: Annotated[
        Path | None,
        typer.Option("--rename", help="Names for labels: lines of `key<TAB>name`, or a .csv."),
    ] = None,
    label_texts: Annotated[
        Path | None,
        typer.Option("--label-texts", help="Texts of new labels: lines of `key<TAB>text`, or a JSON object."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The model file to write.")] = None,
    x: o.X = None,
    y: o.Y = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", help="With --x and --y: `key` or `key<TAB>name` per new label, as in Y.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same model, rows and seed: the same file.")] = 0,
    threads: o.Threads = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    labels_column: o.LabelsColumn = "labels",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    encoder: o.Encoder = None,
    force: o.Force = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Add, remove and rename labels of a model without training it anew.

    Example: beamwood update model.bw --add rows.jsonl --remove keys.txt -o new.bw

    Labels of rows.jsonl that the model does not have are new; all others keep their weights.
    """
    import beamwood as bw

    if output is None:
        raise typer.BadParameter("the model file to write is missing. Give it: -o new.bw")
    if add is None and x is None and remove is None and rename is None and label_texts is None:
        raise typer.BadParameter("there is nothing to do; expected --add, --remove, --rename or --label-texts.")
    check_free(output, force, stream=False)
    model = bw.load(model_file, encoder=encoder)
    given = None
    reports = []
    if remove is not None:
        model = model.remove_labels(_keys(remove), threads=threads)
        reports.append(model.report)
    if add is not None or x is not None or label_texts is not None:
        how = {**locals(), "data": add}
        given = None if add is None and x is None else Given.of(how)
        model = _added(model, given, keys, label_texts, seed, threads, progress_for(not (quiet or json_)))
        reports.append(model.report)
    if rename is not None:
        model = model.rename(_names(rename))
    model.save(output)
    _finish(model, output, given, reports, json_)


def _added(
    model: Any,
    given: Given | None,
    keys: Path | None,
    texts: Path | None,
    seed: int,
    threads: int | None,
    progress: Any,
) -> Any:
    """The model with the labels of a file of rows, of texts, or of both."""
    from beamwood.inputs.label_table import LabelTable
    from beamwood.lexical.label_texts import read_label_texts

    described = None if texts is None else read_label_texts(texts)
    how: dict[str, Any] = {"texts": described, "seed": seed, "threads": threads, "progress": progress}
    if keys is not None and (given is None or given.is_text):
        raise typer.BadParameter("--keys is given without --x and --y; expected it with matrices only.")
    if given is None:
        return model.add_labels(**how)
    if given.is_text:
        records = given.all_records()
        return model.add_labels(records.texts, records.labels, **how)
    rows = given.rows(features=model.n_features)
    if keys is not None:
        table = LabelTable.from_file(keys)
        how |= {"keys": table.keys, "names": None if table.names == table.keys else table.names}
    return model.add_labels(rows.X, rows.Y, **how)


def _keys(path: Path) -> list[str]:
    from beamwood.inputs.label_table import LabelTable

    keys = list(LabelTable.from_file(path).keys)
    if not keys:
        raise DataError(f"{path} is empty; expected a label key per line.")
    return keys


def _names(path: Path) -> dict[str, str]:
    """Keys and names of a table."""
    from beamwood.inputs.label_table import LabelTable

    if path.suffix != ".csv":
        table = LabelTable.from_file(path)
        return dict(zip(table.keys, table.names, strict=True))
    import csv

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}); expected a table of keys and names.") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not row[0]:
            raise DataError(f"{path}, row {number} has {len(row)} cells; expected two: a key and its name.")
    if rows and [cell.strip().lower() for cell in rows[0]] == ["key", "name"]:
        rows = rows[1:]
    return dict(map(tuple, rows))  # type: ignore[arg-type]


def _finish(model: Any, output: Path, given: Given | None, reports: list[Any], as_json: bool) -> None:
    """Says what was made, and when it is time to train anew."""
    size = output.stat().st_size
    updates = model.info()["updates"]
    added, removed = (sum(getattr(report, name) for report in reports) for name in ("added", "removed"))
    if as_json:
        told = {"output": str(output), "bytes": size, "labels": model.n_labels, "added": added, "removed": removed}
        skipped = 0 if given is None else given.skipped
        show_json({**told, "skipped": skipped, "updates": updates, "reports": [r.to_dict() for r in reports]})
        return
    if given is not None:
        given.note_skipped()
    show(f"{output}: {model.n_labels:,} labels, {added:,} added, {removed:,} removed, {bytes_in_words(size)}")
    if updates is not None and updates["share_added"] > _MANY:
        say(f"note: {updates['share_added']:.0%} of the labels were added since its training; train anew to find more")
