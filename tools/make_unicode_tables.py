"""The running Python's Unicode tables in, two headers of native/include/beamwood/text out.

    python tools/make_unicode_tables.py classes > native/include/beamwood/text/unicode_tables.hpp
    python tools/make_unicode_tables.py folds > native/include/beamwood/text/fold_tables.hpp

The output is committed: every build then splits words the same way, whatever Python runs it. What is asked of
Python is what scikit-learn asks: `re`'s \\w and `str.split`'s white space for one character, and `str.lower`.
Beyond that: which characters belong to scripts that write no spaces, and what is left of a character without accents.
"""

from __future__ import annotations

import re
import sys
import unicodedata

WORD, SPACE, CASED, IGNORABLE, UNSPACED, MARK = 1, 2, 4, 8, 16, 32
SIGMA, FINAL_SIGMA, DOTTED_I = "\u03a3", "\u03c2", "\u0130"
LAST = 0x110000
SCRIPTS = re.compile(
    "CJK (UNIFIED|COMPATIBILITY) IDEOGRAPH|IDEOGRAPHIC (ITERATION|CLOSING|NUMBER ZERO)|VERTICAL IDEOGRAPHIC ITERATION"
    "|(HALFWIDTH )?KATAKANA|HIRAGANA|HENTAIGANA|COMBINING KATAKANA-HIRAGANA|BOPOMOFO|THAI |LAO |KHMER |MYANMAR "
)
# Marks that go: those attached to letters, above, below or overlaid, and points of Hebrew and Arabic. Nuktas, voicing
# marks of kana, viramas, vowels and tones of Indic and Thai scripts stay: without them it is another word.
DROPPED = {1, *range(10, 36), 36, *range(200, 241)}
LETTERS = {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "þ": "th", "Þ": "TH"}
LETTERS |= {"ð": "d", "Ð": "D", "ŋ": "n", "Ŋ": "N", "ı": "i", "ĸ": "k", "ς": "σ", "ƒ": "f"}
BARRED = re.compile("LATIN (SMALL|CAPITAL) LETTER ([A-Z]) WITH [A-Z ]+")


def flags_of(char: str) -> int:
    """The classes of one character; those of case show in what becomes of a capital sigma beside it."""
    word = WORD if char.isalnum() or char == "_" else 0
    word |= script_of(char)
    space = SPACE if char.isspace() else 0
    if (char + SIGMA).lower().endswith(FINAL_SIGMA):
        return word | space | CASED
    if ("A" + char + SIGMA).lower().endswith(FINAL_SIGMA):
        return word | space | IGNORABLE
    return word | space


def script_of(char: str) -> int:
    """Whether it is a letter of a script without spaces, or a mark on one."""
    if not SCRIPTS.match(unicodedata.name(char, "")):
        return 0
    kind = unicodedata.category(char)
    return MARK if kind[0] == "M" else UNSPACED if kind[0] == "L" or char == "\u3007" else 0


def fold_of(char: str) -> str:
    """What is left of it: taken apart, without accents, put together again."""
    barred = BARRED.fullmatch(unicodedata.name(char, ""))
    if char in LETTERS:
        return LETTERS[char]
    apart = unicodedata.normalize("NFKD", char)
    if apart == char and barred:
        return barred[2].lower() if barred[1] == "SMALL" else barred[2]
    kept = "".join(LETTERS.get(c, c) for c in apart if unicodedata.combining(c) not in DROPPED)
    again = unicodedata.normalize("NFC", kept)
    return again if again == char else "".join(fold_of(c) for c in again)


def record_of(char: str) -> tuple[int, int]:
    """(what to add to the code point to lower it, flags) of one character."""
    lowered = char.lower() if char != SIGMA else "\u03c3"
    if len(lowered) != 1:
        assert char == DOTTED_I, f"U+{ord(char):04X} lowers to {len(lowered)} characters: teach unicode.hpp"
        lowered = char
    return ord(lowered) - ord(char), flags_of(char)


