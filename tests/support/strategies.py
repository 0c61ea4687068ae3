"""A seed (or a hypothesis draw) in, a random case out: trees, queries and settings that stress the laws.

Small numbers that give a case its form come from a `Source`, so that hypothesis can shrink them; the mass of
weights and values comes from one seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from hypothesis import strategies as st

import beamwood as bw
from beamwood.storage.activations import Activation

Array = npt.NDArray[Any]
T = TypeVar("T")

ACTIVATIONS: tuple[tuple[str, str | None], ...] = (
    ("identity", None),
    ("sigmoid", None),
    *((f"hinge-{p}", None) for p in range(1, 6)),
    ("log-sigmoid", None),
    ("log-sigmoid", "log-exp"),
    *((f"log-hinge-{p}", path) for p in range(1, 6) for path in (None, "log-exp")),
)
WIDEST = 65_535
DENSE_FROM = 1_000_000  # the first seed of models with features that all nodes have, or nearly all


@dataclass(frozen=True)
class Case:
    """One random model and what is asked of it."""

    seed: str
    trees: list[list[bw.Layer]]
    activation: str
    path: str | None
    X: Any
    asks: list[tuple[int, int]]  # (k, beam)
    names: list[str] | None = field(default=None, repr=False)
    discount: float = 1.0
    unit_rows: bool = False

    @property
    def labels(self) -> int:
        """The number of labels of each tree."""
        tree = self.trees[0]
        return sum(int((bw_labels(layer, layer is tree[-1]) >= 0).sum()) for layer in tree)

    def parsed(self) -> Activation:
        """The activation as the reference wants it."""
        return Activation.parse(self.activation, self.path, self.discount)

    def model(self) -> bw.Model:
        """The case's model, built in memory."""
        form: dict[str, Any] = {"activation": self.activation, "path": self.path, "names": self.names}
        form |= {"discount": self.discount, "unit_rows": self.unit_rows}
        built = [bw.Model.from_layers(tree, **form) for tree in self.trees]
        return built[0] if len(built) == 1 else bw.Model.from_trees(built)


def bw_labels(layer: bw.Layer, last: bool) -> Array:
    """The labels of a layer's nodes, the default spelled out."""
    if layer.label is not None:
        return np.asarray(layer.label, np.int64)
    nodes = len(layer.parent)
    return np.arange(nodes) if last else np.full(nodes, -1, np.int64)


class Source:
    """Where the numbers that give a case its form come from."""

    def __init__(self, whole: Callable[[int, int], int], rng: np.random.Generator) -> None:
        self.whole, self.rng = whole, rng

    @classmethod
    def seeded(cls, seed: int) -> Source:
        """The same numbers for the same seed, on every machine."""
        rng = np.random.Generator(np.random.PCG64(seed))
        return cls(lambda low, high: int(rng.integers(low, high + 1)), rng)

    def one_of(self, choices: Sequence[T]) -> T:
        """One of some choices; the first is the plainest."""
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.whole(0, 99) >= 100 - percent


def random_case(seed: int) -> Case:
    """Case number `seed` of the campaign; those from DENSE_FROM on have dense features."""
    if seed >= DENSE_FROM:
        source = Source.seeded(seed)
        return with_dense(source, make_case(source, f"seed {seed}", largest=600))
    return make_case(Source.seeded(seed), f"seed {seed}")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Cases that hypothesis can shrink."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.Generator(np.random.PCG64(seed))
    source = Source(lambda low, high: draw(st.integers(low, high)), rng)
    return make_case(source, f"a hypothesis draw with numbers of seed {seed}", largest=60)


