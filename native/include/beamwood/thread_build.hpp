// Chunks of all layers in, threaded chunks out: from the bottom up, for a record holds the places of those below it.
//
// A layer is built once the one below it stands: the rows of a chunk are the features of its own weights and of its
// children's chunks. Two passes, measure and fill, parallel over chunks, the same bytes for any number of threads. The
// features and places of a finished layer's rows are kept only until the layer above it is done.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/chunk.hpp"
#include "beamwood/parallel.hpp"
#include "beamwood/thread.hpp"

namespace beamwood {

// The rows of a finished layer, chunk by chunk: what the layer above needs to know of it.
struct ThreadedRows {
  std::vector<std::uint64_t> row_start; // chunks + 1
  std::vector<std::uint64_t> word_start;
  std::vector<std::uint32_t> feature; // rising in each chunk
  std::vector<std::uint32_t> offset;
};

class ThreadedLayerBuilder {
public:
  // below: the rows of the layer beneath; null for the last layer.
  ThreadedLayerBuilder(const LayerShape& shape, const ChunkWeights& chunks, const ThreadedRows* below,
                       std::uint32_t dimension)
      : shape_(shape), chunks_(chunks), below_(below), dimension_(dimension), masks_(below ? 2 : 1) {}

  // Finds rows and sizes. False: the chunks are damaged or a chunk outgrows 32-bit offsets.
  bool measure(ThreadedRows& rows, const Workers& workers) {
    const std::size_t parents = shape_.parents();
    rows.row_start.assign(parents + 1, 0);
    rows.word_start.assign(parents + 1, 0);
    const bool sound = each_chunk(workers, [&](std::uint32_t parent, const Siblings& siblings, Scratch& scratch) {
      std::uint64_t words = 1;
      const bool narrow = narrow_offsets(siblings);
      for (const std::uint32_t f : scratch.touched) words += size_of(siblings.width, scratch.row[f], narrow);
      rows.row_start[parent + 1] = scratch.touched.size();
      rows.word_start[parent + 1] = scratch.touched.empty() ? 0 : words;
      return words <= 0xffffffffu;
    });
    for (std::size_t i = 1; i <= parents; ++i) {
      rows.row_start[i] += rows.row_start[i - 1];
      rows.word_start[i] += rows.word_start[i - 1];
    }
    return sound;
  }

  // Fills the words that were measured, and the features and places of the rows.
  bool fill(ThreadedRows& rows, std::span<std::uint32_t> words, const Workers& workers) {
    rows.feature.resize(rows.row_start.back());
    rows.offset.resize(rows.row_start.back());
    std::fill(words.end() - kTailWords, words.end(), 0u);
    return each_chunk(workers, [&](std::uint32_t parent, const Siblings& siblings, Scratch& scratch) {
      if (scratch.touched.empty()) return true;
      std::sort(scratch.touched.begin(), scratch.touched.end());
      const bool narrow = narrow_offsets(siblings);
      std::uint32_t* const base = words.data() + rows.word_start[parent];
      std::uint64_t row = rows.row_start[parent];
      std::uint32_t at = 1;
      base[0] = narrow ? kNarrowOffsets : 0;
      for (const std::uint32_t f : scratch.touched) {
        rows.feature[row] = f;
        rows.offset[row++] = at;
        Row& own = scratch.row[f];
        own.at = at;
        const std::uint64_t size = size_of(siblings.width, own, narrow);
        std::fill_n(base + at, size, 0u);
        if (siblings.width > kMaskWidth) base[at] = own.weights | own.children << 16;
        at += static_cast<std::uint32_t>(size);
        own.weights = own.children = 0; // from here on: written so far
      }
      return write_weights(parent, siblings, scratch, base) && write_offsets(siblings, scratch, base, narrow);
    });
  }

private:
  struct Row {
    std::uint32_t weights = 0, children = 0, at = 0;
  };
  struct Scratch {
    std::vector<Row> row; // a feature
    std::vector<std::uint32_t> touched;
  };

  std::uint64_t size_of(std::uint32_t width, const Row& row, bool narrow) const noexcept {
    return record_words(width, masks_, row.weights, row.children) + offset_words(narrow, row.children);
  }

  // 16-bit offsets reach into every child's chunk.
  bool narrow_offsets(const Siblings& siblings) const noexcept {
    for (std::uint32_t c = 0; below_ && c < siblings.width; ++c) {
      const std::size_t node = siblings.begin + c;
      if (below_->word_start[node + 1] - below_->word_start[node] > 0xffffu) return false;
    }
    return true;
  }

