"""text_block.py — options of one block of text features in, a checked `TextBlock` out; and terms as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import SettingsError

_ANALYZERS = ("word", "char_wb", "space", "line")
NORMS = {None: 0, "l1": 1, "l2": 2}
_LONGEST_RUN = 1_000


@dataclass(frozen=True, kw_only=True)
class TextBlock:
    """How one block of columns is made from a text. Names and defaults are those of `TfidfVectorizer`.

    analyzer:     "word", or "char_wb": runs of letters inside words (split at white space, padded by one); or, for
                  features made by libpecos, "space": words are what stands between ASCII spaces, and "line": runs of
                  characters of the text as it stands.
    ngram_range:  shortest and longest run, in words or letters.
    single_letters: words of one letter count too (token_pattern r"(?u)\\b\\w+\\b").
    min_df, max_df: keep terms in at least / at most so many texts (int), or that share of them (float).
    max_features: keep this many of the most frequent terms.
    binary:       count a term once a text.
    sublinear_tf: 1 + log(count) instead of the count.
    use_idf, smooth_idf: weigh by log(n / df) + 1, with one added to n and df when smooth.
    norm:         each row is divided by its "l2" or "l1" norm; None leaves it.
    max_tokens:   of "space" and "line": words or characters after so many are not looked at.
    """

    analyzer: str = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    single_letters: bool = False
    min_df: int | float = 1
    max_df: int | float = 1.0
    max_features: int | None = None
    binary: bool = False
    sublinear_tf: bool = False
    use_idf: bool = True
    smooth_idf: bool = True
    norm: str | None = "l2"
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be meant."""
        if self.analyzer not in _ANALYZERS:
            raise SettingsError(f"analyzer is {self.analyzer!r}; expected one of {', '.join(map(repr, _ANALYZERS))}.")
        if self.analyzer in ("space", "line") and self.lowercase:
            raise SettingsError(
                f'lowercase is True; expected False, as analyzer "{self.analyzer}" keeps letters as they are.'
            )
        if self.norm not in NORMS:
            raise SettingsError(f'norm is {self.norm!r}; expected "l2", "l1" or None.')
        # Plain Python numbers are kept, so that the settings can be written as JSON.
        object.__setattr__(self, "ngram_range", _checked_range(self.ngram_range))
        for name in ("min_df", "max_df"):
            object.__setattr__(self, name, _checked_df(name, getattr(self, name)))
        if self.max_features is not None and not (is_int(self.max_features) and self.max_features >= 1):
            raise SettingsError(f"max_features is {self.max_features!r}; expected a whole number from 1 on, or None.")
        object.__setattr__(self, "max_features", self.max_features and int(self.max_features))
        if self.max_tokens is not None and not (is_int(self.max_tokens) and 1 <= self.max_tokens < 2**32):
            raise SettingsError(f"max_tokens is {self.max_tokens!r}; expected a whole number from 1 on, or None.")
        if self.max_tokens is not None and self.analyzer not in ("space", "line"):
            raise SettingsError(
                f'max_tokens is {self.max_tokens}; expected None, except with the analyzers "space" and "line".'
            )
        for name in ("lowercase", "single_letters", "binary", "sublinear_tf", "use_idf", "smooth_idf"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise SettingsError(f"{name} is {getattr(self, name)!r}; expected True or False.")
            object.__setattr__(self, name, bool(getattr(self, name)))

    def term_rules(self) -> tuple[int, int, int, bool, int, int]:
        """How the core finds terms."""
        letters = 1 if self.single_letters else 2
        most = 2**32 - 1 if self.max_tokens is None else int(self.max_tokens)
        return (_ANALYZERS.index(self.analyzer), *self.ngram_range, self.lowercase, letters, most)

    def weigh_rules(self) -> tuple[bool, bool, int]:
        """How the core weighs them."""
        return (self.binary, self.sublinear_tf, NORMS[self.norm])


def pack_terms(terms: list[str], idf: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one block from its terms in column order and their weights (none: all 1)."""
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    offsets = np.zeros(len(terms) + 1, dtype=np.uint64)
    np.cumsum([len(term) for term in encoded], out=offsets[1:])
    blob = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return {"terms": blob, "offsets": offsets, "slots": _core.make_slots(blob, offsets), "idf": idf}


def _checked_range(ngram_range: Any) -> tuple[int, int]:
    try:
        low, high = ngram_range
        if is_int(low) and is_int(high) and 1 <= low <= high <= _LONGEST_RUN:
            return int(low), int(high)
    except (TypeError, ValueError):
        pass
    raise SettingsError(
        f"ngram_range is {ngram_range!r}; expected (shortest, longest), 1 <= shortest <= longest <= {_LONGEST_RUN}."
    )


def _checked_df(name: str, df: Any) -> int | float:
    if is_int(df) and df >= 1:
        return int(df)
    if isinstance(df, (float, np.floating)) and 0.0 <= df <= 1.0:
        return float(df)
    raise SettingsError(
        f"{name} is {df!r}; expected a number of texts (int from 1 on) or a share of them (float in 0..1)."
    )


def is_int(value: Any) -> bool:
    """Whether it is a whole number, and not a truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