def make_case(s: Source, seed: str, largest: int = 4000) -> Case:
    """A case from a source."""
    features = s.whole(1, s.one_of([6, 60, 60, 400, 400, 3000 if largest > 100 else 100]))
    labels = number_of_labels(s, largest)
    activation, path = s.one_of(ACTIVATIONS)
    count = s.one_of([1, 1, 1, 2, 3, 4] if labels < 600 else [1])
    trees = [random_tree(s, features, labels) for _ in range(count)]
    X = random_queries(s, features, s.whole(1, 7))
    names = [f"label {i}" for i in range(labels)] if s.chance(30) else None
    asks = [(some_count(s, labels), some_count(s, labels)) for _ in range(2)]
    discount = s.one_of([1.0, 0.98, 0.5]) if path == "log-exp" else 1.0
    return Case(seed, trees, activation, path, X, asks, names, discount, unit_rows=s.chance(20))


def with_dense(s: Source, case: Case) -> Case:
    """The same case with a block of dense features: behind the others, before them, or in their place.

    Some nodes, or some weights, may lack there; some queries leave out a few of the features, or all.
    """
    count, where = s.one_of([16, 40, 17, 15, 64, 3]), s.one_of(["behind", "only", "before"])
    lacking = [s.one_of([0, 0, 0, 10, 90]) for _ in range(8)]  # percent of nodes without any, per layer

    def block(layer: bw.Layer, depth: int) -> Any:
        nodes = len(layer.parent)
        values = random_values(s, count * nodes).reshape(count, nodes)
        holes = s.one_of([0.0, 0.0, 0.0, 0.01, 0.3])  # share of weights that are not there
        there = (s.rng.random((count, nodes)) >= holes) & (s.rng.random(nodes) * 100 >= lacking[depth % 8])
        rows, columns = there.nonzero()
        return sp.coo_array((values[there], (rows, columns)), shape=there.shape)

    def joined(old: Any, new: Any, stack: Callable[..., Any]) -> Any:
        parts = {"behind": [old, new], "only": [new], "before": [new, old]}[where]
        return stack([sp.coo_array(part) for part in parts], format="csr")  # keeps stored zeros

    trees = [
        [
            replace(layer, weights=sp.csc_array(joined(layer.weights, block(layer, depth), sp.vstack)))
            for depth, layer in enumerate(tree)
        ]
        for tree in case.trees
    ]
    rows = case.X.shape[0]
    asked = s.rng.random((rows, count)) >= s.one_of([0.0, 0.0, 0.05]) * s.rng.integers(0, 2, (rows, 1))
    asked &= s.rng.random((rows, 1)) >= 0.1
    at, columns = asked.nonzero()
    values = random_values(s, len(at))
    X = sp.csr_array(joined(case.X, sp.coo_array((values, (at, columns)), shape=asked.shape), sp.hstack))
    X.sort_indices()
    return replace(case, trees=trees, X=X)


def number_of_labels(s: Source, largest: int) -> int:
    """A few, a chunk of a mask's width, hundreds, rarely thousands."""
    low, high = s.one_of([(1, 5), (1, 40), (1, 40), (30, 36), (33, 300)])
    if s.chance(2):
        low, high = 2000, 4000
    return s.whole(min(low, largest), min(high, largest))


def some_count(s: Source, labels: int) -> int:
    """A k or a beam: from 1 to beyond the number of labels."""
    return s.whole(1, s.one_of([1, 3, 12, labels + 5]))


def random_tree(s: Source, features: int, labels: int) -> list[bw.Layer]:
    """A tree with leaves for labels 0..n-1 at depths of their own."""
    depth = s.whole(1, 5)
    chains = s.one_of([0, 50, 100])  # how often a lone label goes on down as the one child of its parent
    widest = s.one_of([2, 4, 40, WIDEST])
    parents, sizes_above = np.zeros(1, np.int64), np.array([labels])  # inner nodes above, labels below each
    numbers = s.rng.permutation(labels) if s.chance(60) else np.arange(labels)
    layers: list[bw.Layer] = []
    given = 0
    for level in range(depth):
        last = level == depth - 1
        parts = [np.ones(n, np.int64) if last else split(s, int(n), widest) for n in sizes_above]
        parent, sizes = np.repeat(parents, [len(part) for part in parts]), np.concatenate(parts)
        goes_on = ~np.ones(len(sizes), bool) if last else (sizes > 1) | (s.rng.random(len(sizes)) * 100 < chains)
        if s.chance(40):
            mixed = s.rng.permutation(len(parent))
            parent, sizes, goes_on = parent[mixed], sizes[mixed], goes_on[mixed]
        leaves = int((~goes_on).sum())
        label = np.full(len(sizes), -1, np.int64)
        label[~goes_on] = numbers[given : given + leaves]
        plain = np.array_equal(label, np.arange(len(sizes)) if not goes_on.any() else -np.ones(len(sizes)))
        weights = random_weights(s, features, len(sizes))
        bias = random_bias(s, len(sizes))
        layers.append(bw.Layer(weights, parent, bias, None if plain and s.chance(50) else label))
        given += leaves
        parents, sizes_above = np.flatnonzero(goes_on), sizes[goes_on]
        if not len(parents):
            break
    return layers


