"""The running Python's Unicode tables in, native/include/beamwood/unicode_tables.hpp out.

    python tools/make_unicode_tables.py > native/include/beamwood/unicode_tables.hpp

The output is committed: every build then splits words the same way, whatever Python runs it. What is asked of
Python is what scikit-learn asks: `re`'s \\w and `str.split`'s white space for one character, and `str.lower`.
"""

from __future__ import annotations

import sys
import unicodedata

WORD, SPACE, CASED, IGNORABLE = 1, 2, 4, 8
SIGMA, FINAL_SIGMA, DOTTED_I = "\u03a3", "\u03c2", "\u0130"
LAST = 0x110000


def flags_of(char: str) -> int:
    """The classes of one character; those of case show in what becomes of a capital sigma beside it."""
    word = WORD if char.isalnum() or char == "_" else 0
    space = SPACE if char.isspace() else 0
    if (char + SIGMA).lower().endswith(FINAL_SIGMA):
        return word | space | CASED
    if ("A" + char + SIGMA).lower().endswith(FINAL_SIGMA):
        return word | space | IGNORABLE
    return word | space


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


def main() -> None:
    """Prints the header."""
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
        f"cased = {CASED}, ignorable = {IGNORABLE} }};\n"
        "struct Record { std::int32_t lower; std::uint8_t flags; };\n"
        f"inline constexpr Record records[{len(records)}] = {{\n{rows}\n}};\n"
        + array("std::uint16_t", "page_of", first)
        + array("std::uint8_t", "pages", pages)
        + "\n} // namespace beamwood::unicode\n"
    )


if __name__ == "__main__":
    main()
