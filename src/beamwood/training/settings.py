"""settings.py — a preset and keywords in, one checked, frozen `Settings` out: all that shapes a training."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from beamwood.errors import SettingsError
from beamwood.inputs.arguments import plain_array
from beamwood.storage.activations import NAME

TREES = ("balanced", "capped", "unbalanced", "random", "huffman")
LOSSES = ("squared-hinge", "hinge", "logistic")
NEGATIVES = ("tfn", "man", "tfn+man", "user")
VECTORS = ("pifa", "features", "pifa+features")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a training, together with the data and the seed. The defaults are those of preset "balanced".

    preset:          where the values came from: "fast", "balanced", "best".
    branching:       children an inner node may have; the last inner layer of a "capped" tree may exceed it.
    max_leaf:        labels a node of the last inner layer may have.
    tree:            "balanced", "capped" (`branching` groups of like labels, then clusters of at most max_leaf),
                     "unbalanced" (wide and shallow, of any depth), "random", "huffman", or your own parent list.
    max_depth:       layers of an unbalanced tree at most, the last one then as wide as it must be; 0: no bound.
    trees:           how many trees, grown from different seeds, are averaged.
    vectors:         what labels are clustered by: "pifa", your label "features", or "pifa+features".
    unit_rows:       rows of X, and later queries, are divided by their length (l2 norm), unless all have length one.
    loss:            "squared-hinge", "hinge" or "logistic".
    activation:      how a node's score is made: "hinge-3", "sigmoid", "log-sigmoid", "log-hinge-2", "identity".
    negatives:       rows a node learns from: those with a label below its parent ("tfn"), those whose beam
                     search reaches its parent ("man"), both ("tfn+man"), or tfn and a matrix of yours ("user").
    beam:            nodes kept per layer in every search of the trained model that does not say how many, and in that
                     search for negatives.
    C:               how much a mistake costs against large weights. "auto": 1 where labels have few rows, and less
                     the more they have: (4 / mean rows per label) ** 0.25, at most 1.
    rare_weight:     adds to the cost of mistakes on rows that have the label, shared out among those n rows:
                     each counts 1 + rare_weight / n. Helps labels with few rows.
    eps:             how near to the optimum the solver goes.
    max_iter:        passes over the rows at most.
    bias:            value of a constant feature; 0: none.
    prune:           weights nearer to zero than this are dropped, but for features that most rows have and that stand
                     side by side at the end of all features, 16 or more of them: those of a dense block.
    top_weights:     keep at most so many weights per node; 0: all.
    lexical:         whether words of labels (those of their rows and texts) rank beside the trees: True, False, or
                     "auto": where they gain on held-out rows. Finding that out takes about a third of the time.
                     Preset "fast" leaves words out unless texts of labels are given.
    """

    preset: str = "balanced"
    branching: int = 128
    max_leaf: int = 32
    tree: str | tuple[int, ...] = "capped"
    max_depth: int = 0
    trees: int = 3
    vectors: str = "pifa"
    unit_rows: bool = True
    loss: str = "squared-hinge"
    activation: str = "hinge-3"
    negatives: str = "tfn"
    beam: int = 10
    C: float | str = "auto"
    rare_weight: float = 4.0
    eps: float = 0.1
    max_iter: int = 20
    bias: float = 1.0
    prune: float = 0.1
    top_weights: int = 0
    lexical: bool | str = "auto"

    def __post_init__(self) -> None:
        _one_of("preset", self.preset, tuple(PRESETS))
        for name, least in _WHOLE_NUMBERS.items():
            object.__setattr__(self, name, _whole(name, getattr(self, name), least))
        for name, (bound, open_end) in _REAL_NUMBERS.items():
            object.__setattr__(self, name, _real(name, getattr(self, name), bound, open_end))
        if not isinstance(self.C, str) or self.C != "auto":
            object.__setattr__(self, "C", _real("C", self.C, 0.0, True, ', or "auto"'))
        object.__setattr__(self, "tree", _tree(self.tree))
        object.__setattr__(self, "unit_rows", _yes_or_no("unit_rows", self.unit_rows))
        if not isinstance(self.lexical, str) or self.lexical != "auto":
            object.__setattr__(self, "lexical", _yes_or_no("lexical", self.lexical, ', or "auto"'))
        _one_of("vectors", self.vectors, VECTORS)
        _one_of("loss", self.loss, LOSSES)
        _one_of("negatives", self.negatives, NEGATIVES)
        if not isinstance(self.activation, str) or not NAME.fullmatch(self.activation):
            raise SettingsError(
                f"activation is {self.activation!r}; expected sigmoid, log-sigmoid, identity, hinge-p or "
                "log-hinge-p with a whole p. Take sigmoid for the logistic loss, hinge-3 for the others."
            )

        if self.trees > 1 and self.activation.startswith("log-"):
            raise SettingsError(
                f"activation={self.activation!r} with trees={self.trees}: a tree that does not reach a label adds "
                "nothing to its mean, and nothing is the best that a log score can be, so labels that few trees reach "
                f"would rank first; take {self.activation.removeprefix('log-')!r}, or trees=1"
            )

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values that JSON can hold; a tree of your own becomes the word "given"."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if isinstance(self.tree, tuple):
            plain["tree"] = "given"
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Settings:
        """The inverse of `to_dict`. Names this version does not know are refused."""
        values = dict(plain)
        return settings_for(values.pop("preset", "fast"), **values)