def split(s: Source, labels: int, widest: int) -> Array:
    """The labels below a node shared out over its children, evenly or not at all so."""
    width = s.whole(1, min(labels, widest))
    if s.chance(50):
        return np.bincount(np.arange(labels) % width, minlength=width)
    favoured = np.floor(width * s.rng.random(labels - width) ** 3).astype(np.int64)
    return 1 + np.bincount(favoured, minlength=width)


def random_weights(s: Source, features: int, nodes: int) -> Any:
    """Sparse weights: empty columns, unused features, stored zeros, ties, the very small and the huge."""
    used = s.rng.permutation(features)[: s.whole(1, features)]
    count = int(nodes * s.one_of([3.0, 0.0, 0.4, 1.0, 8.0 if nodes < 600 else 1.0]))
    rows = used[(len(used) * s.rng.random(count) ** s.one_of([1, 3])).astype(np.int64)]
    columns = s.rng.integers(0, nodes, count)
    if s.chance(5) and features * nodes < 4000:  # nothing is zero
        rows, columns = np.divmod(np.arange(features * nodes), nodes)
    cells = np.unique(rows * np.int64(nodes) + columns)
    values = random_values(s, len(cells))
    coo = sp.coo_array((values, (cells // nodes, cells % nodes)), shape=(features, nodes))
    form = s.one_of([sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix, sp.coo_array])
    return form(coo)


def random_values(s: Source, count: int) -> Array:
    """Finite float32 numbers of one kind or of all kinds."""
    rng = s.rng
    kinds: list[Array] = [
        rng.standard_normal(count),
        rng.choice([1.0, -1.0, 0.5, 0.0, -0.0, 2.0], count),
        rng.standard_normal(count) * 10.0 ** rng.integers(-46, -20, count),
        rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(15, 38.5, count),
        rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count),
    ]
    kind = s.one_of([0, 0, 0, 1, 1, 4, 2, 3, -1])
    values = kinds[kind] if kind >= 0 else np.choose(rng.integers(0, len(kinds), count), kinds)
    return np.asarray(values, np.float64).astype(np.float32)


def random_bias(s: Source, nodes: int) -> Array | None:
    """No bias, or one a node: some are infinite and make constant nodes."""
    if s.chance(40):
        return None
    bias = random_values(s, nodes)
    if s.chance(30):
        constant = s.rng.random(nodes)
        bias = np.where(constant < 0.15, -np.inf, np.where(constant > 0.92, np.inf, bias)).astype(np.float32)
    return bias


def random_queries(s: Source, features: int, rows: int) -> Any:
    """Canonical float32 CSR: empty rows, full rows, stored zeros, 32- and 64-bit ids."""
    ids: list[Array] = []
    for _ in range(rows):
        most = s.one_of([4, 30, 0, features if features <= 400 else 60])
        count = features if s.chance(7) and features <= 400 else s.whole(0, min(most, features))
        ids.append(np.sort(s.rng.permutation(features)[:count]))
    offsets = np.cumsum([0, *map(len, ids)])
    index = s.one_of([np.int32, np.int64])
    form = s.one_of([sp.csr_array, sp.csr_matrix])
    X = form((random_values(s, offsets[-1]), np.concatenate(ids), offsets), shape=(rows, features))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X
