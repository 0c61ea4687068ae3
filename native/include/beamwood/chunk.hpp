// Layout `chunk` (MSCM): the weights of all children of one parent, row by row. Views, and the builder from columns.
//
// A chunk is a sparse set of rows, one a feature; a row holds the weights of the siblings that have that feature, in
// one record (record.hpp), so that a row costs one or two cache lines wherever it lies. For each row there is its
// feature (rising inside a chunk: the support that matchers search) and the offset of its record from the start of the
// chunk's words.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "beamwood/match_hash.hpp"
#include "beamwood/parallel.hpp"
#include "beamwood/record.hpp"
#include "beamwood/tree.hpp"

namespace beamwood {

struct Chunk {
  Support support;
  const std::uint32_t* offset; // of each row's record, in words
  const std::uint32_t* words;
  std::uint64_t word_count;
};

struct ChunkWeights {
  std::span<const std::uint64_t> row_start;  // parents + 1: where each chunk's rows begin
  std::span<const std::uint64_t> word_start; // parents + 1: where each chunk's words begin
  std::span<const std::uint32_t> feature;    // a row
  std::span<const std::uint32_t> offset;     // a row
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> index; // the hash indices of all chunks; empty when there are none

  bool has_index() const noexcept { return !index.empty(); }

  // False when the offsets leave the arrays.
  bool at(std::uint32_t parent, Chunk& out) const noexcept {
    const std::uint64_t row = row_start[parent], row_end = row_start[parent + 1];
    const std::uint64_t word = word_start[parent], word_end = word_start[parent + 1];
    const std::uint64_t rows = row_end - row;
    if (row > row_end || row_end > feature.size() || rows > 0xffffffffu) return false;
    if (word > word_end || word_end > words.size() - kTailWords) return false;
    out = {{feature.data() + row, static_cast<std::uint32_t>(rows), nullptr, 0},
           offset.data() + row,
           words.data() + word,
           word_end - word};
    return !has_index() || attach_index(index, row, row_end, parent, out.support);
  }
};

// The columns a layer is built from: CSC arrays and, for each place in the tree, the column that goes there.
struct Columns {
  std::span<const std::int64_t> start;
  std::span<const std::int32_t> feature; // rising in each column
  std::span<const float> weight;
  std::span<const std::uint32_t> column_of; // a node
};

// Counts, then fills, the chunk arrays of one layer. Two passes over the columns, parallel over chunks; memory beyond
// the result: two numbers a feature for each worker.
class ChunkBuilder {
public:
  ChunkBuilder(std::span<const std::uint32_t> child_start, const Columns& columns, std::uint32_t dimension)
      : child_start_(child_start), columns_(columns), dimension_(dimension) {}

  // Fills row_start and word_start (parents + 1 each) with offsets.
  void measure(std::span<std::uint64_t> row_start, std::span<std::uint64_t> word_start, const Workers& workers) {
    each_chunk(workers, [&](std::size_t parent, Scratch& scratch) {
      std::uint64_t words = 0;
      const std::uint32_t width = width_of(parent);
      for (const std::uint32_t feature : scratch.touched) words += record_words(width, 1, scratch.count[feature]);
      row_start[parent + 1] = scratch.touched.size();
      word_start[parent + 1] = words;
    });
    row_start[0] = word_start[0] = 0;
    for (std::size_t i = 1; i < row_start.size(); ++i) {
      row_start[i] += row_start[i - 1];
      word_start[i] += word_start[i - 1];
    }
  }

  // A chunk's record offsets are 32 bits: true when every chunk stays below that.
  static bool fits(std::span<const std::uint64_t> word_start) noexcept {
    for (std::size_t i = 1; i < word_start.size(); ++i)
      if (word_start[i] - word_start[i - 1] > 0xffffffffu) return false;
    return true;
  }

  void fill(std::span<const std::uint64_t> row_start, std::span<const std::uint64_t> word_start,
            std::span<std::uint32_t> feature, std::span<std::uint32_t> offset, std::span<std::uint32_t> words,
            const Workers& workers) {
    each_chunk(workers, [&](std::size_t parent, Scratch& scratch) {
      std::sort(scratch.touched.begin(), scratch.touched.end());
      const std::uint32_t width = width_of(parent);
      std::uint64_t row = row_start[parent];
      std::uint32_t at = 0;
      std::uint32_t* const base = words.data() + word_start[parent];
      for (const std::uint32_t f : scratch.touched) {
        feature[row] = f;
        offset[row++] = at;
        scratch.place[f] = at;
        const std::uint32_t n = scratch.count[f];
        base[at] = width <= kMaskWidth ? 0 : n;
        at += static_cast<std::uint32_t>(record_words(width, 1, n));
        scratch.count[f] = 0; // from here on: weights written so far
      }
      for (std::uint32_t child = 0; child < width; ++child)
        each_entry(child_start_[parent] + child, [&](std::uint32_t f, float weight, std::size_t) {
          put(base + scratch.place[f], width, child, scratch.count[f]++, weight);
        });
    });
    std::fill(words.end() - kTailWords, words.end(), 0u);
  }

private:
  struct Scratch {
    std::vector<std::uint32_t> count, place, touched;
  };

  std::uint32_t width_of(std::size_t parent) const noexcept { return child_start_[parent + 1] - child_start_[parent]; }

  template <class Visit> void each_entry(std::size_t node, Visit&& visit) const {
    const std::uint32_t column = columns_.column_of[node];
    for (auto i = static_cast<std::size_t>(columns_.start[column]);
         i < static_cast<std::size_t>(columns_.start[column + 1]); ++i)
      visit(static_cast<std::uint32_t>(columns_.feature[i]), columns_.weight[i], i);
  }

  // Gives work(parent, scratch) the features of each chunk with their number of weights, and cleans up behind it.
  template <class Work> void each_chunk(const Workers& workers, Work&& work) {
    std::vector<Scratch> scratch(workers.threads);
    constexpr std::size_t kRun = 16; // chunks a task: small ones are many
    const std::size_t parents = child_start_.size() - 1;
    parallel_for(workers, (parents + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      Scratch& own = scratch[worker];
      own.count.resize(dimension_, 0);
      own.place.resize(dimension_);
      for (std::size_t parent = task * kRun; parent < std::min(parents, (task + 1) * kRun); ++parent) {
        own.touched.clear();
        for (std::size_t node = child_start_[parent]; node < child_start_[parent + 1]; ++node)
          each_entry(node, [&](std::uint32_t f, float, std::size_t) {
            if (own.count[f]++ == 0) own.touched.push_back(f);
          });
        work(parent, own);
        for (const std::uint32_t f : own.touched) own.count[f] = 0;
      }
    });
  }

  static void put(std::uint32_t* record, std::uint32_t width, std::uint32_t child, std::uint32_t nth, float weight) {
    const auto bits = std::bit_cast<std::uint32_t>(weight);
    if (width <= kMaskWidth) {
      record[0] |= 1u << child;
      record[1 + nth] = bits;
      return;
    }
    const std::uint32_t n = record[0];
    set_half_word(record + 1, nth, child);
    record[1 + (n + 1) / 2 + nth] = bits;
  }

  std::span<const std::uint32_t> child_start_;
  Columns columns_;
  std::uint32_t dimension_;
};

} // namespace beamwood
