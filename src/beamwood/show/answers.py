"""answers.py — hits, a model, measures, an explanation or a report in, the HTML that a notebook shows out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from beamwood.encoders.named import SHOWN
from beamwood.show.html import bar, table

_SHOWN = 10  # queries of an answer to many
_SHARES = 8  # words of a layer


def hits_html(hits: Sequence[Any], known_terms: int) -> str:
    """The hits of one query, best first."""
    if not hits:
        return table([""], [["no known words" if not known_terms else "no label found"]])
    calibrated, mixed = (any(getattr(hit, of) is not None for hit in hits) for of in ("probability", "found_by"))
    keyed = any(hit.key != hit.name for hit in hits)
    head = ["", "name", *["key"] * keyed, "score", *["probability"] * calibrated, "", *["found by"] * mixed]
    best = max((hit.score for hit in hits), default=1.0)
    rows = []
    for rank, hit in enumerate(hits, 1):
        share = hit.probability if hit.probability is not None else hit.score / best if best > 0 else 0.0
        row = [rank, hit.name, *[hit.key] * keyed, hit.score, *[hit.probability] * calibrated, bar(share)]
        rows.append([*row, *[hit.found_by] * mixed])
    return table(head, rows)


def many_html(texts: Sequence[str], answers: Sequence[Sequence[Any]]) -> str:
    """The best three of the first few of many queries."""
    rows = []
    for text, hits in list(zip(texts, answers, strict=True))[:_SHOWN]:
        found = ", ".join(f"{hit.name} ({hit.score:.3g})" for hit in hits[:3])
        rows.append([text, found or "nothing"])
    left = len(answers) - len(rows)
    note = f"and {left:,} more; .to_frame() has all of them" if left else ".to_frame() has all hits"
    return table(["query", "best labels"], rows, note=note)


def metrics_html(metrics: Any) -> str:
    """Each measure in percent at each k."""
    rows: list[list[Any]] = []
    for name in ("precision", "recall", "ndcg", "psp", "coverage"):
        values = getattr(metrics, name)
        if values:
            rows.append([name, *(100 * values[k] for k in metrics.at)])
    for name, group in metrics.by_rows.items():
        rows.append([f"recall of {group.labels:,} {name} labels", *(100 * group.recall[k] for k in metrics.at)])
    return table(["percent", *(f"@{k}" for k in metrics.at)], rows, note=f"over {metrics.rows:,} rows")


def report_html(report: Any) -> str:
    """What a training took, stage by stage."""
    rows = [[stage, round(seconds, 2)] for stage, seconds in report.seconds]
    rows.append(["together", round(report.total_seconds, 2)])
    size = f"{report.rows:,} rows, {report.features:,} features, {report.labels:,} labels"
    peak = f"{report.threads} threads, at most {report.peak_bytes / 1e6:,.0f} MB of memory"
    return table(["stage", "seconds"], rows, caption=size, note=f"seed {report.seed}, {peak}")


def explanation_html(explanation: Any) -> str:
    """The path of a label, layer by layer, with the words that count most."""
    rows: list[list[Any]] = []
    for tree in explanation.trees:
        for step in tree.steps:
            where = [None, None] if step.layer is None else [tree.tree, step.layer]
            rows.append([*where, _shares(step), step.z, step.score])
    if explanation.words is not None:
        rows.append(["words", None, _shares(explanation.words), explanation.words.z, None])
    caption = f"{explanation.name}: score {explanation.score:.4g}"
    return table(["tree", "layer", "what counts", "z", "score so far"], rows, caption=caption)


def model_html(about: str, facts: dict[str, Any]) -> str:
    """A model in a few lines."""
    return table(["", ""], [[name, _plain(value)] for name, value in facts.items()], caption=about)


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _shares(step: Any) -> str:
    largest = summed_shares(step)[:_SHARES]
    return ", ".join(f"{word} {product:+.3g}" for word, product, _ in largest) or "nothing in common"


def summed_shares(step: Any) -> list[tuple[str, float, Any]]:
    """What each word adds to a sum, the largest first, and its share; the numbers of an encoder count as one word.

    That one has no share of its own (None), and its sum is for people: the engine adds its numbers one by one.
    """
    words = [(share.word, share.product, share) for share in step.shares if share.word != SHOWN]
    encoded = [share.product for share in step.shares if share.word == SHOWN]
    return sorted(words + [(SHOWN, sum(encoded), None)] * bool(encoded), key=lambda each: -abs(each[1]))
