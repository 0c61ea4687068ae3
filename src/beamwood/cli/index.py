"""index.py — `beamwood index`: documents or sparse vectors in, a model file that finds the exact best of them out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given, left_out
from beamwood.cli.support.output import bytes_in_words, check_free, say, show, show_json
from beamwood.errors import DataError


def index(
    data: o.Data = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The model file to write.")] = None,
    x: Annotated[Path | None, typer.Option("--x", help="Labels x features as a scipy .npz, in place of DATA.")] = None,
    key_column: Annotated[
        str | None,
        typer.Option("--key-column", help="The column with each document's key; rows of one key are one document."),
    ] = None,
    labels_file: Annotated[
        Path | None, typer.Option(help="One line per label, `key<TAB>name`: the names that people see.")
    ] = None,
    k1: Annotated[float, typer.Option(min=0, help="How soon more of the same word counts less.")] = 1.5,
    b: Annotated[float, typer.Option(min=0, max=1, help="How much long documents are held back.")] = 0.75,
    weights: Annotated[str, typer.Option(help="f32; or f16 or u8, which are smaller and rounded.")] = "f32",
    threads: o.Threads = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    skip_bad: o.SkipBad = False,
    force: o.Force = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Index documents, without training: search then finds the exact best of them by BM25.

    Example: beamwood index documents.jsonl -o model.bw --key-column id

    where a line of documents.jsonl is {"id": "A7", "text": "red wool socks"}. With --x it indexes the rows of a matrix.
    """
    if output is None:
        raise typer.BadParameter("the model file to write is missing. Give it: -o model.bw")
    given = Given.of({**locals(), "labels_column": key_column or "labels"})
    check_free(output, force, stream=False)
    how = {"weights": weights, "threads": threads}
    if x is not None:
        model = _from_rows(given, labels_file, how)
    else:
        model = _from_texts(given, key_column, labels_file, {**how, "k1": k1, "b": b})
    model.save(output)
    size = output.stat().st_size
    if json_:
        about = {"output": str(output), "bytes": size, "skipped": given.skipped}
        show_json({"labels": model.n_labels, "features": model.n_features, **about})
        return
    if given.skipped:
        say(left_out(given.skipped))
    show(f"{output}: {model.n_labels:,} labels, {model.n_features:,} features, {bytes_in_words(size)}")


def _from_texts(given: Given, key_column: str | None, labels_file: Path | None, how: dict[str, Any]) -> Any:
    """Documents of a file; those of one key are joined, those without a key are numbered."""
    import beamwood as bw

    documents: dict[str, list[str]] = {}
    for number, (text, keys) in enumerate(given.records(with_labels=key_column is not None)):
        if key_column is not None and len(keys) != 1:
            raise DataError(
                f"Row {number} of {given.name} has {len(keys)} keys in column {key_column!r}; expected one. Name the "
                "column of the documents' keys with --key-column, or leave it out."
            )
        documents.setdefault(keys[0] if key_column else str(number), []).append(text)
    if not documents:
        raise DataError(f"{given.name} has no rows; expected at least one with a text.")
    if labels_file is not None:
        known = _names(labels_file)
        how["names"] = [known.get(key, key) for key in documents]
    return bw.index_text(["\n".join(texts) for texts in documents.values()], keys=list(documents), **how)


def _from_rows(given: Given, labels_file: Path | None, how: dict[str, Any]) -> Any:
    """The rows of a matrix; line j of a labels file names row j."""
    import beamwood as bw
    from beamwood.inputs.label_table import LabelTable

    if labels_file is not None:
        table = LabelTable.from_file(labels_file)
        how |= {"keys": table.keys, "names": table.names}
    return bw.index(given.rows(with_labels=False).X, **how)


def _names(labels_file: Path) -> dict[str, str]:
    from beamwood.inputs.label_table import LabelTable

    table = LabelTable.from_file(labels_file)
    return dict(zip(table.keys, table.names, strict=True))
