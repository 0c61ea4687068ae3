"""A number in, a spoiled model file out, always the same one; and the check of what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support.strategies import ACTIVATIONS, Source, random_tree

import beamwood as bw
from attacks.container import Parts
from attacks.probe import Probe

GOLDEN = Path(__file__).parent.parent / "golden"
WILD = (0, 1, 2, 3, 31, 32, 33, 63, 64, 2**15, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1)
ODD: tuple[Any, ...] = (*WILD, -1, -(2**31), 1.5, 1e300, float("nan"), None, True, "", "x", [], {}, [1], [[]], {"a": 1})


@dataclass(frozen=True)
class Base:
    """A valid file, and what it answers."""

    file: bytes
    parts: Parts
    answers: dict[str, list[bytes]]


def bases(path: Path) -> list[Base]:
    """Small models of every kind: wide and narrow chunks, early leaves, several trees, texts; a file of format 1."""
    models = [small_model(seed) for seed in range(11)]
    texts = [f"word{i % 7} red wool {'socks' if i % 2 else 'hats'} {i}" for i in range(40)]
    keys = [[f"key {i % 9}"] for i in range(40)]
    rich = bw.TextFeatures(fold_accents=True, stem="english", stop_words="english", signs=True, single_letters=True)
    models += [bw.train_text(texts, keys, text=text, preset="fast", progress=False) for text in (None, rich)]
    models.append(bw.index_text(texts, keys=[f"key {i}" for i in range(40)]))
    models += [small_index(seed) for seed in range(4)]
    files = [(GOLDEN / "format-1" / "model.bw").read_bytes()]
    for model in models:
        model.save(path)
        files.append(path.read_bytes())
    found = []
    for file in files:
        path.write_bytes(file)
        probe = Probe(path).run()
        assert not probe.errors, probe.errors
        found.append(Base(file, Parts.of(file), probe.answers))
        path.unlink()
    return found


def small_model(seed: int) -> bw.Model:
    """A random model of some tens of labels."""
    source = Source.seeded(seed)
    activation, way = ACTIVATIONS[(seed * 5) % len(ACTIVATIONS)]
    labels = (12, 40, 45, 9)[seed % 4]
    names = {"keys": [f"key {i}" for i in range(labels)], "names": ["name"] * labels} if seed % 2 else {}
    trees = [random_tree(source, 20, labels) for _ in range(1 + (seed == 3))]
    built = [bw.Model.from_layers(tree, activation=activation, path=way, **names) for tree in trees]
    return built[0] if len(built) == 1 else bw.Model.from_trees(built)


def small_index(seed: int) -> bw.Model:
    """A random index: short and long lists, of every kind of weights, with and without negative ones and a bias."""
    rng = np.random.default_rng(seed)
    W = (rng.random((700, 20)) < rng.random(20) ** 2) * (rng.random((700, 20)) - 0.5 * (seed % 2)).astype(np.float32)
    return bw.index(W, rng.random(700) if seed == 3 else None, weights=("f32", "u8", "f16", "u8")[seed])


def check(number: int, valid: list[Base], path: Path) -> None:
    """Spoils a file, opens and asks it, and compares with what may come of it."""
    rng = np.random.default_rng(number)
    base = valid[int(rng.integers(len(valid)))]
    how = (flipped, flipped, cut, sealed_flips, sealed_numbers, sealed_numbers, sealed_header, sealed_header)[
        number % 8
    ]
    file, must_fail, may_differ = how(rng, base)
    path.unlink(missing_ok=True)  # a mapped file is never rewritten in place
    path.write_bytes(file)
    probe = Probe(path).run("read" if number % 5 == 0 else "map")
    what = (f"file {number}", how.__name__)
    if must_fail and file != base.file:
        assert {"load", "verify"} <= set(probe.errors), (*what, "was loaded")
    elif not may_differ:
        assert not probe.errors, (*what, probe.errors)
        assert probe.answers == base.answers, (*what, "answers differ")
    elif how is flipped:
        assert "verify" in probe.errors, (*what, "was verified")


Spoiled = tuple[bytes, bool, bool]  # the file, whether it must not load, whether its answers may differ


def flipped(rng: Any, base: Base) -> Spoiled:
    """One to four bits anywhere. In the header they must be found; in padding they matter to nobody."""
    data = bytearray(base.file)
    begin = len(data) - len(base.parts.blob)
    places = rng.integers(begin if rng.random() < 0.7 else 0, len(data), 1 + rng.integers(4) * (rng.random() < 0.3))
    for place in places:
        data[place] ^= 1 << rng.integers(8)
    in_header = data[:begin] != base.file[:begin]
    before, after = base.parts, data[begin:]
    touched = any(
        after[slice(*before.place(name))] != before.blob[slice(*before.place(name))] for name in before.sections()
    )
    return bytes(data), in_header, touched


def cut(rng: Any, base: Base) -> Spoiled:
    """The end is missing, at an array's edge or anywhere; or there is more of it."""
    edges = [len(base.file) - len(base.parts.blob) + base.parts.place(name)[1] for name in base.parts.sections()]
    at = int(rng.choice(edges) + rng.integers(-1, 2)) if rng.random() < 0.5 else int(rng.integers(len(base.file)))
    if rng.random() < 0.1:
        return base.file + bytes(rng.integers(0, 256, 1 + rng.integers(100), dtype=np.uint8)), True, True
    return base.file[:at], at < len(base.file), at < len(base.file)


