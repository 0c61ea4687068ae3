"""plot.py — a model, a training report or labelled queries in, a matplotlib figure out.

Needs the extra: pip install '.[plot]'. `import beamwood` alone never imports matplotlib. No window is opened:
write a figure with `figure.savefig("tree.png")`, or let a notebook show it.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from beamwood.errors import DataError, SettingsError, install

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
except ImportError as error:
    raise ImportError(f"plots need matplotlib ({error}). {install('plot')}") from error

from beamwood.inputs.arguments import positive
from beamwood.inputs.label_matrix import LabelsLike
from beamwood.inputs.matrices import RowsLike, as_csr
from beamwood.life.calibration import calibration_error
from beamwood.life.truth import relevant, rows_and_truth
from beamwood.metrics import evaluate
from beamwood.training.report import Report

if TYPE_CHECKING:
    from beamwood.model import Model
    from beamwood.tuning.tune import Tuned

COLOURS = ("#1b6e53", "#d98c21", "#3c6fb0", "#a8466b", "#6b6b6b", "#7fb069", "#8a63b5", "#c9b02f")
_GREY = "#5a5a5a"


class Drawing(Figure):
    """A figure that notebooks show by themselves, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


@dataclass(frozen=True)
class LayerShape:
    """One layer of one tree: its nodes, the children of a parent (fewest, mean, most) and its non-zero weights."""

    nodes: int
    fewest: int
    mean: float
    most: int
    nonzeros: int


@dataclass(frozen=True)
class BeamCurve:
    """What each beam costs and gives: precision at each depth (0 to 1), microseconds per query, one at a time."""

    beams: tuple[int, ...]
    precision: dict[int, tuple[float, ...]]
    median: tuple[float, ...]
    slowest: tuple[float, ...]
    queries: int


def layer_shapes(model: Model) -> list[list[LayerShape]]:
    """The layers of each tree, from the top."""
    trees: list[list[LayerShape]] = []
    for number, size in enumerate(model.parts.shape.trees):
        layers = []
        for depth, (nodes, nonzeros) in enumerate(zip(size.nodes, size.nonzeros, strict=True)):
            children = np.diff(model.parts.child_start(number, depth).astype(np.int64))
            children = children[children > 0]
            fewest, most = (int(children.min()), int(children.max())) if children.size else (0, 0)
            layers.append(LayerShape(nodes, fewest, float(children.mean()) if children.size else 0.0, most, nonzeros))
        trees.append(layers)
    return trees


def plot_tree(model: Model) -> Drawing:
    """Nodes, children per parent (mean, with a line from the fewest to the most) and non-zero weights of each layer."""
    trees = layer_shapes(model)
    deepest = max(map(len, trees))
    figure, axes = _panels(3)
    for number, layers in enumerate(trees):
        places, width = _places(len(layers), number, len(trees))
        colour = COLOURS[number % len(COLOURS)]
        axes[0].bar(places, [layer.nodes for layer in layers], width, color=colour, label=f"tree {number}")
        means = np.array([layer.mean for layer in layers])
        reach = [means - [layer.fewest for layer in layers], [layer.most for layer in layers] - means]
        axes[1].errorbar(places, means, reach, fmt="o", markersize=5, capsize=3, color=colour, elinewidth=1.2)
        axes[2].bar(places, [layer.nonzeros for layer in layers], width, color=colour)
    _count_axis(axes[0], [layer.nodes for layers in trees for layer in layers])
    _count_axis(axes[2], [layer.nonzeros for layers in trees for layer in layers])
    axes[1].set_ylim(bottom=0)
    axes[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    for panel, title in zip(
        axes, ("nodes", "children of a parent:\nmean, fewest to most", "non-zero weights"), strict=True
    ):
        panel.set_ylabel(title)
        panel.set_xlabel("layer, 1 is the top")
        panel.set_xticks(range(1, deepest + 1))
        panel.set_xlim(0.4, deepest + 0.6)
    if len(trees) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(trees), 6), frameon=False)
    nonzeros = sum(layer.nonzeros for layers in trees for layer in layers)
    _title(figure, f"{model.n_labels:,} labels, {model.n_features:,} features, {nonzeros:,} non-zero weights")
    return figure


