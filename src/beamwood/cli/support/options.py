"""options.py — the options that several verbs share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DEBUG = "beamwood.debug"  # where the app finds out, in the context's meta


def _remember_debug(ctx: Any, given: bool) -> bool:
    ctx.find_root().meta[DEBUG] = given
    return given


def _whole(least: int, *names: str, help: str) -> Any:
    return typer.Option(*names, min=least, help=help)


_DATA_PANEL = "How the data is read"

ModelFile = Annotated[
    Path,
    typer.Argument(
        help="A model file, as `beamwood train` writes it; or its address: hf://org/name, https://…#sha256=….",
        metavar="MODEL",
    ),
]
Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="JSONL, CSV, TSV or Parquet with texts; or numbers as XMC-repository text (.txt) or svmlight (.svm). "
        "Also .gz and .zst; '-' is standard input.",
        show_default=False,
    ),
]
X = Annotated[
    Path | None,
    typer.Option("--x", help="Rows x features as a scipy .npz, in place of DATA.", rich_help_panel=_DATA_PANEL),
]
Y = Annotated[
    Path | None,
    typer.Option("--y", help="Rows x labels as a scipy .npz, with --x.", rich_help_panel=_DATA_PANEL),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="jsonl, csv, tsv, parquet, lines (one text per line), xmc or svmlight; by the file's name if not given, "
        "jsonl for standard input. Or as other programs write texts: fasttext (__label__a words), pecos (a,b TAB "
        "text), annif (text TAB <a> <b>).",
        rich_help_panel=_DATA_PANEL,
    ),
]
TextColumn = Annotated[
    str,
    typer.Option(
        "--text-column",
        help="The column (or field) with the text. CSV or TSV without a header: its number, from 1 on.",
        rich_help_panel=_DATA_PANEL,
    ),
]
LabelsColumn = Annotated[
    str,
    typer.Option("--labels-column", help="The column with the labels: name or number.", rich_help_panel=_DATA_PANEL),
]
Separator = Annotated[
    str | None,
    typer.Option("--separator", help="What stands between labels written in one string.", rich_help_panel=_DATA_PANEL),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave bad rows out and count them.", rich_help_panel=_DATA_PANEL)
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="What makes vectors of texts, where the model cannot open it by itself: onnx:FOLDER, model2vec:FOLDER.",
    ),
]
K = Annotated[int, _whole(1, "--k", "-k", help="Labels returned for each query.")]
Beam = Annotated[
    int | None,
    _whole(1, "--beam", "-b", help="Nodes kept per layer: more is slower, finds more. The model's own if not given."),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        help="Only labels that apply: of at least this probability, or those above the model's cut: cut.",
    ),
]
MinScore = Annotated[float | None, typer.Option(help="Leave out labels that score less.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="KEY", help="Find only this label and others so given; repeat."),
]
AllowFile = Annotated[Path | None, typer.Option("--allow-file", help="The same for every key of a file, one per line.")]
Deny = Annotated[list[str] | None, typer.Option("--deny", metavar="KEY", help="Never find this label; repeat.")]
DenyFile = Annotated[Path | None, typer.Option("--deny-file", help="The same for every key of a file, one per line.")]
Threads = Annotated[int | None, _whole(1, "--threads", "-t", help="Threads; all cores if not given.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting, e.g. --set trees=3 --set prune=0.2; repeat. There are: branching, max_leaf, tree, "
        "max_depth, trees, vectors, unit_rows, loss, activation, negatives, beam, C, rare_weight, eps, "
        "max_iter, bias, prune, top_weights.",
    ),
]
Note = Annotated[
    list[str] | None,
    typer.Option(
        "--note",
        metavar="NAME=TEXT",
        help="Write this on the model, e.g. --note data=orders-7 --note date=2026-11-18; repeat. `inspect` shows it.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Work on a Ray cluster: HOST:PORT of its head, 'auto' for the one of this machine, 'local' to start one "
        "here. Same answers. Needs the extra `ray`.",
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace a file that is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and no progress.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Debug = Annotated[
    bool, typer.Option("--debug", callback=_remember_debug, help="Show where an error came from.", is_eager=True)
]


def threshold_of(given: str | None) -> float | bool | None:
    """What --threshold means: a least probability, or True for the model's own cut."""
    if given is None or given == "cut":
        return None if given is None else True
    try:
        return float(given)
    except ValueError:
        raise typer.BadParameter(f"--threshold is {given}; expected a probability from 0 to 1, or cut.") from None
