"""values.py — the size of a small model in, damaged values for each kind of argument out: what surface.py tries."""

from __future__ import annotations

from pathlib import Path

from support import damaged

FEATURES, LABELS = 8, 4

Values = dict[str, damaged.Make]


def matrices(columns: int) -> Values:
    return {**damaged.sparse(columns), **{f"dense {name}": make for name, make in damaged.dense(columns).items()}}


def scores(columns: int) -> Values:
    """Matrices of scores: NaN and infinity are scores like any other."""
    allowed = ("NaN", "infinity", "minus infinity", "beyond", "list of NaN", "2^31", "2^40 col")
    return {f"odd: {n}" if any(w in n for w in allowed) else n: m for n, m in matrices(columns).items()}


def labels(columns: int) -> Values:
    """Matrices of labels, in whose place lists of ids may stand."""
    lists = ("dense lists", "dense ragged", "dense odd")
    own = {f"odd: {n}" if n.startswith(lists) else n: m for n, m in matrices(columns).items()}
    return {**own, **{f"ids: {name}": make for name, make in damaged.label_ids().items()}}


def odd(values: Values) -> Values:
    """Values of which a function may take some."""
    return {f"odd: {name}": make for name, make in values.items()}


def optional(values: Values) -> Values:
    """The same where None means that nothing was given."""
    return {f"odd: {name}" if name == "dense None" else name: make for name, make in values.items()}


def anything() -> Values:
    """For an argument of any other kind."""
    return odd({**damaged.dense(LABELS), **damaged.label_keys()})


def one_text() -> Values:
    values = {name: make for name, make in damaged.dense(3).items() if name not in ("a text",)}
    return {**values, "odd: a lone surrogate": lambda: "\ud800", "odd: a zero byte": lambda: "a\0b"}


def files(folder: Path) -> Values:
    return damaged.paths(folder)
