// answers.hpp — labels and scores of many queries in, lines of JSON or CSV out: what `beamwood predict` writes.
//
// The law: the bytes do not depend on the number of threads. JSON is valid whatever the strings were (json.hpp), and a
// score reads back as the same float32. A query without an answer has a line too, so that no query is lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/strings.hpp"
#include "beamwood/wire/json.hpp"

namespace beamwood {

// Answers to queries that follow each other; a query's labels end at the first that is negative.
struct Answers {
  const std::int64_t* labels; // rows x k
  const float* scores;        // rows x k
  std::size_t rows, k;
  std::uint64_t first_row;              // the number of the first query
  const StringList* keys;               // null: labels are called by their numbers
  const StringList* names;              // null: nothing is written of names
  const StringList* ids;                // null: queries have none; else one for each row
  bool quote_ids;                       // JSON: ids are strings, not values that are ready
  const float* probabilities = nullptr; // rows x k; null: nothing is written of them
};

namespace detail {

inline std::string_view string_at(const StringList& list, std::size_t i) {
  const auto found = i < list.size() ? list.at(i) : std::nullopt;
  if (!found) throw Damaged{};
  return *found;
}

// A label's key, or its number in `spare`.
inline std::string_view key_of(const Answers& all, std::int64_t label, std::string& spare) {
  if (all.keys) return string_at(*all.keys, static_cast<std::size_t>(label));
  spare.clear();
  json::put_number(static_cast<std::uint64_t>(label), spare);
  return spare;
}

inline void put_json_line(const Answers& all, std::size_t row, std::string& out) {
  const std::int64_t* const labels = all.labels + row * all.k;
  std::size_t count = 0;
  while (count < all.k && labels[count] >= 0) ++count;
  std::string spare;
  out += "{\"row\":";
  json::put_number(all.first_row + row, out);
  if (all.ids) {
    out += ",\"id\":";
    if (all.quote_ids) json::put_string(string_at(*all.ids, row), out);
    else out += string_at(*all.ids, row);
  }
  out += ",\"keys\":[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out += ',';
    json::put_string(key_of(all, labels[i], spare), out);
  }
  if (all.names) {
    out += "],\"names\":[";
    for (std::size_t i = 0; i < count; ++i) {
      if (i) out += ',';
      json::put_string(string_at(*all.names, static_cast<std::size_t>(labels[i])), out);
    }
  }
  out += "],\"scores\":[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out += ',';
    json::put_number(all.scores[row * all.k + i], out);
  }
  if (all.probabilities) {
    out += "],\"probabilities\":[";
    for (std::size_t i = 0; i < count; ++i) {
      if (i) out += ',';
      json::put_number(all.probabilities[row * all.k + i], out);
    }
  }
  out += "]}\n";
}

// A cell, in quotes where it must be (RFC 4180); a tab is quoted too, for files whose cells are parted by tabs.
inline void put_cell(std::string_view text, std::string& out) {
  if (text.find_first_of("\",\t\r\n") == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

inline void put_csv_lines(const Answers& all, std::size_t row, char between, std::string& out) {
  std::string spare;
  for (std::size_t i = 0; i < all.k || i == 0; ++i) {
    const std::int64_t label = i < all.k ? all.labels[row * all.k + i] : -1;
    if (label < 0 && i > 0) return;
    if (all.ids) put_cell(string_at(*all.ids, row), out), out += between;
    json::put_number(all.first_row + row, out);
    out += between;
    if (label >= 0) {
      json::put_number(std::uint64_t{i + 1}, out);
      out += between;
      put_cell(key_of(all, label, spare), out);
      out += between;
      if (all.names) put_cell(string_at(*all.names, static_cast<std::size_t>(label)), out), out += between;
      print_value(all.scores[row * all.k + i], out);
      if (all.probabilities) out += between, print_value(all.probabilities[row * all.k + i], out);
    } else {
      out.append(2u + (all.names != nullptr) + (all.probabilities != nullptr), between);
    }
    out += '\n';
  }
}

} // namespace detail

// One line of JSON for each row; or, where a character stands between cells, a line for each answer.
inline std::vector<std::string> answer_lines(const Answers& all, char between, const Workers& workers) {
  constexpr std::size_t kTask = 256; // rows
  std::vector<std::string> pieces((all.rows + kTask - 1) / kTask);
  parallel_for(workers, pieces.size(), [&](std::size_t task, unsigned) {
    std::string& out = pieces[task];
    out.reserve(kTask * all.k * 32);
    for (std::size_t row = task * kTask; row < std::min(all.rows, (task + 1) * kTask); ++row) {
      if (between) detail::put_csv_lines(all, row, between, out);
      else detail::put_json_line(all, row, out);
    }
  });
  return pieces;
}

} // namespace beamwood