def sealed_flips(rng: Any, base: Base) -> Spoiled:
    """Many bits of one array."""
    parts = base.parts.copied()
    begin, end = parts.place(str(rng.choice(parts.sections())))
    for place in rng.integers(begin, end, 1 + rng.integers(20)):
        parts.blob[place] ^= 1 << rng.integers(8)
    return parts.sealed(), False, True


def sealed_numbers(rng: Any, base: Base) -> Spoiled:
    """Numbers of an array replaced by wild ones, by each other, or all by one."""
    parts = base.parts.copied()
    for _ in range(1 + rng.integers(3)):
        name = str(rng.choice(parts.sections()))
        begin, end = parts.place(name)
        kind: Any = {"U8": np.uint8, "U16": np.uint16, "U32": np.uint32, "F32": np.uint32}.get(
            parts.entries[name]["dtype"], np.uint64
        )
        array = np.frombuffer(parts.blob, np.uint8)[begin:end].view(kind)
        where: Any = slice(None) if rng.random() < 0.1 else rng.integers(len(array), size=1 + rng.integers(3))
        wild = np.uint64(WILD[rng.integers(len(WILD))])
        with np.errstate(over="ignore"):
            near = array[rng.integers(len(array))] + kind(rng.integers(-2, 3) % 256)
        array[where] = wild.astype(kind) if rng.random() < 0.5 else near
    return parts.sealed(), False, True


def sealed_header(rng: Any, base: Base) -> Spoiled:
    """Values of the description or of the table replaced, taken away, doubled, swapped; the checksum is good."""
    parts = base.parts.copied()
    for _ in range(1 + rng.integers(2)):
        spoil(rng, parts.meta if rng.random() < 0.5 else parts.entries)
    if not isinstance(parts.meta, dict):
        parts.meta = {}
    return parts.sealed(), False, True


def spoil(rng: Any, node: Any) -> None:
    """Walks down a JSON value at random and spoils what it finds."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.85:
            node = node[key]
            continue
        other = keys[rng.integers(len(keys))]
        choice = rng.integers(6)
        if choice == 0:
            del node[key]
        elif choice == 1:
            node[key], node[other] = node[other], node[key]
        elif choice == 2 and isinstance(node, dict):
            node[f"{key}x"] = node.pop(key)
        elif choice == 3 and isinstance(node[key], int):
            node[key] += int(rng.choice([-1, 1, -64, 64, 8]))
        elif choice == 4 and isinstance(node[key], str):
            node[key] = str(
                rng.choice(["F32", "U8", "U64", "I64", "F64", "identity", "log-exp", "hinge-3", "last", "sum"])
            )
        else:
            node[key] = ODD[rng.integers(len(ODD))]
        return
