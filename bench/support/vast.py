"""A number of labels in; weights of a tree over them and queries about them out, by hashing alone, at any size.

Like generate.py, which is for models that fit in memory, this imitates text by topics; here nothing is stored or drawn,
so any node's column and any query can be made again on its own, and a hundred million labels cost a minute or two.

Every node of the tree is a topic with a vocabulary of a few dozen words (24 for a parent of labels, up to 512 at the
top). A label uses some words of each topic above it, chosen by a hash of the label, and background words by Zipf's law
(density (rank + 100) ** -1.7 over all features). Which feature a topic's word is follows another power law: frequent
features are words of many topics. Neighbours in the tree so share rare words, as they do in trees that were made by
clustering. The column of a label has its own words (weights above zero) and words of its siblings (below zero); the
column of an inner node has words of labels below it and of labels below its siblings, about 16 * 32 ** (0.7 h) of them
at height h. A query about a label has some of its words.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array = npt.NDArray[Any]

BITS = 5  # branching 32
VOCABULARY = (0, 24, 96, 256, 512, 512)  # of a topic by its height; 0 is the background
SLOTS = np.array([1, 2, 1, 3, 0, 1, 2, 4, 1, 2, 5, 0, 1, 2, 1, 3, 0, 1, 2, 4, 1, 2, 3, 0])  # height of each word
KNOWN = 12  # a column has the first of them
OWN, SIBLINGS = 11, 7  # words of a label's column
SHARE_OWN = 0.6  # of an inner node's column
SWELL, LEAF = 0.7, 16
STEEP, HEAD, RARE = 1.7, 100.0, 2.5
BLOCK = 160_000  # words made at once: they stay in the cache


def mixed(x: Array) -> Array:
    """32 bits well stirred, in place (the finisher of MurmurHash3)."""
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return x


def unit(x: Array) -> Array:
    """Hashes as float32 numbers in [0, 1)."""
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


@dataclass(frozen=True)
class Vast:
    """The process for one number of labels."""

    labels: int
    features: int

    @cached_property
    def nodes(self) -> list[int]:
        """Nodes in each layer from the top down."""
        sizes = [self.labels]
        while sizes[0] > 1 << BITS:
            sizes.insert(0, -(-sizes[0] >> BITS))
        return sizes

    @cached_property
    def child_starts(self) -> list[Array]:
        """Where the children of each node begin, for each layer."""
        above = [1, *self.nodes[:-1]]
        return [
            np.minimum(np.arange(p + 1, dtype=np.int64) << BITS, n).astype(np.uint32)
            if p > 1
            else np.array([0, n], np.uint32)
            for p, n in zip(above, self.nodes, strict=True)
        ]

    @cached_property
    def _shuffled(self) -> Array:
        """Frequent features get ids all over the range, as in a vocabulary in alphabetical order."""
        step = int(self.features * 0.6180339887) | 1
        while np.gcd(step, self.features) != 1:
            step += 2
        return (np.arange(self.features) * step % self.features).astype(np.int32)

    @cached_property
    def _sizes(self) -> Array:
        """256 quantiles of the sizes of weights."""
        return (0.1 - 0.5 * np.log1p(-(np.arange(256) + 0.5) / 256)).astype(np.float32)

    def words(self, label: Array, slot: Array) -> Array:
        """The feature of a label's word in each slot; the arrays are broadcast."""
        height = np.minimum(SLOTS[slot], len(self.nodes))
        label = label.astype(np.uint32, copy=False)
        pick = unit(mixed(label * np.uint32(0x9E3779B1) + slot.astype(np.uint32) * np.uint32(0x7FEB352D)))
        rank = (pick * pick * np.array(VOCABULARY, np.float32)[height]).astype(np.uint32)
        topic = label >> (BITS * height).astype(np.uint32)
        topic = topic * np.uint32(0xC2B2AE3D) + rank * np.uint32(0x27D4EB2F)
        share = unit(mixed(topic + height.astype(np.uint32) * np.uint32(0x165667B1)))
        at = share * share * np.sqrt(share) * np.float32(self.features)
        background = np.flatnonzero(height == 0)
        if background.size:
            low, high = HEAD ** (1 - STEEP), (HEAD + self.features) ** (1 - STEEP)
            chance = pick[..., background].astype(np.float64)
            at[..., background] = (low + chance * (high - low)) ** (1 / (1 - STEEP)) - HEAD
        return self._shuffled[np.minimum(at.astype(np.int32), self.features - 1)]

    def columns(self, layer: int, first: int, end: int) -> tuple[Array, Array, Array]:
        """The weights of some nodes: CSC arrays."""
        height = len(self.nodes) - 1 - layer
        words = OWN + SIBLINGS if height == 0 else int(LEAF * 2.0 ** (BITS * height * SWELL) * 1.25)
        step = max(1, BLOCK // words)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(lambda a: self._block(height, words, a, min(end, a + step)), range(first, end, step)))
        counts, feature, weight = (np.concatenate([part[i] for part in parts]) for i in range(3))
        start = np.zeros(end - first + 1, np.int64)
        np.cumsum(counts, out=start[1:])
        return start, feature, weight

    def _block(self, height: int, words: int, first: int, end: int) -> tuple[Array, Array, Array]:
        """Counts, features and weights of a few columns, each made from the same number of words."""
        node = np.arange(first, end, dtype=np.uint32)[:, None]
        place = np.arange(words, dtype=np.uint32)
        own = place < (OWN if height == 0 else int(SHARE_OWN * words))
        chance = mixed(node * np.uint32(0x2545F491) + place * np.uint32(0x9E3779B1) + np.uint32(height))
        bits = np.where(own, BITS * height, BITS * (height + 1)).astype(np.uint32)
        family = (node << np.uint32(BITS * height)) >> bits << bits
        label = np.minimum(family | (chance & ((np.uint32(1) << bits) - np.uint32(1))), np.uint32(self.labels - 1))
        slot = (place if height == 0 else place * np.uint32(5)) % np.uint32(KNOWN)
        key = self.words(label, slot.astype(np.int64)) << 1 | ~own
        key.sort(axis=1)
        fresh = np.ones(key.shape, bool)
        np.not_equal(key[:, 1:] >> 1, key[:, :-1] >> 1, out=fresh[:, 1:])
        kept, counts = key[fresh], fresh.sum(axis=1)
        feature = kept >> 1
        which = np.repeat(node[:, 0] * np.uint32(0xB5297A4D), counts) + feature.astype(np.uint32)
        weight = self._sizes[mixed(which) >> np.uint32(24)]
        weight *= np.where(kept & 1, np.float32(-0.5), np.float32(1))
        return counts, feature, weight

    def queries(self, count: int, seed: int, features: tuple[int, int] = (5, 20)) -> tuple[sp.csr_matrix, Array]:
        """Queries of 5 to 20 words, unit length, and the labels they are about."""
        rng = np.random.default_rng(seed)
        label = rng.integers(0, self.labels, count)
        order = rng.random((count, len(SLOTS))).argsort(axis=1)
        lengths = rng.integers(features[0], features[1] + 1, count)
        word = self.words(label[:, None].astype(np.uint32), np.arange(len(SLOTS)))
        rows, cells, values = [], [], []
        for i in range(count):
            _, at = np.unique(word[i, order[i]], return_index=True)
            chosen = np.sort(word[i, order[i]][np.sort(at)[: lengths[i]]])
            value = rng.uniform(0.5, 1.5, len(chosen))
            rows.append(len(chosen))
            cells.append(chosen)
            values.append(value / np.sqrt((value**2).sum()))
        start = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
        data = np.concatenate(values).astype(np.float32)
        return sp.csr_matrix((data, np.concatenate(cells), start), shape=(count, self.features)), label