def plot_report(report: Report | None) -> Drawing:
    """Seconds of each stage of a training. The stages of an ensemble's trees are added up."""
    if report is None:
        raise DataError("There is no report: a model has one only in the process that trained it. Use model.report.")
    seconds: dict[str, float] = {}
    for stage, taken in report.seconds:
        name = re.sub(r"(layer \d+)/\d+$", r"\1", stage)  # "weights 2/3, layer 1/4": tree 2 of 3, layer 1 of 4
        name = re.sub(r" \d+/\d+", "", name)
        seconds[name] = seconds.get(name, 0.0) + taken
    figure, (panel,) = _panels(1, height=1.3 + 0.34 * len(seconds), width=7.5)
    bars = panel.barh(list(seconds), list(seconds.values()), color=COLOURS[0], height=0.68)
    panel.bar_label(bars, [_seconds(taken) for taken in seconds.values()], padding=4, fontsize=9, color=_GREY)
    panel.invert_yaxis()
    panel.margins(x=0.14)
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("seconds")
    trees = len(report.nonzeros)
    _title(
        figure,
        f"{report.rows:,} rows, {report.labels:,} labels, {trees} tree{'s' * (trees > 1)}, {report.threads} threads: "
        f"{_seconds(report.total_seconds)} s, peak {report.peak_bytes / 2**20:,.0f} MB",
    )
    return figure


def plot_beam(
    model: Model,
    X: RowsLike,
    Y: LabelsLike,
    beams: Sequence[int] = (1, 2, 5, 10, 20, 50),
    at: Sequence[int] = (1, 3, 5),
    *,
    queries: int = 200,
    rounds: int = 5,
    threads: int = 1,
) -> Drawing:
    """Precision and latency against the beam: what a wider beam gives, and what it costs. See `measure_beams`."""
    curve = measure_beams(model, X, Y, beams, at, queries=queries, rounds=rounds, threads=threads)
    figure, (left, right) = _panels(2)
    places = np.arange(len(curve.beams))
    for number, (depth, values) in enumerate(curve.precision.items()):
        percent = 100 * np.array(values)
        left.plot(places, percent, "o-", color=COLOURS[number % len(COLOURS)], label=f"precision at {depth}")
    left.set_ylabel("precision, percent")
    right.plot(places, curve.median, "o-", color=COLOURS[2], label="median query")
    right.plot(places, curve.slowest, "o:", color=COLOURS[2], alpha=0.6, label="slowest of a hundred")
    right.set_ylabel("microseconds per query")
    right.set_ylim(bottom=0)
    for panel in (left, right):
        panel.set_xlabel("beam, nodes kept per layer")
        panel.set_xticks(places, [f"{beam:,}" for beam in curve.beams])
        panel.legend(frameon=False, fontsize=9)
    _title(figure, f"{model.n_labels:,} labels, latency of {curve.queries:,} queries asked one at a time")
    return figure


def measure_beams(
    model: Model,
    X: RowsLike,
    Y: LabelsLike,
    beams: Sequence[int] = (1, 2, 5, 10, 20, 50),
    at: Sequence[int] = (1, 3, 5),
    *,
    queries: int = 200,
    rounds: int = 5,
    threads: int = 1,
) -> BeamCurve:
    """The numbers behind `plot_beam`.

    Precision is over all rows of X, answered in one batch by `threads` threads. Latency is the engine's own time for
    one query, of up to `queries` rows asked one at a time on one thread; each row counts with its median over rounds.
    """
    beams = tuple(positive(beam, "beam") for beam in beams)
    if not beams:
        raise SettingsError("beams is empty; expected at least one, for example beams=(1, 10).")
    asked = as_csr(X, model.columns, "X")
    if asked.shape[0] == 0:
        raise DataError(
            "X has no rows; expected at least one. Give queries with known labels, for example the rows of a test set."
        )
    k = max(at)
    precision: dict[int, list[float]] = {depth: [] for depth in at}
    for beam in beams:
        found = evaluate(model.topk(asked, k=k, beam=beam, threads=threads), Y, at=at)
        for depth in at:
            precision[depth].append(found.precision[depth])
    rows = [asked[i : i + 1] for i in range(min(positive(queries, "queries"), asked.shape[0]))]
    times = np.empty((len(beams), positive(rounds, "rounds"), len(rows)))
    for turn in range(rounds):  # beams take turns, so that a slow moment of the machine hits all
        for number, beam in enumerate(beams):
            times[number, turn] = [model.topk(row, k=k, beam=beam, stats=True)[2].nanoseconds for row in rows]
    typical = np.median(times, axis=1) / 1000
    return BeamCurve(
        beams=beams,
        precision={depth: tuple(values) for depth, values in precision.items()},
        median=tuple(np.median(typical, axis=1).tolist()),
        slowest=tuple(np.quantile(typical, 0.99, axis=1).tolist()),
        queries=len(rows),
    )


