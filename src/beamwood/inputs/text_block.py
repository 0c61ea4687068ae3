"""text_block.py — options of one block of text features in, a checked `TextBlock` out; and terms as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import checked_text
from beamwood.inputs.words.stop_words import LANGUAGES, stop_words
from beamwood.inputs.words.tokenizer import Tokenizer

_ANALYZERS = tuple(each.name for each in _core.Splitter if each != _core.Splitter.given)
_OF_WORDS = ("stem", "stop_words", "signs", "tokenizer")  # what only the analyzer "word" has
# What a block without these settings in its file means: files from before there were any.
BEFORE = {
    "fold_accents": False,
    "stem": None,
    "stop_words": None,
    "signs": False,
    "segment": False,
    "typos": False,
    "tokenizer": None,
}
_FLAGS = (
    *("lowercase", "single_letters", "binary", "sublinear_tf", "use_idf", "smooth_idf"),
    *("fold_accents", "signs", "segment", "typos"),
)
NORMS = {None if each == _core.Norm.none else each.name: each for each in _core.Norm}
_LONGEST_RUN = 1_000


@dataclass(frozen=True, kw_only=True)
class TextBlock:
    """How one block of columns is made from a text. Names are those of `TfidfVectorizer` where it has them.

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

    fold_accents: letters count without their accents: "cafe muller" finds "Café Müller".
    stem:         a language of Snowball, such as "finnish": words count by their stem, "sukkia" as "sukat".
    stop_words:   words that do not count: the name of a language, or a list of your own.
    signs:        `C++`, `C#` and `.NET` are words of their own.
    segment:      runs of Chinese, Japanese, Thai, Lao, Khmer and Burmese become pairs of characters. Other texts stay
                  as they are, bit for bit; False is what `TfidfVectorizer` does.
    typos:        a word that is not known counts as those known words that are one typing error away. Texts whose words
                  are all known stay as they are, bit for bit.
    tokenizer:    a function from a text to a list of words, in place of our own splitting. A model stores its name and
                  a fingerprint; give it again to `load`.
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
    fold_accents: bool = False
    stem: str | None = None
    stop_words: str | Iterable[str] | None = None
    signs: bool = False
    segment: bool = True
    typos: bool = True
    tokenizer: Callable[[str], Iterable[str]] | Tokenizer | None = None

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
        for name in _FLAGS:
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise SettingsError(f"{name} is {getattr(self, name)!r}; expected True or False.")
            object.__setattr__(self, name, bool(getattr(self, name)))
        self._check_words()

    def _check_words(self) -> None:
        """The same for what words have."""
        if self.stem is not None and (not isinstance(self.stem, str) or self.stem not in _core.stem_languages):
            raise SettingsError(
                f"stem is {self.stem!r:.60}; expected one of {', '.join(_core.stem_languages)}; or None."
            )
        object.__setattr__(self, "stop_words", _checked_stop_words(self.stop_words))
        if self.tokenizer is not None and not isinstance(self.tokenizer, Tokenizer):
            object.__setattr__(self, "tokenizer", Tokenizer.of(self.tokenizer))
        if self.analyzer != "word":
            for name in _OF_WORDS:
                if getattr(self, name) not in (None, False):
                    raise SettingsError(f'{name} is given with analyzer "{self.analyzer}"; expected analyzer "word".')
        if self.fold_accents and self.analyzer in ("space", "line"):
            raise SettingsError(
                f'fold_accents is True; expected False, as analyzer "{self.analyzer}" keeps letters as they are.'
            )
        words = self.analyzer == "word"
        object.__setattr__(self, "segment", self.segment and words and self.tokenizer is None)
        object.__setattr__(self, "typos", self.typos and words and self.ngram_range[0] == 1)

    def words_left_out(self) -> tuple[str, ...]:
        """The stop words themselves."""
        found = self.stop_words
        return () if found is None else stop_words(found) if isinstance(found, str) else tuple(found)

    def term_rules(self) -> tuple[Any, ...]:
        """How the core finds terms."""
        own = self.tokenizer is not None
        letters = 1 if self.single_letters or own else 2
        most = 2**32 - 1 if self.max_tokens is None else int(self.max_tokens)
        splitter = _core.Splitter.given if own else _core.Splitter[self.analyzer]
        stem = -1 if self.stem is None else _core.stem_languages.index(self.stem)
        plain = (splitter, *self.ngram_range, self.lowercase, letters, most)
        return (*plain, self.fold_accents, self.signs, self.segment, stem, list(self.words_left_out()))

    def terms(self, text: str) -> list[str]:
        """The terms of one text in the order they are found, also those that no vocabulary has."""
        given = checked_text(text)
        if isinstance(self.tokenizer, Tokenizer):
            given = self.tokenizer.joined(given)
        return list(_core.terms_of(self.term_rules(), given))

    def described(self) -> dict[str, Any]:
        """As plain JSON values. What is as it was before there was a choice is left out: older readers know no more."""
        values = {field.name: getattr(self, field.name) for field in fields(TextBlock)}
        values["stop_words"] = None if self.stop_words is None else list(self.words_left_out())
        if isinstance(self.tokenizer, Tokenizer):
            values["tokenizer"] = self.tokenizer.described()
        return {name: value for name, value in values.items() if name not in BEFORE or value != BEFORE[name]}

    @staticmethod
    def read(described: Mapping[str, Any]) -> TextBlock:
        """The inverse, from a file that may be damaged: a SettingsError, KeyError or TypeError then."""
        values = {**BEFORE, **described, "ngram_range": tuple(described["ngram_range"])}
        if values["tokenizer"] is not None:
            values["tokenizer"] = Tokenizer.read(values["tokenizer"])
        return TextBlock(**values)

    def weigh_rules(self) -> tuple[bool, bool, _core.Norm]:
        """How the core weighs them."""
        return (self.binary, self.sublinear_tf, NORMS[self.norm])


def pack_terms(terms: list[str], idf: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one block from its terms in column order and their weights (none: all 1)."""
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    offsets = np.zeros(len(terms) + 1, dtype=np.uint64)
    np.cumsum([len(term) for term in encoded], out=offsets[1:])
    blob = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return {"terms": blob, "offsets": offsets, "slots": _core.make_slots(blob, offsets), "idf": idf}


def _checked_stop_words(words: Any) -> str | tuple[str, ...] | None:
    if words is None:
        return None
    if isinstance(words, str):
        if words in LANGUAGES:
            return words
        raise SettingsError(
            f"stop_words is {words!r:.60}; expected one of {', '.join(LANGUAGES)}; a list of your own words; or None."
        )
    listed = sorted(words, key=str) if isinstance(words, list | tuple | set | frozenset) else None
    if listed is None or not all(isinstance(word, str) and word and not word.isspace() for word in listed):
        raise SettingsError(
            f"stop_words is {words!r:.60}; expected the name of a language ({', '.join(LANGUAGES)}) or a list of words."
        )
    for word in listed:
        if len(word.split()) != 1:
            raise SettingsError(f"stop_words has {word!r:.60}; expected single words. Give its words one by one.")
    return tuple(dict.fromkeys(listed))


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
