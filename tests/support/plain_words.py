"""plain_words.py — a text and options in, its words out, in plain Python: what the core must find, bit for bit."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

_PATH = Path(__file__).parents[2] / "tools" / "make_unicode_tables.py"
_SPEC = importlib.util.spec_from_file_location("make_unicode_tables", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
tables = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tables)


class Words:
    """Characters one by one in, words out."""

    def __init__(self, least: int, stop: set[str], stem: Callable[[str], str]) -> None:
        self.found: list[str] = []
        self.letters: list[str] = []
        self.run: list[str] = []
        self.least, self.stop, self.stem = least, stop, stem

    def end(self) -> None:
        word, run = "".join(self.letters), self.run
        if len(self.letters) >= max(1, self.least) and word not in self.stop:
            self.found.append(self.stem(word))
        pairs = run if len(run) == 1 else [a + b for a, b in pairwise(run)]
        self.found += [pair for pair in pairs if pair not in self.stop]
        self.letters, self.run = [], []

    def letter(self, char: str) -> None:
        if self.run:
            self.end()
        self.letters.append(char)

    def look_at(self, char: str, segment: bool) -> None:
        script = tables.script_of(char) if segment else 0
        if script == tables.MARK and self.run:
            self.run[-1] += char
        elif script == tables.UNSPACED:
            if self.letters:
                self.end()
            self.run.append(char)
        elif script == 0 and (char.isalnum() or char == "_"):
            self.letter(char)
        else:
            self.end()


def signs_at(text: str, at: int, in_word: bool) -> int:
    """How many characters from a place on, which is no letter, are signs of a word."""
    if in_word and (text[at] == "#" or text.startswith("++", at)):
        after = at + (1 if text[at] == "#" else 2)
        follows = text[after : after + 1]
        return 0 if follows in ("+", "#", "_") or follows.isalnum() else after - at
    before, behind = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    starts = not before or before == "(" or (before.isascii() and before.isspace())
    return int(text[at] == "." and not in_word and starts and behind.isascii() and behind.isalpha())


def plain_words(
    text: str,
    *,
    lowercase: bool = True,
    single_letters: bool = False,
    fold_accents: bool = False,
    signs: bool = False,
    segment: bool = False,
    stop_words: Iterable[str] = (),
    stem: Callable[[str], str] = str,
) -> list[str]:
    """The words of a text. Stop words must be given as the text would have them: lower-cased, folded."""
    words = Words(1 if single_letters else 2, set(stop_words), stem)
    lowered = iter(text.lower() if lowercase else text)
    skip = 0
    for at, char in enumerate(text):
        made = [next(lowered) for _ in range(2 if lowercase and char == "\u0130" else 1)]
        if skip:
            skip -= 1
        elif not char.isascii():
            for part in "".join(tables.fold_of(c) for c in made) if fold_accents else made:
                words.look_at(part.lower() if lowercase and part not in made else part, segment)
        elif char.isalnum() or char == "_":
            words.letter(made[0])
        elif signs and (size := signs_at(text, at, bool(words.letters))):
            for sign in text[at : at + size]:
                words.letter(sign)
            skip = size - 1
        else:
            words.end()
    words.end()
    return words.found


def neighbours(word: str, letters: Iterable[str]) -> set[str]:
    """All words that are one typing error away."""
    letters = list(letters)
    found = set()
    for at in range(len(word) + 1):
        before, behind = word[:at], word[at:]
        found |= {before + letter + behind for letter in letters}
        if behind:
            found |= {before + letter + behind[1:] for letter in letters} | {before + behind[1:]}
        if len(behind) > 1:
            found.add(before + behind[1] + behind[0] + behind[2:])
    return found - {word}


def plain_row(words: Iterable[str], columns: dict[str, int], idf: Any, letters: Iterable[str]) -> dict[int, Any]:
    """The row of a text with guesses for unknown words: column → float32, as TF-IDF of length one."""
    seen: dict[int, float] = {}
    shares: list[tuple[int, float]] = []
    for word in words:
        if word in columns:
            seen[columns[word]] = seen.get(columns[word], 0.0) + 1.0
        elif 3 <= len(word) <= 32 and all(c.isalpha() or not c.isascii() for c in word):
            near = sorted(columns[other] for other in neighbours(word, letters) if other in columns)
            raw = [1 / ((1 + (idf[i] - min(idf[near]))) * (1 + (idf[i] - min(idf[near])))) for i in near]
            total = sum(raw)
            shares += [(i, float(share / total)) for i, share in zip(near, raw, strict=True)]
    for column, share in sorted(shares):
        seen[column] = seen.get(column, 0.0) + share
    weights = {column: seen[column] * float(idf[column]) for column in sorted(seen)}
    length = math.sqrt(sum(w * w for w in weights.values()))
    return {column: np.float32(w / length) for column, w in weights.items()}
