"""explain.py — a query and a label in, why it scores so out: every product of every sum on the label's path.

Added in the order given, in float32, the numbers here are the engine's own: they end in the score bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood import _core
from beamwood.engine import Searcher
from beamwood.errors import FormatError
from beamwood.inputs.arguments import whole_below
from beamwood.lexical.explained import HeadShares, best_sum, head_shares
from beamwood.show.answers import explanation_html, summed_shares
from beamwood.storage.build import layer_name
from beamwood.storage.parts import ModelParts

Array = npt.NDArray[Any]
Word = Callable[[int], str]  # the name of a feature

_SHOWN = 5  # products and words per layer that people see at a prompt


@dataclass(frozen=True)
class Share:
    """What one feature of the query adds to a node's z: product = value * weight, rounded to float32."""

    feature: int
    word: str
    value: float
    weight: float
    product: float


@dataclass(frozen=True)
class Telling:
    """A feature that a node's weights speak of."""

    feature: int
    word: str
    weight: float


@dataclass(frozen=True)
class Step:
    """One layer of a path: z = shares in order from +0, then bias; activation = activation(z); score = the path's."""

    layer: int | None  # None: of no tree, but a label's own sum, of an index or of words beside trees
    node: int  # as numbered in model.layers(tree)[layer]; of a label's own sum the label
    shares: tuple[Share, ...]  # in the order in which they are added: rising feature
    bias: float
    z: float
    activation: float
    above: float  # what the parent hands down: its score, times the discount where there is one
    score: float  # of the path down to here: multiplied, added, or this node's alone (see Explanation.path)
    words: tuple[Telling, ...]  # the node's largest weights: what it is about


@dataclass(frozen=True)
class TreePath:
    """A label's path through one tree, from the top."""

    tree: int
    steps: tuple[Step, ...]
    score: float  # of the label in this tree


@dataclass(frozen=True)
class Explanation:
    """Why a label scores as it does. `score` is the mean of the trees' scores, summed in tree order."""

    label: int
    key: str
    name: str
    score: float
    activation: str
    path: str  # how activations are put together: "product", "sum", "log-exp" (sum, then exp) or "last"
    discount: float  # of "log-exp": what a score is multiplied by before the layer below adds its own
    trees: tuple[TreePath, ...]
    number_of_trees: int  # that the sum is divided by; trees that did not reach the label add nothing
    words: Step | None = None  # of a model that has trees and words: the label's sum of words
    head: HeadShares | None = None  # and how both became `score`; the trees' mean is then head.tree_score

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; a number that is not finite becomes None, which JSON can say."""
        plain = finite(asdict(self))
        assert isinstance(plain, dict)
        return plain

    def __repr__(self) -> str:
        """For people: the path layer by layer, the largest shares first."""
        lines = [f"{self.score:.6g}  {self.name}" + f" ({self.key})" * (self.key != self.name)]
        for tree in self.trees:
            if self.number_of_trees > 1:
                lines.append(f"tree {tree.tree}: {tree.score:.6g}")
            for step in tree.steps:
                lines += describe(step, self.activation)
        if self.words is not None and self.head is not None:
            lines += describe_head(self.words, self.head)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return explanation_html(self)


def describe(step: Step, activation: str) -> list[str]:
    """One layer, or a label's own sum, in two or three lines."""
    largest = summed_shares(step)
    added = [f"{word} {product:+.4g}" for word, product, _ in largest[:_SHOWN]]
    if len(largest) > _SHOWN:
        added.append(f"{len(largest) - _SHOWN} more {sum(product for _, product, _ in largest[_SHOWN:]):+.4g}")
    if step.bias:
        added.append(f"bias {step.bias:+.4g}")
    shares = ", ".join(added)
    if step.layer is None:
        lines = [f"  in common: {shares}" if shares else "  nothing in common", f"    sum {step.z:.6g}"]
    else:
        lines = [
            f"  layer {step.layer}, node {step.node}: {shares or 'nothing in common'}",
            f"    z {step.z:.6g}, {activation} {step.activation:.6g}, score {step.score:.6g}",
        ]
    if step.words:
        lines.append(f"    about: {', '.join(telling.word for telling in step.words[:_SHOWN])}")
    return lines


def describe_head(words: Step, head: HeadShares) -> list[str]:
    """The words of a label and the head in three lines."""
    largest = sorted(words.shares, key=lambda share: -abs(share.product))[:_SHOWN]
    added = ", ".join(f"{share.word} {share.product:+.4g}" for share in largest)
    listed = "not listed" if head.tree_score is None else f"{head.tree_score:.6g}"
    return [
        f"words: {added or 'nothing in common'}",
        f"  sum {head.word_sum:.6g}, {head.share:.1%} of the best label's",
        f"head: {head.bias:+.4g} {head.trees:+.4g} · {head.evidence:.4g} (trees: {listed}) "
        f"{head.words:+.4g} · {head.share:.4g} (words) = {head.z:.4g}, score {head.score:.6g}",
    ]


