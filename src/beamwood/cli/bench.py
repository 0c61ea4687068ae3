"""bench.py — `beamwood bench`: a model and queries in, the time of each variant of the engine out, once they agree."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

import typer

from beamwood.cli import options as o
from beamwood.cli.given import Given
from beamwood.cli.output import show, show_json
from beamwood.cli.predict import text_of
from beamwood.progress import progress_for


def bench(
    model_file: o.ModelFile,
    data: o.Data = None,
    x: o.X = None,
    queries: Annotated[int, typer.Option("--queries", "-n", min=1, help="Use the first so many rows.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each variant, in turns; the quickest counts.")] = 5,
    k: o.K = 10,
    beam: o.Beam = 10,
    format: o.Format = None,
    text_column: o.TextColumn = "text",
    skip_bad: o.SkipBad = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Time every variant of the engine on your model and your queries.

    Example: beamwood bench model.bw queries.jsonl

    All variants must give the same bits before any of them is timed. One thread.
    """
    import beamwood as bw
    from beamwood.variants import LEGEND, time_variants, variants_table

    given = Given.of(locals())
    model = bw.load(model_file)
    X = _rows(model, given, queries)
    progress = progress_for(not (quiet or json_))
    times = time_variants(model, X, k=k, beam=beam, rounds=rounds, progress=progress)
    if json_:
        how = {"queries": X.shape[0], "k": k, "beam": beam, "threads": 1, "rounds": rounds, "same_bits": True}
        show_json({**how, "variants": [asdict(time) for time in times]})
        return
    show(f"All variants gave the same bits for {X.shape[0]:,} queries.\n")
    show(f"Microseconds a query (one thread, beam {beam}, k {k})", variants_table(times), LEGEND)


def _rows(model: Any, given: Given, count: int) -> Any:
    """The first so many queries, as the model's features."""
    if given.is_text:
        texts = [text for text, _ in islice(given.records(with_labels=False), count)]
        X = text_of(model).transform(texts)
    else:
        features = model.n_features if given.kind == "svmlight" else None
        X = given.rows(features=features, with_labels=False).X[:count]
    if not X.shape[0]:
        raise typer.BadParameter(f"{given.name} has no rows; give at least one query")
    return X