# What each preset changes against the defaults above. "fast" is the paper's model. The other two were chosen on rows
# held out of the training rows (docs/training.md has the figures):
#   shape        wide tops win quality, narrow leaves win time: 3 trees of 128 groups and clusters of at most 32 labels
#                do as well as 3 uneven trees of 128/128 and answer 1.4 to 2 times as fast.
#   activation   hinge-3 and hinge-4 beat hinge-2 (Parabel, Bonsai, omikuji) everywhere. Four is better with few
#                rows per label and worse with many; three is never the worst.
#   rare_weight  one tree, 0 and 4, P@1 / P@5 / recall@10: debian-search (4 rows per label) 35.3 / 11.4 / 57.2 and
#                36.7 / 11.7 / 58.4; winapi-seealso (4) 78.5 / 30.7 / 91.1 and 77.9 / 30.9 / 91.3; library-subjects (29)
#                33.7 / 16.4 / 39.5 and 33.8 / 16.4 / 39.4. A like weight on every positive row hurts the last: - 1.0.
#   C            the more rows a label has, the less a single one should count. 3 trees, C 1 and auto: library-subjects
#                (29 rows per label, so 0.61) 35.2 / 17.7 / 43.1 and 35.9 / 17.8 / 43.7. With 4 rows each auto is 1;
#                0.6 would cost debian-search a point.
#   unit_rows    the solver expects rows of like length: 0/1 features as they come cost mulan-bibtex 7 points of P@1.
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {
        "tree": "balanced",
        "branching": 32,
        "max_leaf": 32,
        "trees": 1,
        "lexical": False,  # words would take ten times its time: 7.8 and 77 µs per query on library-subjects
        "unit_rows": False,
        "C": 1.0,
        "rare_weight": 0.0,
        "max_iter": 100,
    },
    "balanced": {},
    "best": {"trees": 6},
}

_WHOLE_NUMBERS = {
    "branching": 2,
    "max_leaf": 1,
    "max_depth": 0,
    "trees": 1,
    "beam": 1,
    "max_iter": 1,
    "top_weights": 0,
}
_REAL_NUMBERS = {  # name: (smallest, is the smallest itself left out?)
    "rare_weight": (0.0, False),
    "eps": (0.0, True),
    "bias": (0.0, False),
    "prune": (0.0, False),
}


# Arguments of the trainings beside their settings: what an unknown setting may have been meant to be.
_ARGUMENTS: tuple[str, ...] = (
    *("seed", "threads", "progress", "row_weights", "names", "keys", "max_memory", "checkpoint", "calibrate"),
    *("text", "label_texts", "label_features", "preset"),
)


def settings_for(preset: str = "balanced", **given: Any) -> Settings:
    """The settings of a preset, with the given ones in place of the preset's."""
    _one_of("preset", preset, tuple(PRESETS))
    known = [f.name for f in fields(Settings) if f.name != "preset"]
    for name in given:
        if name not in known:
            raise SettingsError(f"setting {name!r} is unknown: {_nearest(name, known)}")
    return replace(Settings(preset=preset), **{**PRESETS[preset], **given})


def checked_seed(seed: int) -> int:
    """What randomness starts from, if it can be meant."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise SettingsError(f"seed is {seed!r}; expected a whole number from 0 to 2^32 - 1.")
    return int(seed)


def _nearest(name: str, known: Sequence[str]) -> str:
    lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), [*lower, *_ARGUMENTS], n=1, cutoff=0.6)
    everything = "the settings are " + ", ".join(known)
    return f"did you mean {lower.get(close[0], close[0])!r}? ({everything})" if close else everything


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if isinstance(value, str) and value in known:
        return
    close = difflib.get_close_matches(str(value), known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise SettingsError(f"{name} is {value!r}; expected one of {', '.join(map(repr, known))}.{hint}")


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and least <= value <= 2**31 - 1:
        return int(value)
    raise SettingsError(f"{name} is {value!r}; expected a whole number, at least {least}.")


def _yes_or_no(name: str, value: object, other: str = "") -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise SettingsError(f"{name} is {value!r}; expected True or False{other}.")


def _real(name: str, value: object, least: float, open_end: bool, other: str = "") -> float:
    is_real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number = float(value) if is_real else math.nan  # type: ignore[arg-type]
    if math.isfinite(number) and (number > least if open_end else number >= least):
        return number
    bound = f"above {least:g}" if open_end else f"at least {least:g}"
    raise SettingsError(f"{name} is {value!r}; expected a finite number {bound}{other}.")


def _tree(value: object) -> str | tuple[int, ...]:
    if isinstance(value, str):
        _one_of("tree", value, (*TREES, "given"))
        return value
    parents = plain_array(value)
    if parents.ndim == 1 and parents.size and np.issubdtype(parents.dtype, np.integer):
        return tuple(int(p) for p in parents)
    raise SettingsError(
        f"tree is a {type(value).__name__}; expected one of {', '.join(map(repr, TREES))}, or a parent list "
        "(for each node the number of its parent, -1 for the root)."
    )
