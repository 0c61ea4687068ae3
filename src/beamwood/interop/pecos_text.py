"""pecos_text.py — a folder of libpecos' Tfidf vectorizer in, text features out that make the same rows.

Its ways are kept: words stand between ASCII spaces and keep their case; runs of characters are taken from the text as
it stands, also where training counted them inside words (`char_wb`); an n-gram with an unknown token is no feature;
idf has the six decimals that were saved. Several base vectorizers stand side by side, and the row is then divided by
its norm once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from beamwood.errors import FormatError
from beamwood.inputs.text import FittedText
from beamwood.inputs.text_block import TextBlock, pack_terms
from beamwood.interop.foreign import ImportedText, errors_of, read_json, read_text, whole, wrong

KIND = "PECOS Tfidf vectorizer"
_WORD, _CHAR, _CHAR_WB = 10, 20, 30
_NORMS = {1: "l1", 2: "l2", "l1": "l1", "l2": "l2"}
_MOST_BASES = 64


def is_folder(folder: Path) -> bool:
    """Whether it looks like one."""
    return any((folder / name).exists() for name in ("0.base", "tokenizer", "vectorizer.pkl"))


def read(folder: Path) -> ImportedText:
    """The text features in a folder."""
    if (folder / "vectorizer.pkl").exists():
        raise FormatError(
            f"{folder / 'vectorizer.pkl'}: a pickle, which could run anything and is not read. Load it where you trust "
            "it, and take the vectorizer over with TextFeatures.from_sklearn."
        )
    bases, norm = [folder], None
    if (folder / "meta.json").exists():
        meta = folder / "meta.json"
        values = _kwargs(meta)
        count = whole(values, "num_base_vect", meta, 1, _MOST_BASES)
        bases = [folder / f"{i}.base" for i in range(count)]
        norm = _norm(values, meta)
    pairs = [_read_base(base) for base in bases]
    blocks = tuple(block for block, _ in pairs)
    if len(blocks) == 1 and norm == blocks[0].norm:
        norm = None  # a second division by the same norm changes nothing
    with errors_of(folder):
        text = FittedText(blocks, tuple(arrays for _, arrays in pairs), norm)
    found = {"base_vectorizers": len(blocks), "features": text.columns, "norm": norm}
    return ImportedText(KIND, text, found)


def _kwargs(path: Path) -> dict[str, Any]:
    values = read_json(path)
    if values.get("type") != "tfidf":
        raise wrong(path, f"type is {values.get('type')!r:.60}; expected 'tfidf'")
    found = values.get("kwargs")
    if not isinstance(found, dict):
        raise wrong(path, f"kwargs is {found!r:.60}; expected a JSON object")
    return found


def _norm(values: dict[str, Any], path: Path) -> str:
    norm = values.get("norm_p")
    if not isinstance(norm, (int, str)) or isinstance(norm, bool) or norm not in _NORMS:
        raise wrong(path, f"norm_p is {norm!r:.60}; expected 'l1' or 'l2'")
    return _NORMS[norm]


def _read_base(folder: Path) -> tuple[TextBlock, dict[str, Any]]:
    """One base vectorizer as a block and its arrays."""
    config = folder / "tokenizer" / "config.json"
    kind = whole(read_json(config), "token_type", config)
    if kind not in (_WORD, _CHAR, _CHAR_WB):
        raise wrong(config, f"token_type is {kind}; expected 10 (word), 20 (char) or 30 (char_wb)")
    tokens = _read_tokens(folder / "tokenizer" / "vocab.txt", kind)
    config = folder / "vectorizer" / "config.json"
    values = _kwargs(config)
    low, high = _ngram_range(values, config)
    most = whole(values, "max_length", config, -(2**31)) if "max_length" in values else 0
    with errors_of(config):
        block = TextBlock(
            analyzer="space" if kind == _WORD else "line",
            ngram_range=(low, high),
            lowercase=False,
            binary=_flag(values, "binary", config),
            sublinear_tf=_flag(values, "sublinear_tf", config),
            use_idf=_flag({"use_idf": True, **values}, "use_idf", config),
            norm=_norm(values, config),
            max_tokens=most if most > 0 else None,
        )
    terms, idf = _read_terms(folder / "vectorizer" / "tfidf-model.txt", tokens, " " if kind == _WORD else "", high)
    if "use_idf" in values and not _flag(values, "use_idf", config):
        idf = np.empty(0, np.float64)  # it is in the file, but not used
    with errors_of(folder):
        return block, pack_terms(terms, idf)


def _flag(values: dict[str, Any], name: str, path: Path) -> bool:
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise wrong(path, f"{name} is {value!r:.60}; expected true or false")
    return value


def _ngram_range(values: dict[str, Any], path: Path) -> tuple[int, int]:
    found = values.get("ngram_range")
    if not isinstance(found, list) or len(found) != 2 or not all(type(n) is int and 1 <= n <= 1000 for n in found):
        raise wrong(path, f"ngram_range is {found!r:.60}; expected two numbers from 1 to 1,000")
    return found[0], found[1]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines behind the first, which must say how many they are."""
    first, *rest = read_text(path).split("\n")
    if rest and rest[-1] == "":
        rest.pop()
    if not first.isascii() or not first.isdecimal() or len(first) > 10:
        raise wrong(path, f"line 1 is {first!r:.60}; expected the number of entries")
    if int(first) != len(rest):
        raise wrong(
            path,
            f"line 1 says {int(first):,} entries, {len(rest):,} lines follow (a token with a line end in it, which "
            "libpecos cannot read back either, does that)",
        )
    yield from enumerate(rest, start=2)


