"""monitors.py — what a model counted of its queries, and its baselines, in; lines for Prometheus out.

The counts are native (life/tally.hpp), inside each model; once per second a worker takes them over into its record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from beamwood.hits import Hit
from beamwood.model import Model

# What is counted for each model, in the order of the cells.
COUNTED = ("terms_known", "terms_unknown", "queries", "empty", "answered", "top", "labels")
BASELINES = (
    "unknown_terms",
    "empty_queries",
    "known_terms",
    "labels_per_row",
    "top_probability",
    "labels_above_cut",
)
HELP = {
    "beamwood_queries_total": ("counter", "Queries of text answered, by model."),
    "beamwood_empty_queries_total": ("counter", "Queries of text of which the model knows no term."),
    "beamwood_terms_total": ("counter", "Terms of queries, by whether the model knows them."),
    "beamwood_answers_total": ("counter", "Queries of text that have a first label."),
    "beamwood_top_total": ("counter", "Sum of what first labels reach: probabilities, or scores if not calibrated."),
    "beamwood_labels_above_cut_total": ("counter", "Labels above the model's stored cut."),
    "beamwood_baseline": ("gauge", "What the same was in training, on rows that were new."),
}


def taken(model: Model) -> tuple[float, ...]:
    """What a model counted since this was last asked, in the order of COUNTED; models without words count nothing."""
    if model.text is None:
        return (0.0,) * len(COUNTED)
    _, vectorizer, captions, _ = model.native_parts()
    return tuple(map(float, (*vectorizer.take_terms(), *captions.take())))


def count(model: Model, hits: Sequence[Hit], has_terms: bool) -> None:
    """Counts an answer that Python made; those that are written as JSON natively are counted there."""
    labels, scores = [hit.label for hit in hits], [hit.score for hit in hits]
    captions = model.native_parts()[2]
    captions.count(np.array(labels, np.int64), np.array(scores, np.float32), has_terms)


def baselines_of(model: Model) -> dict[str, float]:
    """The baselines of a model whose file may be damaged; and `calibrated`, 1 or 0."""
    stored: Mapping[str, Any] = model.info()["baselines"] or {}
    known = {name: stored.get(name) for name in BASELINES}
    found = {n: float(v) for n, v in known.items() if isinstance(v, (int, float)) and math.isfinite(v)}
    return {**found, "calibrated": float(model.is_calibrated)}


def lines(models: Sequence[str], cells: Any, baselines: Mapping[str, Mapping[str, float]]) -> Iterable[str]:
    """All of it. cells: models x COUNTED, of all workers together."""
    rows = [(name, dict(zip(COUNTED, row, strict=True))) for name, row in zip(models, cells.tolist(), strict=True)]
    for metric, counted in (
        ("beamwood_queries_total", "queries"),
        ("beamwood_empty_queries_total", "empty"),
        ("beamwood_answers_total", "answered"),
        ("beamwood_labels_above_cut_total", "labels"),
    ):
        yield from _head(metric)
        yield from (f'{metric}{{model="{name}"}} {row[counted]:.0f}' for name, row in rows)
    yield from _head("beamwood_terms_total")
    for name, row in rows:
        yield f'beamwood_terms_total{{model="{name}",known="yes"}} {row["terms_known"]:.0f}'
        yield f'beamwood_terms_total{{model="{name}",known="no"}} {row["terms_unknown"]:.0f}'
    yield from _head("beamwood_top_total")
    for name, row in rows:
        kind = "probability" if baselines.get(name, {}).get("calibrated") else "score"
        yield f'beamwood_top_total{{model="{name}",of="{kind}"}} {row["top"]:.9g}'
    yield from _head("beamwood_baseline")
    for name in models:
        for of, value in baselines.get(name, {}).items():
            if of in BASELINES:
                yield f'beamwood_baseline{{model="{name}",of="{of}"}} {value:.9g}'


def _head(name: str) -> tuple[str, str]:
    kind, meaning = HELP[name]
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"
