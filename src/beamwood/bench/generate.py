"""generate.py — sizes and a seed in; realistic sparse data (queries with labels) or the layers of a tree model out.

Text is imitated by a hierarchy of topics. Labels sit in order at the bottom of a binary tree; each of its
nodes is a topic with a vocabulary of its own, so labels that are close share words. A token of a document
about a label comes from the background (Zipf over all features), from a topic on the path to the label, or
from its own words. No vocabulary is stored: word number r of topic t is a hash of (t, r, seed), so the same
process serves a thousand labels and a hundred million.

`dataset` makes documents from it. `model_layers` makes weights from it without any training: the support of
a node is the words of pseudo-documents about labels below the node (weights above zero) and about labels
below its siblings (weights below zero), which is where a trained one-against-siblings classifier has its
weights too.

Compared (bench/shape.py) with models that libpecos 1.2.8 trained on the same `dataset` and on real text,
with threshold 0.1; the last layer, then rows over non-zeros of the whole model (trained / generated):

| branching | non-zeros per column | rows per chunk | rows over non-zeros | the whole model |
| --------- | -------------------- | -------------- | ------------------- | --------------- |
| 32        | 323 / 326            | 4,340 / 3,662  | 0.43 / 0.35         | 0.41 / 0.33     |
| 8         | 310 / 318            | 1,402 / 1,451  | 0.58 / 0.57         | 0.54 / 0.54     |
| 2         | 165 / 162            | 193 / 293      | 0.60 / 0.91         | 0.66 / 0.87     |

(4,000 labels, 30,000 features, 200 words per row.) Three real sets with branching 32: 0.38, 0.35, 0.22 for
the whole model. With two children per parent, trained siblings share more rows than ours, being each other's
negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from beamwood.storage.layers import Layer

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BACKGROUND, OWN = 0.4, 0.1  # shares of a document's tokens; what is left is spread over the topics between
STEEP, HEAD = 1.7, 100.0  # of the background's Zipf law: density (rank + HEAD) ** -STEEP
WORDS = 60  # in the vocabulary of a small topic
RARE = 2.5  # how much more often a topic takes frequent features as its words: 1 is not at all
OWN_TOKENS = 0.5  # share of a column's words that come from below its node, the rest from its siblings
WIDE = 0.6  # spread of the logarithm of lengths, of documents and of columns
ROWS_AT_ONCE = 16_384


@dataclass(frozen=True)
class Dataset:
    """X: rows x features, float32, TF-IDF-like, unit rows. Y: rows x labels, ones."""

    X: sp.csr_matrix
    Y: sp.csr_matrix


@dataclass(frozen=True)
class Topics:
    """The process that words come from: labels in, tokens (feature ids) out."""

    labels: int
    features: int
    seed: int

    @property
    def depth(self) -> int:
        return max(1, int(np.ceil(np.log2(self.labels))))

    def tokens(self, label: Ints, rng: np.random.Generator) -> Ints:
        """One feature id for each label given: a word that a document about this label would use."""
        n = len(label)
        level = self._levels(n, rng)
        topic = (np.int64(1) << level) + (label >> (self.depth - level))
        size = np.maximum(WORDS, 6_000 >> level).astype(np.float64)
        rank = (np.exp(rng.random(n) * np.log1p(size)) - 1).astype(np.int64)
        share = self._hash(topic, rank)
        word = np.where(level == 0, _zipf(rng.random(n), self.features, HEAD, STEEP), share**RARE * self.features)
        return self._shuffle(word.astype(np.int64))

    def _levels(self, n: int, rng: np.random.Generator) -> Ints:
        """Level of the topic each token comes from: 0 is the background, `depth` the label's own words."""
        chance = np.full(self.depth + 1, (1 - BACKGROUND - OWN) / max(1, self.depth - 1))
        chance[0], chance[-1] = BACKGROUND, OWN
        return np.searchsorted(np.cumsum(chance) / chance.sum(), rng.random(n)).astype(np.int64)

    def _hash(self, topic: Ints, rank: Ints) -> Floats:
        """A fixed number in [0, 1) for each (topic, rank): the splitmix64 finisher."""
        z = topic.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + rank.astype(np.uint64)
        z = (z + np.uint64(self.seed)) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        share: Floats = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return share

    def _shuffle(self, word: Ints) -> Ints:
        """Frequent words get ids all over the range, as in a vocabulary in alphabetical order."""
        step = int(self.features * 0.6180339887) | 1
        while np.gcd(step, self.features) != 1:
            step += 2
        return word * step % self.features