def two_stages(indices: list[int], size: int) -> tuple[list[int], list[int]]:
    """Cuts a long list into pages of `size` and keeps each page once: (page of each block, pages)."""
    seen: dict[tuple[int, ...], int] = {}
    first = [seen.setdefault(tuple(indices[at : at + size]), len(seen)) for at in range(0, len(indices), size)]
    return first, [value for page in seen for value in page]


def array(kind: str, name: str, values: list[int]) -> str:
    """One C++ array, filled to lines of 116 characters."""
    lines, line = [], ""
    for value in values:
        piece = f"{value},"
        if len(line) + len(piece) > 116:
            lines.append(line)
            line = ""
        line += piece
    return f"inline constexpr {kind} {name}[{len(values)}] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def classes() -> None:
    """Prints the header of classes and lower case."""
    records: dict[tuple[int, int], int] = {}
    indices = [records.setdefault(record_of(chr(code)), len(records)) for code in range(LAST)]
    first, pages = two_stages(indices, 128)
    assert len(records) < 256
    assert max(first) < 1 << 16
    rows = ",\n".join(f"{{{delta},{flags}}}" for delta, flags in records)
    sys.stdout.write(
        f"// Unicode {unicodedata.unidata_version} as Python {sys.version_info[0]}.{sys.version_info[1]} "
        "sees it: made by tools/make_unicode_tables.py, not by hand.\n"
        "// clang-format off\n#pragma once\n#include <cstdint>\n\nnamespace beamwood::unicode {\n\n"
        f'inline constexpr const char* version = "{unicodedata.unidata_version}";\n'
        f"enum Flag : std::uint8_t {{ word = {WORD}, space = {SPACE}, "
        f"cased = {CASED}, ignorable = {IGNORABLE}, unspaced = {UNSPACED}, mark = {MARK} }};\n"
        "struct Record { std::int32_t lower; std::uint8_t flags; };\n"
        f"inline constexpr Record records[{len(records)}] = {{\n{rows}\n}};\n"
        + array("std::uint16_t", "page_of", first)
        + array("std::uint8_t", "pages", pages)
        + "\n} // namespace beamwood::unicode\n"
    )


def folds() -> None:
    """Prints the header of folds: for each character 0, or where in the pool its length and its code points stand."""
    pool: list[int] = [0]
    places: dict[str, int] = {}
    indices, growth = [], 1
    for code in range(LAST):
        folded = fold_of(chr(code))
        if folded == chr(code):
            indices.append(0)
            continue
        if folded not in places:
            places[folded] = len(pool)
            pool += [len(folded), *map(ord, folded)]
        indices.append(places[folded])
        # Letters of scripts without spaces are written twice, as halves of pairs, with a space behind each pair.
        size = len(folded.encode())
        if any(script_of(c) for c in folded):
            size = 2 * size + len(folded)
        growth = max(growth, -(-size // len(chr(code).encode("utf-8", "surrogatepass"))))
    first, pages = two_stages(indices, 128)
    assert max(first) < 256
    assert len(pool) < 1 << 16
    sys.stdout.write(
        f"// Unicode {unicodedata.unidata_version}: what is left of a character without accents; made by "
        "tools/make_unicode_tables.py, not by hand.\n"
        "// clang-format off\n#pragma once\n#include <cstdint>\n\nnamespace beamwood::unicode {\n\n"
        f"inline constexpr unsigned fold_growth = {growth}; // bytes that come of one byte, at most\n"
        + array("std::uint8_t", "fold_page_of", first)
        + array("std::uint16_t", "fold_pages", pages)
        + array("std::uint32_t", "fold_pool", pool)
        + "\n} // namespace beamwood::unicode\n"
    )


if __name__ == "__main__":
    {"classes": classes, "folds": folds}[sys.argv[1]]()
