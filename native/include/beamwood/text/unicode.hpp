// UTF-8 in, lower-cased code points and their classes out: what Python's str.lower(), re's \w and str.split() say.
//
// The law: for every str, the code points and classes are Python's own. Tables come from the Unicode version named in
// unicode_tables.hpp; a Python with newer tables differs only in characters that were unassigned in that version.
// Lone surrogates may come in as three bytes (Python's "surrogatepass") and are characters like any other. A byte
// that is no UTF-8 at all reads as U+FFFD, so no input can lead outside the text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "beamwood/text/fold_tables.hpp"
#include "beamwood/text/unicode_tables.hpp"

namespace beamwood::unicode {

inline constexpr char32_t replacement = 0xFFFD, capital_sigma = 0x3A3, dotted_i = 0x130;

inline const Record& record_of(char32_t c) noexcept {
  return records[pages[(static_cast<std::size_t>(page_of[c >> 7]) << 7) | (c & 127u)]];
}
inline bool is(char32_t c, Flag flag) noexcept { return (record_of(c).flags & flag) != 0; }

// Reads the code point that starts at p (p < end) and moves p behind it.
inline char32_t decode(const char*& p, const char* end) noexcept {
  const auto byte = [&](std::ptrdiff_t i) { return static_cast<unsigned char>(p[i]); };
  const auto follows = [&](std::ptrdiff_t i) { return i < end - p && (byte(i) & 0xC0u) == 0x80u; };
  const char32_t lead = byte(0);
  if (lead < 0x80) return ++p, lead;
  if (lead >= 0xC2 && lead < 0xE0 && follows(1)) {
    const char32_t c = (lead & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    return p += 2, c;
  }
  if ((lead & 0xF0u) == 0xE0 && follows(1) && follows(2)) {
    const char32_t c = (lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (c >= 0x800) return p += 3, c;
  }
  if (lead >= 0xF0 && lead < 0xF5 && follows(1) && follows(2) && follows(3)) {
    const char32_t c = (lead & 7u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (c >= 0x10000 && c < 0x110000) return p += 4, c;
  }
  return ++p, replacement;
}

// Writes c as one to four bytes and returns the place behind them.
inline char* encode(char32_t c, char* out) noexcept {
  const auto put = [&](char32_t byte) { *out++ = static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0u | c >> 6), put(0x80u | (c & 0x3Fu));
  } else if (c < 0x10000) {
    put(0xE0u | c >> 12), put(0x80u | (c >> 6 & 0x3Fu)), put(0x80u | (c & 0x3Fu));
  } else {
    put(0xF0u | c >> 18), put(0x80u | (c >> 12 & 0x3Fu)), put(0x80u | (c >> 6 & 0x3Fu)), put(0x80u | (c & 0x3Fu));
  }
  return out;
}

// A capital sigma at [at, after) of text is final when a cased letter stands before it and none behind it, looking
// past characters that case ignores (accents, apostrophes). Each run of such characters is walked at most twice.
inline bool is_final_sigma(std::string_view text, const char* at, const char* after) noexcept {
  const char* begin = text.data();
  const char* end = begin + text.size();
  bool before = false;
  while (at != begin) {
    const char* const lowest = at - begin > 4 ? at - 4 : begin; // a character has at most four bytes
    do --at;
    while (at != lowest && (static_cast<unsigned char>(*at) & 0xC0u) == 0x80u);
    const char* p = at;
    const auto flags = record_of(decode(p, end)).flags;
    if (flags & ignorable) continue;
    before = (flags & cased) != 0;
    break;
  }
  if (!before) return false;
  while (after != end) {
    const auto flags = record_of(decode(after, end)).flags;
    if (!(flags & ignorable)) return !(flags & cased);
  }
  return true;
}

// Reads one character at p and calls each() with its lower-cased code point (two for a capital I with a dot).
template <class Each> void lower_one(std::string_view text, const char*& p, Each&& each) {
  const char* at = p;
  const char32_t c = decode(p, text.data() + text.size());
  if (c == dotted_i) {
    each(U'i'), each(char32_t{0x307});
  } else if (c == capital_sigma) {
    each(is_final_sigma(text, at, p) ? char32_t{0x3C2} : char32_t{0x3C3});
  } else {
    each(static_cast<char32_t>(static_cast<std::int32_t>(c) + record_of(c).lower));
  }
}

// Calls each() with what is left of a code point without accents: nothing for most marks, several for a ligature.
template <class Each> void fold_one(char32_t c, bool lowercase, Each&& each) {
  const std::size_t at = c < 0x80 ? 0 : fold_pages[(static_cast<std::size_t>(fold_page_of[c >> 7]) << 7) | (c & 127u)];
  if (at == 0) return each(c);
  for (std::size_t i = at + 1; i <= at + fold_pool[at]; ++i) {
    const char32_t part = fold_pool[i];
    each(lowercase ? static_cast<char32_t>(static_cast<std::int32_t>(part) + record_of(part).lower) : part);
  }
}

} // namespace beamwood::unicode