def _zipf(uniform: Floats, size: int, head: float, steep: float) -> Floats:
    """Uniform numbers in, ranks in [0, size) out with density (rank + head) ** -steep."""
    power = 1 - steep
    low, high = head**power, (head + size) ** power
    rank: Floats = np.minimum((low + uniform * (high - low)) ** (1 / power) - head, size * (1 - 1e-9))
    return rank


def dataset(
    labels: int, features: int, rows: int, nnz_per_row: float, seed: int = 0, labels_per_row: float = 1.4
) -> Dataset:
    """Documents and their labels; every label has a row as long as there are enough rows."""
    topics = Topics(labels, features, seed)
    rng = np.random.default_rng(seed)
    Y = _labels_of_rows(topics, rows, rng, labels_per_row)
    factor = _tokens_for(topics, nnz_per_row, seed)
    counts = sp.vstack([_count(topics, part, nnz_per_row * factor, rng) for part in _parts(Y)], format="csr")
    return Dataset(_tfidf(counts), Y)


def _parts(Y: sp.csr_matrix) -> Iterator[sp.csr_matrix]:
    for first in range(0, Y.shape[0], ROWS_AT_ONCE):
        yield Y[first : first + ROWS_AT_ONCE]


def _labels_of_rows(topics: Topics, rows: int, rng: np.random.Generator, labels_per_row: float = 1.4) -> sp.csr_matrix:
    """One label per row, each at least once, popular ones more often; then near ones, up to the mean."""
    popularity = rng.permutation(topics.labels)
    spare = _zipf(rng.random(max(0, rows - topics.labels)), topics.labels, topics.labels / 8, 1.1)
    main = rng.permutation(np.concatenate([np.arange(topics.labels), popularity[spare.astype(np.int64)]]))[:rows]
    at, near = _near_labels(topics, main, rng, labels_per_row - 1)
    cells = np.concatenate([np.arange(rows), at]), np.concatenate([main, near])
    Y = sp.csr_matrix((np.ones(len(cells[0]), np.float32), cells), shape=(rows, topics.labels))
    Y.data[:] = 1
    return Y


def _near_labels(topics: Topics, main: Ints, rng: np.random.Generator, more: float) -> tuple[Ints, Ints]:
    """Rows and the further labels they get: for a mean below one, at most one each; else more, from a wider range."""
    rows = len(main)
    if more < 1:
        near = main + rng.integers(-8, 9, rows)
        at = np.flatnonzero(rng.random(rows) < more)
        return at, np.clip(near[at], 0, topics.labels - 1)
    at = np.repeat(np.arange(rows), rng.poisson(more, rows))
    reach = int(8 + 2 * more)
    return at, np.clip(main[at] + rng.integers(-reach, reach + 1, len(at)), 0, topics.labels - 1)


def _tokens_for(topics: Topics, nnz_per_row: float, seed: int) -> float:
    """Tokens to draw for one distinct word, found on a few hundred rows."""
    rng = np.random.default_rng(seed + 1)
    Y = _labels_of_rows(topics, min(512, topics.labels), rng)
    factor = 1.0
    for _ in range(4):
        factor *= nnz_per_row / (_count(topics, Y, nnz_per_row * factor, rng).nnz / Y.shape[0])
    return factor


def _count(topics: Topics, Y: sp.csr_matrix, tokens_per_row: float, rng: np.random.Generator) -> sp.csr_matrix:
    """How often each word is in each row; lengths are log-normal around the mean."""
    rows = Y.shape[0]
    length = rng.lognormal(np.log(tokens_per_row) - WIDE**2 / 2, WIDE, rows)
    row = np.repeat(np.arange(rows), np.maximum(1, np.rint(length)).astype(np.int64))
    pick = (rng.random(len(row)) * np.diff(Y.indptr)[row]).astype(np.int64)
    word = topics.tokens(Y.indices[Y.indptr[row] + pick].astype(np.int64), rng)
    key, count = np.unique(row * topics.features + word, return_counts=True)
    indptr = np.searchsorted(key, np.arange(rows + 1) * topics.features)
    parts = (count.astype(np.float32), (key % topics.features).astype(np.int32), indptr.astype(np.int32))
    return sp.csr_matrix(parts, shape=(rows, topics.features))