def finite(value: Any) -> Any:
    """The same with None for numbers that JSON cannot say."""
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Explainer:
    """Reads paths out of a model's arrays."""

    def __init__(
        self, forest: _core.Forest, parts: ModelParts, word: Word, postings: _core.Postings | None = None
    ) -> None:
        self._forest, self._parts, self._sections = forest, parts, parts.sections
        self._nodes = [tree.nodes for tree in parts.shape.trees]
        self._activation, self._word, self._postings = parts.shape.activation, word, postings

    def explanation(
        self, named: tuple[int, str, str], row: Any, trees: Sequence[int], words: int, listed: bool = True
    ) -> Explanation:
        """Why a label (number, key, name) scores as it does for a row, by its paths through these trees.

        listed: whether the trees list it among their candidates, of a model that has words too.
        """
        if self._parts.shape.unit_rows:
            row = unit_row(row)
        how = (self._activation.name, self._activation.path, self._activation.discount)
        if not self._nodes:
            path = self.index_path(named[0], row.indices, row.data, words)
            return Explanation(*named, path.score, *how, (path,), 1)
        paths = [self.tree_path(tree, named[0], row.indices, row.data, words) for tree in trees]
        score = mean_score([path.score for path in paths], len(self._nodes)) if paths else None
        head, number = self._parts.shape.head, len(self._nodes)
        if head is None:
            assert score is not None
            return Explanation(*named, score, *how, tuple(paths), number)
        step = self.index_path(named[0], row.indices, row.data, words).steps[0]
        rows = self._parts.rows_of_label
        rowless = rows is not None and not rows[named[0]]
        combined = head_shares(
            head,
            self._activation.native,
            score if listed else None,
            step.z,
            best_sum(self._postings, row, rows, self._parts.shape.labels),
            rowless,
        )
        return Explanation(*named, combined.score, *how, tuple(paths), number, step, combined)

    def index_path(self, label: int, features: Array, values: Array, words: int) -> TreePath:
        """The sum of a label of an index, as a path of one step."""
        assert self._postings is not None
        feature, weight = self._postings.row(label)
        bias = self._sections.get("index/bias")
        shares, z = sum_of(
            features, values, feature, weight, np.float32(0) if bias is None else bias[label], self._word
        )
        numbers = (0.0 if bias is None else float(bias[label]), z, z, 0.0, z)
        step = Step(None, label, shares, *numbers, self.telling(feature, weight, words))
        return TreePath(0, (step,), z)

    def words(self, tree: int, layer: int, node: int, count: int) -> tuple[Telling, ...]:
        """The largest weights of a node, numbered as in model.layers(tree)[layer]."""
        size = self._nodes
        tree = whole_below(tree, len(size), "tree")
        layer = whole_below(layer, len(size[tree]), "layer")
        node = whole_below(node, size[tree][layer], "node")
        return self.telling(*self.weights(tree, layer, self.place(tree, layer, node)), count)

    def tree_path(self, tree: int, label: int, features: Array, values: Array, words: int) -> TreePath:
        """The path of a label for a query: rising features and their float32 values."""
        steps: list[Step] = []
        above = np.float32(self._activation.root_score)
        for layer, place in enumerate(self.places(tree, label)):
            step, above = self._step(tree, layer, place, features, values, above, words)
            steps.append(step)
        shown = self._activation.leaf_scores(np.array([above], np.float32))[0]
        return TreePath(tree, tuple(steps), float(shown))

    def places(self, tree: int, label: int) -> list[int]:
        """The places of the nodes on a label's path, from the top."""
        place = int(self._sections[f"tree{tree}/leaf_of_label"][label])
        layer = 0
        while layer < len(self._nodes[tree]) and place >= self._nodes[tree][layer]:
            place -= self._nodes[tree][layer]
            layer += 1
        places = [place]
        for depth in range(layer, 0, -1):
            places.append(_core.node_parent(self._forest, tree, depth, places[-1]))
        return places[::-1]

    def weights(self, tree: int, layer: int, place: int) -> tuple[Array, Array]:
        """The features and weights of a node."""
        feature, weight = _core.node_weights(self._forest, tree, layer, place)
        if (feature[1:] <= feature[:-1]).any():
            raise FormatError(f"The model is damaged in layer {layer}: a weight stands twice. Get a fresh copy.")
        return feature, weight

    def telling(self, feature: Array, weight: Array, count: int) -> tuple[Telling, ...]:
        """The largest weights, at equal weights the first features."""
        words = self._parts.shape.words  # a number of an encoder tells people nothing
        if words is not None:
            feature, weight = feature[feature < words], weight[feature < words]
        best = np.lexsort((feature, -weight))[:count]
        return tuple(
            Telling(j, self._word(j), w)
            for j, w in zip(feature[best].tolist(), weight[best].tolist(), strict=True)
            if w > 0
        )

    def node(self, tree: int, layer: int, place: int) -> int:
        """The number that a node has in model.layers(tree)[layer]."""
        order = self._sections.get(layer_name(tree, layer, "order"))
        if order is not None and place >= len(order):
            raise FormatError(f"The model is damaged in layer {layer}. Get a fresh copy of its file.")
        return place if order is None else int(order[place])

    def place(self, tree: int, layer: int, node: int) -> int:
        """Where the node with that number stands in its layer."""
        order = self._sections.get(layer_name(tree, layer, "order"))
        if order is None:
            return node
        found = np.flatnonzero(order == node)
        if len(found) != 1:
            raise FormatError(f"The model is damaged in layer {layer}. Get a fresh copy of its file.")
        return int(found[0])

    def _alone(self, tree: int, layer: int, place: int) -> bool:
        """Whether a node has no siblings."""
        start = self._sections[layer_name(tree, layer, "child_start")]
        parent = int(np.searchsorted(start, place, side="right")) - 1
        return bool(start[parent + 1] - start[parent] == 1)

    def _step(
        self, tree: int, layer: int, place: int, features: Array, values: Array, above: np.float32, words: int
    ) -> tuple[Step, np.float32]:
        feature, weight = self.weights(tree, layer, place)
        biases = self._sections.get(layer_name(tree, layer, "bias"))
        bias = np.float32(0) if biases is None else biases[place]
        shares, z = sum_of(features, values, feature, weight, bias, self._word)
        with np.errstate(all="ignore"):
            own = self._activation.scores(np.array([z], np.float32))[0]
            score = own
            stands_in = np.array([np.isposinf(bias) and self._alone(tree, layer, place)])
            above = self._activation.handed_down(np.array([above], np.float32), stands_in)[0]
            if self._activation.path == "product":
                score = above * own
            elif self._activation.path != "last":
                score = above + own
        numbers = (float(bias), float(z), float(own), float(above), float(score))
        telling = self.telling(feature, weight, words)
        return Step(layer, self.node(tree, layer, place), shares, *numbers, telling), score


