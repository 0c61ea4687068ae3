// layer_build.hpp — the weights of one layer, or of a bundle of them, in, its chunks out: row by row, and linked to the
// chunks below where there are any.
//
// Every layout is built from sources, which list the weights of a node's children: source.each_weight(parent, siblings,
// visit) calls visit(feature, child, weight), with features rising for each child and children rising for each feature,
// and returns false when it is damaged. Columns (below), chunks (chunk.hpp) and cascades (cascade_read.hpp) are sources.
//
// Without anything below, what comes out of one layer is the chunk layout. Else the rows of a chunk are the features of
// its own weights and of the chunks below it, so a tree is built from the bottom up. Two passes, measure and fill,
// parallel over chunks, the same bytes for any number of threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "beamwood/layout/bundle.hpp"
#include "beamwood/layout/cascade.hpp"
#include "beamwood/layout/feature_numbers.hpp"
#include "beamwood/layout/record.hpp"
#include "beamwood/layout/tree.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// The columns that people give: CSC arrays and, for each place in the tree, the column that goes there.
struct ColumnSource {
  std::span<const std::int64_t> start;
  std::span<const std::int32_t> feature; // rising in each column
  std::span<const float> weight;
  std::span<const std::uint32_t> column_of; // a node

  template <class Visit> bool each_weight(std::uint32_t, const Siblings& siblings, Visit&& visit) const {
    for (std::uint32_t child = 0; child < siblings.width; ++child) {
      const std::uint32_t column = column_of[siblings.begin + child];
      for (std::int64_t i = start[column]; i < start[column + 1]; ++i)
        visit(static_cast<std::uint32_t>(feature[static_cast<std::size_t>(i)]), child,
              weight[static_cast<std::size_t>(i)]);
    }
    return true;
  }
};

// How many words each record takes, in as few bytes as the longest one needs: building a tree keeps this of every row.
class RecordLengths {
public:
  void reset(std::size_t count, std::uint64_t longest) {
    bytes_ = longest < 1u << 8 ? 1 : longest < 1u << 16 ? 2 : 4;
    length_.assign(count * bytes_, 0);
  }
  void set(std::size_t i, std::uint32_t length) noexcept { std::memcpy(length_.data() + i * bytes_, &length, bytes_); }
  std::uint32_t operator[](std::size_t i) const noexcept {
    std::uint32_t length = 0;
    std::memcpy(&length, length_.data() + i * bytes_, bytes_);
    return length;
  }

private:
  static_assert(std::endian::native == std::endian::little);
  std::size_t bytes_ = 1;
  std::vector<std::uint8_t> length_;
};

// The rows of a layer's chunks: their features, rising in each chunk, and how long their records are.
struct LayerRows {
  std::vector<std::uint64_t> row_start, word_start; // chunks + 1 each
  std::vector<std::uint32_t> feature;
  RecordLengths length;
  std::uint64_t longest = 0;             // record
  std::vector<std::uint32_t> page_words; // a chunk: before its records
  std::vector<float> scale;              // a chunk
  std::uint64_t empty = 0;               // rows without weights

  // Calls visit(row, offset) for the rows of a chunk: where the record of each begins in the chunk.
  template <class Visit> void each_offset(std::size_t chunk, Visit&& visit) const {
    std::uint32_t at = page_words[chunk];
    for (std::uint64_t row = row_start[chunk]; row < row_start[chunk + 1]; ++row) {
      visit(row, at);
      at += length[row];
    }
  }

  // The offsets of all rows.
  void offsets(std::span<std::uint32_t> out) const {
    for (std::size_t chunk = 0; chunk + 1 < row_start.size(); ++chunk)
      each_offset(chunk, [&](std::uint64_t row, std::uint32_t at) { out[row] = at; });
  }

  // Where the chunks begin, as CascadeWeights has it.
  void chunk_starts(const Bundle& bundle, const LayerRows* below, std::span<std::uint64_t> out) const;
};

// How often a chunk's offsets turn a page, at most: see Pages.
inline std::uint32_t page_turns(const LayerRows* below, const SubtreeSlots& slots) noexcept {
  std::uint64_t most = 1;
  const Siblings bottom = slots.bottom();
  for (std::uint32_t c = 0; below && c < bottom.width; ++c) {
    const std::size_t node = bottom.begin + c;
    most = std::max(most, below->word_start[node + 1] - below->word_start[node]);
  }
  return static_cast<std::uint32_t>((most - 1) >> 16);
}

inline void LayerRows::chunk_starts(const Bundle& bundle, const LayerRows* below, std::span<std::uint64_t> out) const {
  for (std::uint32_t p = 0; p < bundle.parents(); ++p) {
    SubtreeSlots slots;
    out[p] = word_start[p] << 1 | (bundle.slots(p, slots) && page_turns(below, slots) > 0 ? 1u : 0u);
  }
  out[bundle.parents()] = word_start.back() << 1;
}

