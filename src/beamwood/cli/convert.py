"""convert.py — `beamwood convert`: another program's model in, a model file out; or the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.cli.support import options as o
from beamwood.cli.support.output import bytes_in_words, check_free, say, show, show_json
from beamwood.errors import SettingsError, one_line


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="What another program saved; or, with --to, a model file.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The model file to write; or, with --to, what to write there.")
    ],
    from_: Annotated[
        str | None, typer.Option("--from", help="What SOURCE is, if it is not to be guessed: pecos, napkinxc, …")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Write for another program instead: pecos, napkinxc, omikuji, tree.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="A PECOS Tfidf vectorizer folder: the model can then search texts.")
    ] = None,
    labels_file: Annotated[
        Path | None, typer.Option(help="One line per label, `key<TAB>name`: the names that people see.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Columns of X, for formats that do not say (napkinxc).")
    ] = None,
    tree: Annotated[
        int | None, typer.Option(min=0, help="With --to: this tree of an ensemble, where the other knows only one.")
    ] = None,
    force: o.Force = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Bring in a model of another program, or write one for it. Says what was found and what is not the same.

    Example: beamwood convert pecos-model/ model.bw

    and back: beamwood convert model.bw pecos-model/ --to pecos
    """
    if to is None:
        if tree is not None:
            raise typer.BadParameter("--tree is given without --to; expected both. Add --to, or leave --tree out.")
        found = _bring_in(source, target, from_, features, text, labels_file, force)
    else:
        if any(given is not None for given in (text, labels_file, from_, features)):
            raise typer.BadParameter(
                "--to is given; expected no --from, --features, --text or --labels-file, which bring models in."
            )
        found = _write_out(source, target, to, tree, force)
    said = found.pop("said")
    if json_:
        show_json(found)
        return
    for note in found["notes"]:
        say(f"note: {one_line(note)}")
    show(one_line(said))


def _bring_in(
    source: Path,
    target: Path,
    kind: str | None,
    columns: int | None,
    text: Path | None,
    labels_file: Path | None,
    force: bool,
) -> dict[str, Any]:
    from beamwood.inputs.label_table import LabelTable
    from beamwood.interop.convert import read, read_text

    check_free(target, force, stream=False)
    found = read(source, kind, columns)
    model, notes, more = found.model, list(found.notes), dict(found.found)
    if text is not None:
        features = read_text(text)
        model = model.with_text(features.text)
        more["text"] = {"kind": features.kind, **features.found}
        notes += features.notes
    if labels_file is not None:
        table = LabelTable.from_file(labels_file)
        if len(table.keys) != model.n_labels:
            raise SettingsError(
                f"{labels_file} has {len(table.keys):,} lines; expected {model.n_labels:,}, one per label of the model."
            )
        model = model.with_names(names=table.names, keys=table.keys)
    model.save(target)
    info = model.info()
    trees = f"{info['trees']} tree" + "s" * (info["trees"] > 1)
    size = target.stat().st_size
    said = (
        f"{target}: {found.kind}, {info['labels']:,} labels, {info['features']:,} features, {trees} of up to "
        f"{info['depth']} layers, {info['activation']}, {info['nonzeros']:,} weights, {bytes_in_words(size)}"
    )
    shape = {name: info[name] for name in ("labels", "features", "trees", "depth", "activation", "path", "nonzeros")}
    more_shape = {name: info[name] for name in ("discount", "unit_rows")}
    head = {"kind": found.kind, "output": str(target), "bytes": size, **shape, **more_shape}
    return {**head, "found": more, "notes": notes, "said": said}


def _write_out(source: Path, target: Path, kind: str, tree: int | None, force: bool) -> dict[str, Any]:
    import beamwood as bw
    from beamwood.interop.convert import write

    model = bw.load(source)
    notes = write(model, target, kind, force=force, **({} if tree is None else {"tree": tree}))
    said = f"{target}: {model.n_labels:,} labels, {model.n_features:,} features, written as {kind}"
    return {"kind": kind, "output": str(target), "notes": notes, "said": said}
