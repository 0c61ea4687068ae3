"""variants.py — a model and queries in, the time of every variant of its engine out; same bits first, then time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from beamwood.engine import MATCHERS
from beamwood.errors import BeamwoodError
from beamwood.training.progress import Progress, Silent

LEGEND = (
    "column: one sparse vector per label. chunk: siblings stored together (MSCM). default: siblings together and rows "
    "that lead to the layer below (cascade). The same weights, the same bits."
)
DEFAULT = "auto"
_ONLINE_ROWS = 100


@dataclass(frozen=True)
class VariantTime:
    """Microseconds per query of one variant: all queries in one call, and one query per call."""

    matcher: str
    layout: str
    batch: float
    online: float


def time_variants(
    model: Any, X: Any, *, k: int = 10, beam: int = 10, rounds: int = 5, progress: Progress | None = None
) -> list[VariantTime]:
    """Times all variants on one thread, in turns; the quickest round counts, so a busy machine does little harm.

    Batch is the processor's time of one call for all rows of X. Online is the time that the engine itself reports
    for single rows, so the way in from Python is not in it.
    """
    engines = all_variants(model)
    shown = progress if progress is not None else Silent()
    with shown.stage("same bits", X.shape[0]):
        check_same_bits(engines, X, k=k, beam=beam)
    rows = [X[[i]] for i in range(min(_ONLINE_ROWS, X.shape[0]))]
    batch: dict[tuple[str, str], list[float]] = {name: [] for name in engines}
    online: dict[tuple[str, str], list[list[float]]] = {name: [] for name in engines}
    with shown.stage("times", X.shape[0] * rounds * len(engines)) as update:
        for turn in range(rounds):
            for number, (name, engine) in enumerate(engines.items()):
                batch[name].append(_batch_time(engine, X, k, beam))
                online[name].append(_online_times(engine, rows, k, beam))
                update((turn * len(engines) + number + 1) / (rounds * len(engines)))
    return [VariantTime(*name, min(batch[name]), float(np.min(online[name], axis=0).mean())) for name in engines]


def all_variants(model: Any) -> dict[tuple[str, str], Any]:
    """(matcher, layout): the same weights behind that engine. The default comes first."""
    engines = {(DEFAULT, "auto"): model.using(matcher="auto", layout="auto", isa="auto")}
    for matcher in MATCHERS:
        for layout in ("chunk", "column"):
            engines[matcher, layout] = model.using(matcher=matcher, layout=layout)
    return engines


def check_same_bits(engines: dict[tuple[str, str], Any], X: Any, *, k: int, beam: int) -> None:
    """All variants agree to the last bit, for one thread and for two; else there is nothing to time."""
    first: tuple[Any, Any] | None = None
    for (matcher, layout), engine in engines.items():
        for threads in (1, 2):
            labels, scores = engine.topk(X, k=k, beam=beam, threads=threads)
            first = first or (labels, scores)
            if not np.array_equal(labels, first[0]) or scores.tobytes() != first[1].tobytes():
                raise BeamwoodError(
                    f"matcher {matcher} with layout {layout} on {threads} threads answers differently from the "
                    "default: this is a bug, please report it with the model"
                )


def variants_table(times: list[VariantTime]) -> Any:
    """A rich table: a row per matcher; chunk, column and their ratio for batch and online."""
    from rich.table import Table

    table = Table()
    for column in ("matcher", "batch column", "chunk", "ratio", "online column", "chunk", "ratio"):
        table.add_column(column, justify="left" if column == "matcher" else "right")
    found = {(time.matcher, time.layout): time for time in times}
    for matcher in MATCHERS:
        cells = []
        for field in ("batch", "online"):
            column, chunk = (getattr(found[matcher, layout], field) for layout in ("column", "chunk"))
            cells += [f"{column:.1f}", f"{chunk:.1f}", f"{column / max(chunk, 1e-9):.1f}x"]
        table.add_row(matcher, *cells)
    ours = found[DEFAULT, "auto"]
    table.add_row("default", "", f"{ours.batch:.1f}", "", "", f"{ours.online:.1f}", "")
    return table


def _batch_time(engine: Any, X: Any, k: int, beam: int) -> float:
    begun = time.process_time_ns()
    engine.topk(X, k=k, beam=beam, threads=1)
    return (time.process_time_ns() - begun) / 1e3 / int(X.shape[0])


def _online_times(engine: Any, rows: list[Any], k: int, beam: int) -> list[float]:
    return [engine.topk(row, k=k, beam=beam, threads=1, stats=True)[2].nanoseconds / 1e3 for row in rows]
