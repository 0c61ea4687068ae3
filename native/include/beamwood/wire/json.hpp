// Strings and numbers in, JSON out: what a server sends, made without Python.
//
// The law: what is written is valid JSON and valid UTF-8 whatever the bytes were, and a number reads back as the same
// float32. Bytes that are no UTF-8, and lone surrogates, become U+FFFD; numbers that are not finite become null.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "beamwood/text/unicode.hpp"
#include "beamwood/wire/print.hpp"

namespace beamwood::json {

inline bool is_plain(unsigned char byte) noexcept { return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\'; }

// One character that may not stand for itself.
inline void put_escaped(char32_t c, std::string& out) {
  if (c >= 0x20 && c != '"' && c != '\\') {
    char bytes[4];
    out.append(bytes, unicode::encode(c >= 0xD800 && c < 0xE000 ? unicode::replacement : c, bytes));
  } else if (c == '"' || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else {
    constexpr char digits[] = "0123456789abcdef";
    out += "\\u00";
    out += digits[c >> 4];
    out += digits[c & 15];
  }
}

inline void put_string(std::string_view text, std::string& out) {
  out += '"';
  const char *p = text.data(), *const end = p + text.size();
  while (p < end) {
    const char* const run = p;
    while (p < end && is_plain(static_cast<unsigned char>(*p))) ++p;
    out.append(run, p);
    if (p < end) put_escaped(unicode::decode(p, end), out);
  }
  out += '"';
}

inline void put_number(float value, std::string& out) {
  if (std::isfinite(value)) print_value(value, out);
  else out += "null";
}

inline void put_number(std::uint64_t value, std::string& out) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

} // namespace beamwood::json
