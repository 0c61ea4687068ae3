"""explain.py — `beamwood explain`: a model, words and a label in, why it scores as it does out."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from beamwood.batch.score import text_of
from beamwood.cli.support import options as o
from beamwood.cli.support.output import show, show_json
from beamwood.errors import DataError, one_line
from beamwood.explain import describe_head
from beamwood.show.answers import summed_shares


def explain(
    model_file: o.ModelFile,
    query: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What was looked for.")],
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The label's key; the best one by default.")
    ] = None,
    words: Annotated[int, typer.Option(min=0, help="So many of each node's most telling words.")] = 8,
    encoder: o.Encoder = None,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Show why a label scores as it does: what each word adds, layer by layer.

    Example: beamwood explain model.bw history of jazz --label jazz

    The numbers are the engine's own: added in order they give the score bit for bit (--json has all digits).
    """
    import beamwood as bw

    model, text = bw.load(model_file, encoder=encoder), " ".join(query)
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
    if explanation.words is not None and explanation.head is not None:
        _show(explanation.words, explanation.activation)
        show("")
        for line in describe_head(explanation.words, explanation.head)[1:]:
            show(line.strip())


def _best(model: Any, text: str) -> str:
    hits = model.search(text, k=1)
    if not hits:
        raise DataError(
            "the model knows none of these words; expected one that it was trained on. Give others, or a --label."
        )
    return str(hits[0].key)


def _show(step: Any, activation: str) -> None:
    """One layer, or the label's own words: what it is about, what each word adds, and what comes of it."""
    about = ", ".join(one_line(telling.word) for telling in step.words)
    where = "the label's own words" if step.layer is None else f"layer {step.layer + 1}, node {step.node}"
    show(f"\n{where}" + f": {about}" * bool(about))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    table.add_column(justify="right", style="dim")
    for word, product, share in summed_shares(step):
        of = "" if share is None else f"{share.value:.4f} x {share.weight:+.4f}"
        table.add_row(one_line(word), f"{product:+.4f}", of)
    if step.bias:
        table.add_row("bias", f"{step.bias:+.4f}", "")
    of = "" if step.layer is None else f"{activation} {step.activation:.4f}, path {step.score:.4f}"
    table.add_row("sum", f"{step.z:+.4f}", of)
    show(table)
