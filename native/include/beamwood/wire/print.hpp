// Sparse rows in, lines of text "l,l f:v f:v" out: the inverse of parse.hpp.
//
// The law: what is printed reads back as the same bits. Values take the fewest digits for which that is so.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "beamwood/wire/parse.hpp"

namespace beamwood {

inline void print_value(float value, std::string& out) {
  char text[64];
  char* end = std::to_chars(text, text + 60, value).ptr;
  *end = '\n';
  const char* p = text;
  double read = 0;
  const bool same = detail::parse_number(p, end, read) && static_cast<float>(read) == value;
  if (!same) end = std::to_chars(text, text + 60, static_cast<double>(value)).ptr;
  out.append(text, end);
}

// One line; ids and values belong to each other.
inline void print_row(std::span<const std::int32_t> labels, std::span<const std::int32_t> ids,
                      std::span<const float> values, std::string& out) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(labels[i]);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out += ' ';
    out += std::to_string(ids[i]);
    out += ':';
    print_value(values[i], out);
  }
  out += '\n';
}

} // namespace beamwood