def _number(text: str, most: int, path: Path, line: int, name: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or int(text) >= most:
        raise wrong(path, f"line {line}: {name} is {text!r:.60}; expected a number below {most:,}")
    return int(text)


def _read_tokens(path: Path, kind: int) -> list[str]:
    """Tokens by number."""
    lines = list(_lines(path))
    tokens: list[str | None] = [None] * len(lines)
    for line, text in lines:
        index, tab, token = text.partition("\t")
        at = _number(index, len(tokens), path, line, "the token's number")
        if not tab or not token or tokens[at] is not None or (kind == _WORD and " " in token):
            raise wrong(path, f"line {line} is {text!r:.60}; expected a number, a tab and a token of its own")
        tokens[at] = token
    return [token for token in tokens if token is not None]


def _read_terms(path: Path, tokens: list[str], between: str, longest: int) -> tuple[list[str], Any]:
    """Terms and idf by feature."""
    lines = list(_lines(path))
    if not lines:
        raise wrong(path, "it has no features; expected at least one")
    terms: list[str | None] = [None] * len(lines)
    idf = np.zeros(len(lines), np.float64)
    for line, text in lines:
        parts = text.split("\t")
        if len(parts) != 4:
            raise wrong(path, f"line {line} has {len(parts)} columns; expected 4")
        at = _number(parts[0], len(terms), path, line, "the feature's number")
        numbers = parts[3].split()
        if _number(parts[2], longest + 1, path, line, "the n-gram's length") != len(numbers) or not numbers:
            raise wrong(path, f"line {line} has {len(numbers)} tokens; expected {parts[2]!r:.20}, the length it says")
        if terms[at] is not None:
            raise wrong(path, f"line {line}: feature {at} is there twice; expected it once")
        terms[at] = between.join(tokens[_number(n, len(tokens), path, line, "a token's number")] for n in numbers)
        try:
            idf[at] = float(parts[1])
        except ValueError:
            raise wrong(path, f"line {line}: idf is {parts[1]!r:.60}; expected a number") from None
    if not (np.isfinite(idf) & (np.abs(idf) < 1e30)).all():
        raise wrong(path, "an idf is not finite; expected finite numbers")
    return [term for term in terms if term is not None], idf