  // Calls visit(child, feature, offset) for the rows of all children's chunks.
  template <class Visit> void each_child_row(const Siblings& siblings, Visit&& visit) const {
    for (std::uint32_t c = 0; below_ && c < siblings.width; ++c)
      for (std::uint64_t i = below_->row_start[siblings.begin + c]; i < below_->row_start[siblings.begin + c + 1]; ++i)
        visit(c, below_->feature[i], below_->offset[i]);
  }

  template <class Visit> bool each_own_weight(std::uint32_t parent, const Siblings& siblings, Visit&& visit) const {
    Chunk chunk;
    if (!chunks_.at(parent, chunk)) return false;
    for (std::uint32_t row = 0; row < chunk.support.count; ++row) {
      const std::uint32_t f = chunk.support.feature[row];
      if (f >= dimension_) return false;
      bool inside = true;
      if (!each_weight(chunk.words, chunk.word_count, chunk.offset[row], siblings.width, 1,
                       [&](std::uint32_t child, float weight) {
                         if (child < siblings.width) visit(f, child, weight);
                         else inside = false;
                       }) ||
          !inside)
        return false;
    }
    return true;
  }

  // Gives work(parent, siblings, scratch) the features of each chunk with their numbers of weights and children.
  template <class Work> bool each_chunk(const Workers& workers, Work&& work) {
    for (std::size_t i = 0; i + 1 < shape_.child_start.size(); ++i)
      if (shape_.child_start[i] > shape_.child_start[i + 1]) return false; // no two chunks may own a node
    std::vector<Scratch> scratch(workers.threads);
    std::atomic<bool> sound{true};
    constexpr std::size_t kRun = 16;
    const std::size_t parents = shape_.parents();
    parallel_for(workers, (parents + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      Scratch& own = scratch[worker];
      own.row.resize(dimension_);
      for (std::size_t p = task * kRun; p < std::min(parents, (task + 1) * kRun); ++p) {
        const auto parent = static_cast<std::uint32_t>(p);
        Siblings siblings;
        own.touched.clear();
        const auto touch = [&own](std::uint32_t f) -> Row& {
          Row& row = own.row[f];
          if (row.weights == 0 && row.children == 0) own.touched.push_back(f);
          return row;
        };
        bool good =
            shape_.children(parent, siblings) &&
            each_own_weight(parent, siblings, [&](std::uint32_t f, std::uint32_t, float) { ++touch(f).weights; });
        if (good) {
          each_child_row(siblings, [&](std::uint32_t, std::uint32_t f, std::uint32_t) { ++touch(f).children; });
          good = work(parent, siblings, own);
        }
        for (const std::uint32_t f : own.touched) own.row[f] = {};
        if (!good) sound = false;
      }
    });
    return sound;
  }

  bool write_weights(std::uint32_t parent, const Siblings& siblings, Scratch& scratch, std::uint32_t* base) const {
    return each_own_weight(parent, siblings, [&](std::uint32_t f, std::uint32_t child, float weight) {
      Row& own = scratch.row[f];
      std::uint32_t* const record = base + own.at;
      const auto bits = std::bit_cast<std::uint32_t>(weight);
      const std::uint32_t nth = own.weights++;
      if (siblings.width <= kMaskWidth) {
        record[0] |= 1u << child;
        record[masks_ + nth] = bits;
      } else {
        const std::uint64_t n = record[0] & 0xffffu, m = record[0] >> 16;
        set_half_word(record + 1, nth, child);
        record[1 + (n + 1) / 2 + (m + 1) / 2 + nth] = bits;
      }
    });
  }

  // Weights come first in a record, so this follows write_weights: own.weights is complete.
  bool write_offsets(const Siblings& siblings, Scratch& scratch, std::uint32_t* base, bool narrow) const {
    each_child_row(siblings, [&](std::uint32_t child, std::uint32_t f, std::uint32_t offset) {
      Row& own = scratch.row[f];
      std::uint32_t* const record = base + own.at;
      const std::uint32_t nth = own.children++;
      std::uint32_t* offsets = record + masks_ + own.weights;
      if (siblings.width <= kMaskWidth) {
        record[1] |= 1u << child;
      } else {
        const std::uint64_t n = record[0] & 0xffffu, m = record[0] >> 16;
        set_half_word(record + 1 + (n + 1) / 2, nth, child);
        offsets = record + record_words(siblings.width, masks_, n, m);
      }
      if (narrow) set_half_word(offsets, nth, offset);
      else offsets[nth] = offset;
    });
    return true;
  }

  const LayerShape& shape_;
  const ChunkWeights& chunks_;
  const ThreadedRows* below_;
  std::uint32_t dimension_;
  std::uint32_t masks_;
};

} // namespace beamwood
