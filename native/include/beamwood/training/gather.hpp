// A parent in (which rows reach it, which rows are positive for which child). Out: its rows copied side by side, with
// the features they use renumbered to a small range of their own.
//
// Siblings share their rows. Gathering them once per parent keeps the solver's weight vectors as small as the features
// that really occur, and nothing of the size of the whole feature space is cleared or scanned per node: the map from
// feature to local number belongs to a worker, and only the entries that were used are cleared.
//
// Local numbers fall with how many of the rows have a feature, so that what is read most lies together. Features that
// only one row has come last and are no entries: the solver needs no weight for them while it works.
//
// The law: entries of a row lie by rising feature id, and rows in an order drawn from (seed, parent) only.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "beamwood/training/dice.hpp"

namespace beamwood {

// A sparse matrix by rows (or by columns) that somebody else owns: entries of line i at start[i] .. start[i+1].
struct SparseView {
  std::span<const std::int64_t> start;
  std::span<const std::int32_t> index;
  std::span<const float> value; // may be empty: every entry is 1

  std::size_t lines() const noexcept { return start.size() - 1; }
  std::span<const std::int32_t> line(std::size_t i) const noexcept {
    return index.subspan(static_cast<std::size_t>(start[i]), size_of(i));
  }
  std::size_t size_of(std::size_t i) const noexcept { return static_cast<std::size_t>(start[i + 1] - start[i]); }
};

// One non-zero of a gathered row.
struct Entry {
  std::uint32_t feature;
  float value;
};

// The rows of one parent, ready for the solver.
struct Gathered {
  // A feature that only one row has, and its value there.
  struct Lone {
    std::uint32_t row;
    float value;
  };
  std::vector<std::uint32_t> feature; // ids, rising
  std::vector<std::uint32_t> number;  // of each feature: local number
  std::vector<Lone> lone;             // features numbered shared, shared + 1, …
  std::size_t shared = 0;             // how many features have several rows
  std::vector<std::int32_t> row;      // local row -> row of X
  std::vector<std::uint8_t> reaches;  // local row -> 1 if it reaches the parent, 0 if it is only some child's positive
  std::vector<std::uint64_t> start;
  std::vector<Entry> entry;

  std::size_t rows() const noexcept { return row.size(); }
};

// Scratch of one worker: two maps that stay blank between parents.
class Gatherer {
public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void gather(const SparseView& x, std::size_t features, std::span<const std::int32_t> reaching,
              std::span<const std::span<const std::int32_t>> positives, std::uint64_t seed, Gathered& out) {
    local_feature_.resize(features, 0);
    local_row_.resize(x.lines(), kNone);
    collect_rows(reaching, positives, seed, out);
    number_features(x, out);
    copy_entries(x, out);
    for (const std::uint32_t f : out.feature) local_feature_[f] = 0;
  }

  // Valid between gather and forget.
  std::uint32_t local_row(std::int32_t row) const noexcept { return local_row_[static_cast<std::size_t>(row)]; }
  void forget(const Gathered& rows) noexcept {
    for (const std::int32_t r : rows.row) local_row_[static_cast<std::size_t>(r)] = kNone;
  }

private:
  void collect_rows(std::span<const std::int32_t> reaching, std::span<const std::span<const std::int32_t>> positives,
                    std::uint64_t seed, Gathered& out) {
    out.row.assign(reaching.begin(), reaching.end());
    for (const std::int32_t r : reaching) local_row_[static_cast<std::size_t>(r)] = 1;
    for (const auto child : positives) {
      for (const std::int32_t r : child) {
        if (local_row_[static_cast<std::size_t>(r)] != kNone) continue;
        local_row_[static_cast<std::size_t>(r)] = 0;
        out.row.push_back(r);
      }
    }
    Dice(seed).shuffle(std::span(out.row));
    out.reaches.resize(out.row.size());
    for (std::size_t i = 0; i < out.row.size(); ++i) {
      std::uint32_t& mark = local_row_[static_cast<std::size_t>(out.row[i])];
      out.reaches[i] = static_cast<std::uint8_t>(mark);
      mark = static_cast<std::uint32_t>(i);
    }
  }

  // local_feature_ counts the rows of each feature first, and holds its number afterwards.
  void number_features(const SparseView& x, Gathered& out) {
    out.feature.clear();
    for (const std::int32_t r : out.row) {
      for (const std::int32_t f : x.line(static_cast<std::size_t>(r))) {
        if (++local_feature_[static_cast<std::size_t>(f)] == 1) out.feature.push_back(static_cast<std::uint32_t>(f));
      }
    }
    std::sort(out.feature.begin(), out.feature.end());
    out.number.resize(out.feature.size());
    std::iota(out.number.begin(), out.number.end(), 0u);
    const auto rows_of = [&](std::uint32_t i) { return local_feature_[out.feature[i]]; };
    by_rows_.assign(out.number.begin(), out.number.end());
    const auto lone = std::stable_partition(by_rows_.begin(), by_rows_.end(), [&](auto i) { return rows_of(i) > 1; });
    std::stable_sort(by_rows_.begin(), lone, [&](auto a, auto b) { return rows_of(a) > rows_of(b); });
    out.shared = static_cast<std::size_t>(lone - by_rows_.begin());
    for (std::size_t i = 0; i < by_rows_.size(); ++i) out.number[by_rows_[i]] = static_cast<std::uint32_t>(i);
    for (std::size_t i = 0; i < out.number.size(); ++i) local_feature_[out.feature[i]] = out.number[i];
  }

  void copy_entries(const SparseView& x, Gathered& out) {
    out.start.resize(out.row.size() + 1);
    out.start[0] = 0;
    std::size_t most = 0;
    for (const std::int32_t r : out.row) most += x.size_of(static_cast<std::size_t>(r));
    out.lone.resize(out.feature.size() - out.shared);
    out.entry.resize(most - out.lone.size());
    Entry* to = out.entry.data();
    for (std::size_t i = 0; i < out.row.size(); ++i) {
      const auto first = static_cast<std::size_t>(x.start[static_cast<std::size_t>(out.row[i])]);
      const auto last = static_cast<std::size_t>(x.start[static_cast<std::size_t>(out.row[i]) + 1]);
      for (std::size_t e = first; e < last; ++e) {
        const std::uint32_t number = local_feature_[static_cast<std::size_t>(x.index[e])];
        if (number < out.shared) {
          *to++ = {number, x.value[e]};
        } else {
          out.lone[number - out.shared] = {static_cast<std::uint32_t>(i), x.value[e]};
        }
      }
      out.start[i + 1] = static_cast<std::uint64_t>(to - out.entry.data());
    }
  }

  std::vector<std::uint32_t> local_feature_, local_row_, by_rows_;
};

} // namespace beamwood
