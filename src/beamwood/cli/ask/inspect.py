"""inspect.py — `beamwood inspect`: a model file in, its shape, sizes and weights out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from beamwood.cli.support import options as o
from beamwood.cli.support.given import Given
from beamwood.cli.support.output import bytes_in_words, show, show_json
from beamwood.errors import one_line
from beamwood.hub.fetch import local_path
from beamwood.lexical.label_texts import in_words
from beamwood.life.calibration import Calibration
from beamwood.life.cut import Cut

_EDGES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, np.inf)  # of |weight|
_BAR = 40


def inspect(
    model_file: o.ModelFile,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Rows of texts with labels: shows the most frequent of these labels."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of the most frequent labels.")] = 10,
    weights: Annotated[bool, typer.Option(help="Read all weights, for their histogram.")] = True,
    verify: Annotated[bool, typer.Option("--verify", help="Read the whole file and compare its checksums.")] = False,
    format: o.Format = None,
    labels_column: o.LabelsColumn = "labels",
    text_column: o.TextColumn = "text",
    separator: o.Separator = None,
    skip_bad: o.SkipBad = False,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Show what is in a model file: the tree's shape, bytes by section, weights by size, the most frequent labels.

    Example: beamwood inspect model.bw
    """
    import beamwood as bw

    path = local_path(model_file)
    model = bw.load(path, verify=verify)
    found = {"file": str(path), "file_bytes": Path(path).stat().st_size, **model.info()}
    found["text"] = None if model.text is None else model.text.settings()
    if weights and found["trees"]:
        found["weights"] = histogram(model)
    if data is not None:
        given = Given.of(locals())
        found["most_frequent"] = _most_frequent(model, given, top)
    elif model.rows_of_label is not None:
        found["most_frequent"] = _most_trained(model, top)
    if json_:
        show_json(found)
        return
    _show(found)


def histogram(model: Any) -> list[dict[str, float]]:
    """How many weights lie in each range of size, over all trees."""
    counts = np.zeros(len(_EDGES) - 1, np.int64)
    for tree in range(model.info()["trees"]):
        for layer in model.layers(tree):
            counts += np.histogram(np.abs(layer.weights.data), bins=np.array(_EDGES))[0]
    ends = [None if np.isinf(edge) else edge for edge in _EDGES[1:]]
    return [{"from": a, "to": b, "count": int(n)} for a, b, n in zip(_EDGES, ends, counts, strict=False)]  # type: ignore[dict-item]


def _most_trained(model: Any, top: int) -> list[dict[str, Any]]:
    """The labels that most rows of the training had."""
    rows = model.rows_of_label.astype(np.int64)
    best = np.lexsort((np.arange(len(rows)), -rows))[:top].tolist()
    return [{"key": model.key(label), "name": model.name(label), "rows": int(rows[label])} for label in best]


def _most_frequent(model: Any, given: Given, top: int) -> list[dict[str, Any]]:
    """The labels that most rows have, with their names in the model."""
    counts: Counter[str] = Counter()
    for _, keys in given.records(with_labels=True):
        counts.update(set(keys))
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:top]
    ids = [(key, rows, model.label_of(key)) for key, rows in ranked]
    return [{"key": key, "name": key if i is None else model.name(i), "rows": rows} for key, rows, i in ids]


def _show(found: dict[str, Any]) -> None:
    trees = f"{found['trees']} tree" + "s" * (found["trees"] > 1) if found["trees"] else "exact index"
    show(f"{found['file']}: {found['labels']:,} labels, {found['features']:,} features, {trees}, {found['activation']}")
    show(
        f"{bytes_in_words(found['file_bytes'])} on disk, {found['nonzeros']:,} weights, "
        f"{found['bytes_per_nonzero']:.1f} bytes per weight"
    )
    if found["trees"]:
        show(f"beam {found['beam']} where a search gives none")
    settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    show(f"settings: {settings or 'not known'}")
    for name, text in found["notes"].items():
        show(one_line(f"{name}: {text}"))
    if found["blocks"] is not None:
        show("blocks: " + ", ".join(f"{b['name']} {b['columns']:,} x {b['weight']:.3f}" for b in found["blocks"]))
    if found["encoder"] is not None:
        show(one_line(f"encoder: {found['encoder']['name']}, {found['encoder']['columns']:,} numbers per text"))
    if found["lexical"] is not None:
        show(in_words(found["lexical"]))
    if found["calibration"] is not None:
        show(str(Calibration.read(found["calibration"])))
    if found["cut"] is not None:
        cut = Cut.read(found["cut"])
        assert cut is not None  # a model with a damaged cut does not load
        show(f"cut for {cut.goal}: {cut.on} >= {cut.least:.3f}; F1 {cut.f1:.3f} on {cut.rows:,} rows")
    if found["baselines"] is not None:
        show("in training: " + ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in found["baselines"].items()))
    if found["updates"] is not None:
        since = found["updates"]
        show(
            f"since training: {since['added']:,} labels added ({since['share_added']:.1%} of all), "
            f"{since['removed']:,} of {since['trained']:,} removed"
        )
    show("")
    if found["nodes"]:
        _show_shape(found["nodes"])
    _show_sections(found["bytes_by_section"])
    if "weights" in found:
        _show_histogram(found["weights"])
    if "most_frequent" in found:
        _show_labels(found["most_frequent"])


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _show_shape(trees: list[list[int]]) -> None:
    table = _table("tree", "nodes", "children per node")
    for number, layers in enumerate(trees):
        wide = [below / above for above, below in zip([1, *layers], layers, strict=False)]
        table.add_row(str(number + 1), " → ".join(f"{n:,}" for n in layers), " → ".join(f"{w:.1f}" for w in wide))
    show("Nodes per layer, from the top", table, "")


def _show_sections(sizes: dict[str, int]) -> None:
    """Bytes by kind of section: the same array of all layers together."""
    kinds: Counter[str] = Counter()
    for name, size in sizes.items():
        kinds[name.rpartition("/")[2] if name.startswith("tree") else name] += size
    whole = max(1, sum(kinds.values()))
    table = _table("section", "bytes", "share")
    for kind, size in kinds.most_common():
        if size:
            table.add_row(kind, f"{size:,}", f"{size / whole:.1%}")
    show("Bytes by section", table, "")


def _show_histogram(bins: list[dict[str, float]]) -> None:
    most = max(1, *(entry["count"] for entry in bins))
    table = _table("from", "to", "weights", "")
    table.columns[3].justify = "left"
    for entry in bins:
        if entry["count"]:
            end = "" if entry["to"] is None else f"{entry['to']:g}"
            bar = "█" * max(1, round(_BAR * entry["count"] / most))
            table.add_row(f"{entry['from']:g}", end, f"{entry['count']:,}", bar)
    show("Weights by size", table, "")


def _show_labels(labels: list[dict[str, Any]]) -> None:
    table = _table("name", "rows")
    for label in labels:
        table.add_row(one_line(label["name"]), f"{label['rows']:,}")
    show("Most frequent labels", table)
