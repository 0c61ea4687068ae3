"""bench.py — `beamwood bench`: a model and queries in, the time of each variant of the engine out, once they agree.

A plan in place of a model runs the paper's whole benchmark: see `beamwood.bench`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from beamwood.batch.score import text_of
from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import show, show_json
from beamwood.training.progress import progress_for

PLANS = (".toml", ".json")
_PLAN_PANEL = "With a plan"

Subject = Annotated[
    Path, typer.Argument(metavar="MODEL|PLAN", help="A model file, or a plan of benchmarks (.toml or .json).")
]
Out = Annotated[
    Path, typer.Option("--out", help="The folder for report.md, report.json and plots.", rich_help_panel=_PLAN_PANEL)
]
OwnSets = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="A folder with one folder per set, in npz or XMC text; used before stand-ins.",
        rich_help_panel=_PLAN_PANEL,
    ),
]
Rivals = Annotated[
    Path | None,
    typer.Option(
        "--rivals",
        help="The folder of rivals that bench/rivals/install.py made, for a plan that names some.",
        rich_help_panel=_PLAN_PANEL,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(
        min=1e-6, max=1.0, help="The size of all stand-ins, in place of the plan's.", rich_help_panel=_PLAN_PANEL
    ),
]


def bench(
    subject: Subject,
    data: o.Data = None,
    x: o.X = None,
    queries: Annotated[int, typer.Option("--queries", "-n", min=1, help="Use this many of the first rows.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each variant, in turns; the quickest counts.")] = 5,
    k: o.K = 10,
    beam: o.Beam = None,
    out: Out = Path("bench-report"),
    own_sets: OwnSets = None,
    rivals: Rivals = None,
    scale: Scale = None,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    skip_bad: o.SkipBad = False,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Time every variant of the engine on your model and your queries, or run a whole plan of benchmarks.

    Example: beamwood bench model.bw queries.jsonl

    Example: beamwood bench bench/plans/small.toml --out bench-report

    All variants must give the same bits before any of them is timed. One thread unless the plan says more. A plan names
    sets, branchings and rivals; its report has the tables of the paper and plots. A stopped run continues where it was.
    """
    if subject.suffix in PLANS:
        _run_plan(subject, out, own_sets, rivals, scale, quiet, json_)
        return
    import beamwood as bw
    from beamwood.bench.variants import LEGEND, time_variants, variants_table

    given = Given.of(locals())
    model = bw.load(subject, encoder=encoder)
    X, beam = _rows(model, given, queries), beam or model.beam
    progress = progress_for(not (quiet or json_))
    times = time_variants(model, X, k=k, beam=beam, rounds=rounds, progress=progress)
    if json_:
        how = {"queries": X.shape[0], "k": k, "beam": beam, "threads": 1, "rounds": rounds, "same_bits": True}
        show_json({**how, "variants": [asdict(time) for time in times]})
        return
    show(f"All variants gave the same bits for {X.shape[0]:,} queries.\n")
    show(f"Microseconds per query (one thread, beam {beam}, k {k})", variants_table(times), LEGEND)


def _run_plan(
    plan_file: Path,
    out: Path,
    own_sets: Path | None,
    rivals: Path | None,
    scale: float | None,
    quiet: bool,
    json_: bool,
) -> None:
    from beamwood.bench.gauntlet import run
    from beamwood.bench.plan import read_plan

    plan = read_plan(plan_file)
    plan = plan if scale is None else replace(plan, scale=scale)
    report = run(plan, out, data=own_sets, rivals=rivals, progress=progress_for(not (quiet or json_)))
    if json_:
        show_json(report)
        return
    show(f"{len(report['cases'])} models measured. Read {out / 'report.md'}; the figures are in {out / 'report.json'}.")


def _rows(model: Any, given: Given, count: int) -> Any:
    """The first `count` queries, as the model's features."""
    if given.is_text:
        texts = [text for text, _ in islice(given.records(with_labels=False), count)]
        X = text_of(model).transform(texts)
    else:
        features = model.n_features if given.kind == "svmlight" else None
        X = given.rows(features=features, with_labels=False).X[:count]
    if not X.shape[0]:
        raise typer.BadParameter(f"{given.name} has no rows; expected at least one query.")
    return X
