"""explain.py — `beamwood explain`: a model, words and a label in, why it scores as it does out."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from beamwood.batch.score import text_of
from beamwood.cli.support import options as o
from beamwood.cli.support.output import show, show_json
from beamwood.errors import DataError, one_line


def explain(
    model_file: o.ModelFile,
    query: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What was looked for.")],
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The label's key; the best one by default.")
    ] = None,
    words: Annotated[int, typer.Option(min=0, help="So many of each node's most telling words.")] = 8,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Show why a label scores as it does: what each word adds, layer by layer.

    Example: beamwood explain model.bw history of jazz --label jazz

    The numbers are the engine's own: added in order they give the score bit for bit (--json has all digits).
    """
    import beamwood as bw

    model, text = bw.load(model_file), " ".join(query)
    text_of(model)
    explanation = model.explain(text, _best(model, text) if label is None else label, words=words)
    if json_:
        show_json({"query": text, **explanation.to_dict()})
        return
    key = f"  ({one_line(explanation.key)})" if explanation.key != explanation.name else ""
    show(f"{explanation.score:.3f}  {one_line(explanation.name)}{key}")
    for tree in explanation.trees:
        if explanation.number_of_trees > 1:
            show(f"\ntree {tree.tree + 1} of {explanation.number_of_trees}: {tree.score:.3f}")
        for step in tree.steps:
            _show(step, explanation.activation)


def _best(model: Any, text: str) -> str:
    hits = model.search(text, k=1)
    if not hits:
        raise DataError(
            "the model knows none of these words; expected one that it was trained on. Give others, or a --label."
        )
    return str(hits[0].key)


def _show(step: Any, activation: str) -> None:
    """One layer: what the node is about, what each word adds, and what comes of it."""
    about = ", ".join(one_line(telling.word) for telling in step.words)
    show(f"\nlayer {step.layer + 1}, node {step.node}" + f": {about}" * bool(about))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_column(justify="right", style="dim")
    for share in sorted(step.shares, key=lambda share: -abs(share.product)):
        table.add_row(one_line(share.word), f"{share.product:+.4f}", f"{share.value:.4f} x {share.weight:+.4f}")
    if step.bias:
        table.add_row("bias", f"{step.bias:+.4f}", "")
    table.add_row("sum", f"{step.z:+.4f}", f"{activation} {step.activation:.4f}, path {step.score:.4f}")
    show(table)