template <class Source> class LayerBuilder {
public:
  // below: the rows of the chunks beneath; null where chunks are not linked (the last layer, the chunk layout).
  explicit LayerBuilder(const BundleSource<Source>& source, const LayerRows* below = nullptr,
                        WeightKind kind = WeightKind::f32)
      : source_(source), below_(below), kind_(kind) {}

  LayerBuilder(const LayerShape& shape, const Source& source) : LayerBuilder({{1, {&shape}}, {source}}) {}

  // Finds rows and sizes. False: the source is damaged or a chunk outgrows 32-bit offsets.
  bool measure(LayerRows& rows, const Workers& workers) const {
    const std::size_t parents = source_.bundle.parents();
    rows.row_start.assign(parents + 1, 0);
    rows.word_start.assign(parents + 1, 0);
    rows.page_words.assign(parents, 0);
    rows.scale.assign(parents, 1.0f);
    std::atomic<std::uint64_t> empty{0}, longest{0};
    const bool sound = each_chunk(workers, [&](std::uint32_t parent, const SubtreeSlots& slots, Scratch& scratch) {
      const std::uint64_t pages = Pages::words(page_turns(below_, slots), slots.width());
      std::uint64_t words = pages;
      const RecordForm form = form_of(slots);
      std::uint64_t without = 0, most = 0;
      for (const RowCounts& row : scratch.counts) {
        const std::uint64_t size = form.words(row.weights, row.children);
        words += size;
        most = std::max(most, size);
        without += row.weights == 0;
      }
      empty += without;
      for (std::uint64_t seen = longest; seen < most && !longest.compare_exchange_weak(seen, most);) {
      }
      rows.page_words[parent] = static_cast<std::uint32_t>(pages);
      rows.row_start[parent + 1] = scratch.counts.size();
      rows.word_start[parent + 1] = words;
      rows.scale[parent] = scale_for(scratch.largest);
      return words < kNoRow;
    });
    rows.empty = empty;
    rows.longest = longest;
    for (std::size_t i = 1; i <= parents; ++i) {
      rows.row_start[i] += rows.row_start[i - 1];
      rows.word_start[i] += rows.word_start[i - 1];
    }
    return sound;
  }

  // Fills the words that were measured (and kTailWords more), and the features and places of the rows.
  bool fill(LayerRows& rows, std::span<std::uint32_t> words, const Workers& workers) const {
    rows.feature.resize(rows.row_start.back());
    rows.length.reset(rows.row_start.back(), rows.longest);
    std::fill(words.end() - kTailWords, words.end(), 0u);
    return each_chunk(workers, [&](std::uint32_t parent, const SubtreeSlots& slots, Scratch& scratch) {
      const RecordForm form = form_of(slots, rows.scale[parent]);
      std::uint32_t* const base = words.data() + rows.word_start[parent];
      place_records(parent, form, scratch, rows, base);
      write_offsets(slots, form, scratch, base);
      return write_weights(parent, slots, form, scratch, base);
    });
  }

private:
  // What a row has, counted before anything is written; never changed after.
  struct RowCounts {
    std::uint32_t weights = 0, children = 0;
  };
  // Where a row's record begins in the chunk, and how many of its weights and offsets are written.
  struct RowCursor {
    std::uint32_t at = 0, weights = 0, children = 0;
  };
  struct Scratch {
    FeatureNumbers number;
    std::vector<RowCounts> counts;    // by number
    std::vector<RowCursor> cursor;    // by number
    std::vector<std::uint64_t> order; // feature << 32 | number, rising
    float largest = 0;                // size of a weight of the chunk
  };

  RecordForm form_of(const SubtreeSlots& slots, float scale = 1.0f) const noexcept {
    return {slots.width(), below_ != nullptr, {kind_, scale}};
  }

  // Calls visit(slot, feature, offset) for the rows of all chunks below.
  template <class Visit> void each_row_below(const SubtreeSlots& slots, Visit&& visit) const {
    const Siblings bottom = slots.bottom();
    for (std::uint32_t c = 0; below_ && c < bottom.width; ++c)
      below_->each_offset(bottom.begin + c, [&](std::uint64_t row, std::uint32_t offset) {
        visit(slots.bottom_slot() + c, below_->feature[row], offset);
      });
  }

  // Gives work(parent, slots, scratch) the features of each chunk with their numbers of weights and children.
  template <class Work> bool each_chunk(const Workers& workers, Work&& work) const {
    for (std::size_t step = 0; step < source_.bundle.layers; ++step) {
      const auto& start = source_.bundle.shape[step]->child_start;
      for (std::size_t i = 0; i + 1 < start.size(); ++i)
        if (start[i] > start[i + 1]) return false; // no two chunks may own a node
    }
    std::vector<Scratch> scratch(workers.threads);
    std::atomic<bool> sound{true};
    constexpr std::size_t kRun = 16; // chunks a task: small ones are many
    const std::size_t parents = source_.bundle.parents();
    parallel_for(workers, (parents + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
      Scratch& own = scratch[worker];
      for (std::size_t p = task * kRun; p < std::min(parents, (task + 1) * kRun); ++p) {
        const auto parent = static_cast<std::uint32_t>(p);
        SubtreeSlots slots;
        own.number.clear();
        own.counts.clear();
        own.largest = 0;
        const auto touch = [&own](std::uint32_t f) -> RowCounts& {
          const std::uint32_t n = own.number[f];
          if (n == own.counts.size()) own.counts.emplace_back();
          return own.counts[n];
        };
        bool good = source_.bundle.slots(parent, slots) &&
                    source_.each_weight(parent, slots, [&](std::uint32_t f, std::uint32_t, float weight) {
                      ++touch(f).weights;
                      own.largest = std::max(own.largest, std::fabs(weight));
                    });
        if (good) {
          each_row_below(slots, [&](std::uint32_t, std::uint32_t f, std::uint32_t) { ++touch(f).children; });
          good = work(parent, slots, own);
        }
        if (!good) sound = false;
      }
    });
    return sound;
  }

  // Lays the records of a chunk one behind the other, by feature: empty, wide ones with their counts.
  void place_records(std::uint32_t parent, const RecordForm& form, Scratch& scratch, LayerRows& rows,
                     std::uint32_t* base) const {
    const auto features = scratch.number.features();
    scratch.order.clear();
    for (std::uint32_t n = 0; n < features.size(); ++n) scratch.order.push_back(std::uint64_t{features[n]} << 32 | n);
    std::sort(scratch.order.begin(), scratch.order.end());
    scratch.cursor.assign(features.size(), {});
    std::uint64_t row = rows.row_start[parent];
    std::uint32_t at = rows.page_words[parent];
    for (const std::uint64_t key : scratch.order) {
      const auto number = static_cast<std::uint32_t>(key);
      const RowCounts& counts = scratch.counts[number];
      const std::uint64_t size = form.words(counts.weights, counts.children);
      scratch.cursor[number].at = at;
      rows.feature[row] = static_cast<std::uint32_t>(key >> 32);
      rows.length.set(row++, static_cast<std::uint32_t>(size));
      std::fill_n(base + at, size, 0u);
      if (form.width > kMaskWidth) base[at] = counts.weights | counts.children << 16;
      at += static_cast<std::uint32_t>(size);
    }
  }

  // Weights and offsets are written to places that the counts give, in either order.
  bool write_weights(std::uint32_t parent, const SubtreeSlots& slots, const RecordForm& form, Scratch& scratch,
                     std::uint32_t* base) const {
    return source_.each_weight(parent, slots, [&](std::uint32_t f, std::uint32_t child, float weight) {
      const std::uint32_t number = scratch.number[f];
      const RowCounts& counts = scratch.counts[number];
      RowCursor& cursor = scratch.cursor[number];
      std::uint32_t* const record = base + cursor.at;
      const std::uint32_t nth = cursor.weights++;
      if (form.width <= kMaskWidth) record[0] |= 1u << child;
      else put_sibling(SetForm(form.width), record + 1, counts.weights, nth, child);
      encode(form.code, record + form.weights_at(counts.weights, counts.children), nth, weight);
    });
  }

  void write_offsets(const SubtreeSlots& slots, const RecordForm& form, Scratch& scratch, std::uint32_t* base) const {
    const MaskForm masks(form.width, true);
    const SetForm sets(form.width);
    const std::uint32_t turns = page_turns(below_, slots);
    if (turns > 0) {
      base[0] = turns;
      std::fill_n(base + 1, std::uint64_t{turns} * form.width, kNoRow);
    }
    each_row_below(slots, [&](std::uint32_t slot, std::uint32_t f, std::uint32_t offset) {
      const std::uint32_t number = scratch.number[f];
      const RowCounts& counts = scratch.counts[number];
      RowCursor& cursor = scratch.cursor[number];
      std::uint32_t* const record = base + cursor.at;
      const std::uint32_t nth = cursor.children++;
      if (form.width <= kMaskWidth) {
        record[masks.child_word] |= 1u << (masks.child_lift + slot);
        set_half_word(record, masks.place(weight_words(kind_, counts.weights), nth), offset);
      } else {
        put_sibling(sets, record + 1 + sets.words(counts.weights), counts.children, nth, slot);
        set_half_word(record + form.offsets_at(counts.weights, counts.children), nth, offset);
      }
      for (std::uint32_t page = offset >> 16; page > 0; --page) { // rows rise: the first one on a page turns to it
        std::uint32_t& turn = base[std::uint64_t{turns} * slot + page];
        if (turn != kNoRow) break;
        turn = cursor.at;
      }
    });
  }

  BundleSource<Source> source_;
  const LayerRows* below_;
  WeightKind kind_;
};

} // namespace beamwood