def plot_reliability(model: Model, X: Any, Y: Any, *, k: int = 5, parts: int = 10) -> Drawing:
    """How often labels that are said to be so probable are right: the raw score and, of a calibrated model, the curve.

    X, Y: rows, or texts, and their true labels, which the model was neither trained nor calibrated on. Each point is
    one of `parts` equal parts of the answers to depth k; a model that means what it says has them on the diagonal.
    """
    rows, truth = rows_and_truth(model, X, Y)
    labels, scores = model.topk(rows, k=min(positive(k, "k"), model.n_labels))
    right, there = relevant(labels, truth), labels >= 0
    shown = [("score", np.clip(scores, 0.0, 1.0))]
    if model.is_calibrated:
        shown.append(("probability", model.probability(scores)))
    figure, (panel,) = _panels(1, width=5.0, height=4.6)
    panel.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    for number, (name, values) in enumerate(shown):
        said, hit = values[there], right[there]
        error = calibration_error(said.astype(np.float64), hit)
        pieces = np.array_split(np.argsort(said, kind="stable"), positive(parts, "parts"))
        points = [(said[piece].mean(), hit[piece].mean()) for piece in pieces if len(piece)]
        panel.plot(*zip(*points, strict=True), "o-", color=COLOURS[number], label=f"{name}: {error:.1f} points off")
    panel.set_xlabel("what the model says")
    panel.set_ylabel("share that is right")
    panel.legend(frameon=False)
    _title(figure, f"the first {k} labels of {len(labels):,} rows")
    return figure


def plot_tuning(tuned: Tuned) -> Figure:
    """What a search found (`bw.tune`): quality on held-out rows against the time of a query, the frontier joined.

    A point per trial of the last step; its size is that of the model. Named are those of the frontier, and the one
    chosen.
    """
    if not hasattr(tuned, "frontier"):
        raise SettingsError(f"tuned is a {type(tuned).__name__}; expected what bw.tune gave.")
    last = max((trial.step for trial in tuned.trials), default=0)
    trials = [trial for trial in tuned.trials if trial.step == last and not trial.failed]
    figure, (panel,) = _panels(1, width=6.0, height=4.2)
    best = tuned.frontier()
    panel.plot([t.microseconds for t in best], [t.gain for t in best], color=COLOURS[1], linewidth=1)
    largest = max((trial.bytes for trial in trials), default=1)
    for trial in trials:
        colour = COLOURS[1] if trial.name == tuned.changed else COLOURS[0]
        panel.scatter([trial.microseconds], [trial.gain], s=20 + 180 * trial.bytes / largest, color=colour, alpha=0.6)
        if trial in best or trial.name == tuned.changed:  # names of all would lie upon each other
            at = (trial.microseconds, trial.gain)
            panel.annotate(trial.name, at, (4, 5 if trial in best else -11), textcoords="offset points", fontsize=8)
    panel.set_xlabel("microseconds per query")
    panel.set_ylabel("points gained on held-out rows")
    _title(figure, f"{len(trials)} trials on {trials[0].rows if trials else 0:,} rows; larger points are larger models")
    return figure


def _panels(count: int, height: float = 3.6, width: float | None = None) -> tuple[Drawing, list[Axes]]:
    """A row of panels with quiet frames."""
    figure = Drawing(figsize=(width or 3.9 * count, height), layout="constrained")
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
    return figure, axes


def _title(figure: Figure, text: str) -> None:
    figure.suptitle(text, fontsize=11)


def _places(layers: int, number: int, of: int) -> tuple[npt.NDArray[np.float64], float]:
    """Where the bars of one of several trees stand, and how wide they are."""
    width = 0.7 / of
    return np.arange(1, layers + 1, dtype=np.float64) + (number - (of - 1) / 2) * width, width * 0.92


def _count_axis(panel: Axes, counts: Sequence[int]) -> None:
    """Counts on a logarithmic axis of whole decades, written 1, 10, 1k, 10M."""
    least, most = min((count for count in counts if count), default=1), max([*counts, 1])
    panel.set_yscale("log")
    panel.set_ylim(10 ** math.floor(math.log10(least * 0.9)), 10 ** math.ceil(math.log10(most * 1.05)))
    panel.yaxis.set_major_locator(LogLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(_short))
    panel.yaxis.set_minor_locator(NullLocator())


def _short(value: float, _: Any = None) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"