def sum_of(
    features: Array, values: Array, feature: Array, weight: Array, bias: np.float32, word: Word
) -> tuple[tuple[Share, ...], float]:
    """The products of a query and a node's or label's weights by rising feature, and law 1's sum of them."""
    common, ours, theirs = np.intersect1d(features, feature, assume_unique=True, return_indices=True)
    x, w = values[ours], weight[theirs]
    with np.errstate(all="ignore"):
        products = x * w
        z = np.float32(0)
        for product in products:  # one after the other: numpy's own sum pairs them
            z = z + product
        z = z + bias
    rows = zip(common.tolist(), x.tolist(), w.tolist(), products.tolist(), strict=True)
    return tuple(Share(j, word(j), *numbers) for j, *numbers in rows), float(z)


def trees_that_reach(parts: ModelParts, searchers: Sequence[Searcher], row: Any, label: int, beam: int) -> list[int]:
    """The trees that, each searched for itself with this beam, come to a label."""
    found = []
    for tree, (searcher, size) in enumerate(zip(searchers, parts.shape.trees, strict=True)):
        widest = [int(np.diff(parts.child_start(tree, layer)).max()) for layer in range(len(size.nodes))]
        every = min(beam * sum(widest), parts.shape.labels)  # no beam comes to more labels than that
        if label in searcher.topk(row, every, beam, 1, False)[0]:
            found.append(tree)
    return found


def unit_row(row: Any) -> Any:
    """A row divided by its length as the engine does it: squares added one by one in double, values rounded once."""
    values = row.data.astype(np.float64)
    total = np.add.accumulate(values * values)[-1] if len(values) else 0.0  # accumulate adds in order; sum pairs
    scaled = values / (math.sqrt(total) if total > 0 else 1.0)
    return sp.csr_array((scaled.astype(np.float32), row.indices, row.indptr), shape=row.shape)


def mean_score(scores: Sequence[float], trees: int) -> float:
    """The score of a label from those of the trees that reached it, as the engine sums them."""
    if trees == 1:
        return scores[0]
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for score in scores:
            total = total + np.float32(score)
        return float(total / np.float32(trees) + np.float32(0))