def _tfidf(counts: sp.csr_matrix) -> sp.csr_matrix:
    """(1 + log tf) * idf, rows of length one; changes the values in place."""
    rows, features = counts.shape
    df = np.bincount(counts.indices, minlength=features)
    idf = (np.log((1 + rows) / (1 + df)) + 1).astype(np.float32)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    squares = np.add.reduceat(counts.data.astype(np.float64) ** 2, counts.indptr[:-1])
    counts.data /= np.repeat(np.sqrt(squares), np.diff(counts.indptr)).astype(np.float32)
    return counts


def layer_sizes(labels: int, branching: int) -> list[int]:
    """Nodes in each layer from the top down; every parent has `branching` children at most."""
    sizes = [labels]
    while sizes[0] > branching:
        sizes.insert(0, -(-sizes[0] // branching))
    return sizes


def model_layers(
    labels: int, features: int, branching: int, *, nnz_per_label: float, swell: float = 0.53, seed: int = 0
) -> list[Layer]:
    """A tree over the labels in order, its weights drawn as the head of this file says.

    nnz_per_label: mean non-zeros of a leaf column; a column that stands for n labels has about n ** swell
    times as many, but not more than two fifths of the features.
    """
    topics = Topics(labels, features, seed)
    sizes, layers = layer_sizes(labels, branching), []
    for depth, nodes in enumerate(sizes):
        below = branching ** (len(sizes) - 1 - depth)
        nonzeros = min(nnz_per_label * min(below, labels / nodes) ** swell, 0.4 * features)
        rng = np.random.default_rng([seed, depth])
        weights = LayerWords(topics, nodes, below, branching).columns(nonzeros, rng)
        bias = rng.normal(-0.7, 0.2, nodes).astype(np.float32)
        layers.append(Layer(weights, np.arange(nodes) // (branching if depth else nodes), bias))
    return layers


@dataclass(frozen=True)
class LayerWords:
    """Draws the weight columns of one layer, whose nodes stand for `below` labels each."""

    topics: Topics
    nodes: int
    below: int
    branching: int

    def columns(self, nonzeros: float, rng: np.random.Generator) -> sp.csc_matrix:
        """Columns of about `nonzeros` non-zeros, made a range of nodes at a time."""
        step = max(1, int(4_000_000 / nonzeros))
        tokens = nonzeros * self._tokens_for(nonzeros, rng)
        parts = [self._draw(np.arange(a, min(self.nodes, a + step)), tokens, rng) for a in range(0, self.nodes, step)]
        sizes, indices, data = (np.concatenate([part[i] for part in parts]) for i in range(3))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return sp.csc_matrix((data, indices, indptr), shape=(self.topics.features, self.nodes))

    def _tokens_for(self, nonzeros: float, rng: np.random.Generator) -> float:
        """Tokens to draw for one distinct word, found on a few columns."""
        factor = 1.0
        some = np.sort(rng.integers(0, self.nodes, min(self.nodes, max(16, int(65_536 / nonzeros)))))
        for _ in range(5):
            factor *= nonzeros / self._draw(some, nonzeros * factor, rng)[0].mean()
        return factor

    def _draw(
        self, node: Ints, tokens: float, rng: np.random.Generator
    ) -> tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Sizes, features and weights of some columns: own words rise, the siblings' words fall."""
        length = np.maximum(1, np.rint(rng.lognormal(np.log(tokens) - WIDE**2 / 2, WIDE, len(node))))
        column = np.repeat(np.arange(len(node)), length.astype(np.int64))
        own = rng.random(len(column)) < OWN_TOKENS
        family = np.where(own, self.below, self.below * self.branching)
        first = node[column] * self.below // family * family
        label = first + (rng.random(len(column)) * family).astype(np.int64)
        features = self.topics.features
        word = self.topics.tokens(np.minimum(label, self.topics.labels - 1), rng)
        key, at = np.unique(column * features + word, return_index=True)
        weight = (0.1 + rng.exponential(0.25, len(key))) * np.where(own[at], 2.0, -1.0)
        sizes = np.bincount(key // features, minlength=len(node))
        return sizes, (key % features).astype(np.int32), weight.astype(np.float32)


def describe(data: Dataset) -> dict[str, Any]:
    """The figures that matter to an engine: sizes and non-zeros per row."""
    rows, features = data.X.shape
    return {
        "rows": rows,
        "features": features,
        "labels": data.Y.shape[1],
        "nnz_per_row": round(data.X.nnz / rows, 1),
        "labels_per_row": round(data.Y.nnz / rows, 2),
    }
