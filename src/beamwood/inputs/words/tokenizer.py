"""tokenizer.py — a function of the caller's that finds words in, a text that native code can take words from out.

A model cannot hold a function, and a file that names one must not have it run. So what is stored is a name, for people,
and a fingerprint: what the function made of some fixed texts. Whoever loads the model gives the function again, and one
that finds other words in those texts is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from beamwood import _core
from beamwood.errors import BeamwoodError, DataError, SettingsError

BETWEEN = "\x1f"  # given_between of term_rules.hpp
_TRIED = (
    "",
    "red wool socks",
    "Red-wool SOCKS, 2 pairs; don't (re)wash!",
    "C++ and C# on .NET 4.8, node.js",
    "Äiti osti sukkia, Straße und Müller: café",
    "Ο σοφός Οδυσσεύς. Москва и мир",
    "日本文学史 入門編。中国古代文学 ภาษาไทย",
    "tabs\tand\nlines  and   spaces",
    "https://example.org/a?b=1 user@example.org 3.14 1,000",
)


@dataclass(frozen=True)
class Tokenizer:
    """A function from a text to a list of words, known by name and fingerprint. One from a file has no function."""

    name: str
    fingerprint: str
    function: Callable[[str], Iterable[str]] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, function: Any) -> Tokenizer:
        """Looks at what the function makes of fixed texts."""
        if not callable(function):
            raise SettingsError(
                f"tokenizer is a {type(function).__name__}; expected a function from a text to a list of words."
            )
        name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__name__)}"
        unmarked = cls(name, "", function)
        try:
            said = json.dumps([unmarked.words(text) for text in _TRIED]).encode()
        except (BeamwoodError, MemoryError):
            raise
        except Exception as error:  # whatever a foreign function raises
            raise SettingsError(
                f"tokenizer is {name}, which failed with {type(error).__name__}: {error}; expected a function that "
                f"takes any text, for example {_TRIED[1]!r} or ''."
            ) from error
        return cls(name, f"{_core.xxh3_64(np.frombuffer(said, np.uint8)):016x}", function)

    def words(self, text: str) -> list[str]:
        """What the function finds in one text."""
        if self.function is None:
            raise SettingsError(
                f"this model's texts are split by a tokenizer, {self.name}, which no file can hold; expected that "
                "function. Give it: beamwood.load(path, tokenizer=f) or model.with_tokenizer(f)."
            )
        found = self.function(text)
        words = found if isinstance(found, list | tuple) else None
        if words is None or not all(isinstance(word, str) for word in words):
            raise DataError(
                f"the tokenizer {self.name} gave {found!r:.60} for the text {text!r:.40}; expected a list of str."
            )
        if any(BETWEEN in word for word in words):
            raise DataError(f"the tokenizer {self.name} gave a word with U+001F in it; expected words without it.")
        return list(words)

    def joined(self, text: str) -> str:
        """The words of a text in one string, as native code takes them."""
        return BETWEEN.join(self.words(text))

    def bound(self, function: Any) -> Tokenizer:
        """The same with its function; another one is refused."""
        given = Tokenizer.of(function)
        if given.fingerprint != self.fingerprint:
            raise SettingsError(
                f"tokenizer is {given.name}, whose words have the fingerprint {given.fingerprint}; expected "
                f"{self.fingerprint}, that of {self.name}. Give the function, and the version of it, that the model "
                "was trained with."
            )
        return Tokenizer(self.name, self.fingerprint, function)

    def described(self) -> dict[str, str]:
        """As plain JSON values."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    @classmethod
    def read(cls, described: Any) -> Tokenizer:
        """The inverse, from a file that may be damaged."""
        if not isinstance(described, dict) or set(described) != {"name", "fingerprint"}:
            raise SettingsError(f"tokenizer is {described!r:.60}; expected a name and a fingerprint")
        if not all(isinstance(value, str) for value in described.values()):
            raise SettingsError(f"tokenizer is {described!r:.60}; expected two strings")
        return cls(**described)
