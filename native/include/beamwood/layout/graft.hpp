// graft.hpp — chunks of a cascade layer and further siblings in, the chunks that have both out: labels that come later.
//
// Law: what comes out is, word for word, what LayerBuilder makes of all siblings, if the further ones come behind those
// that are there. Old weights are copied as they lie. A record's places in chunks below are copied too, where those
// are as they were; else each child's records are counted through, for they lie in the order of the rows here. So
// nothing is read of layers below the last one that grows.
//
// Layers from the bottom up, as they are built; each in two passes, measure and fill. Bundles of several layers are
// not for this: they are built anew.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "beamwood/layout/cascade_read.hpp"
#include "beamwood/layout/layer_build.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// The rows of a grown layer's chunks (without their features), and the features that each chunk did not have before.
struct GrownRows {
  LayerRows rows;
  std::vector<std::vector<std::uint32_t>> added; // a chunk: rising
};

class LayerGrafter {
public:
  // old, features: the layer as it is. shape: as it becomes; old_chunk: for each chunk of that the old one, or kNoRow.
  // more: the weights of further siblings, by their place in the new layer. below: the layer beneath, if it grew too.
  LayerGrafter(const CascadeSource& old, const LayerShape& shape, std::span<const std::uint32_t> old_chunk,
               const ColumnSource& more, const CascadeWeights* chunks_below, const GrownRows* below)
      : old_(old), shape_(shape), old_chunk_(old_chunk), more_(more), chunks_below_(chunks_below), below_(below) {}

  // Finds rows and sizes. False: the cascade is damaged, or a chunk outgrows 32-bit offsets.
  bool measure(GrownRows& grown, const Workers& workers) {
    LayerRows& rows = grown.rows;
    const std::size_t parents = shape_.parents();
    rows.row_start.assign(parents + 1, 0);
    rows.word_start.assign(parents + 1, 0);
    rows.page_words.assign(parents, 0);
    rows.scale.assign(parents, 1.0f);
    grown.added.assign(parents, {});
    extra_.assign(parents, {});
    std::atomic<std::uint64_t> longest{0};
    const bool sound = each_chunk(workers, [&](std::uint32_t parent, const Chunk& chunk) {
      gather(chunk, extra_[parent]);
      std::uint64_t words = Pages::words(turns(chunk), chunk.now.width), most = 0, count = 0;
      rows.page_words[parent] = static_cast<std::uint32_t>(words);
      const bool good = each_row(chunk, extra_[parent], [&](std::uint32_t f, const Row& row) {
        const std::uint64_t size = form(chunk.now.width).words(row.weights(), row.links());
        words += size;
        most = std::max(most, size);
        ++count;
        if (!row.old) grown.added[parent].push_back(f);
        return true;
      });
      for (std::uint64_t seen = longest; seen < most && !longest.compare_exchange_weak(seen, most);) {
      }
      rows.row_start[parent + 1] = count;
      rows.word_start[parent + 1] = words;
      return good && words < kNoRow;
    });
    rows.longest = longest;
    for (std::size_t i = 1; i <= parents; ++i) {
      rows.row_start[i] += rows.row_start[i - 1];
      rows.word_start[i] += rows.word_start[i - 1];
    }
    return sound;
  }

  // Where the chunks begin, as CascadeWeights has it.
  void chunk_starts(const GrownRows& grown, std::span<std::uint64_t> out) const {
    for (std::uint32_t p = 0; p < shape_.parents(); ++p) {
      Chunk chunk;
      const bool paged = chunk_at(p, chunk) && turns(chunk) > 0;
      out[p] = grown.rows.word_start[p] << 1 | (paged ? 1u : 0u);
    }
    out[shape_.parents()] = grown.rows.word_start.back() << 1;
  }

  // Fills the words that were measured (and kTailWords more). features: of the rows, if asked for; may be empty.
  bool fill(GrownRows& grown, std::span<std::uint32_t> words, std::span<std::uint32_t> features,
            const Workers& workers) const {
    LayerRows& rows = grown.rows;
    rows.length.reset(rows.row_start.back(), rows.longest);
    std::fill(words.end() - kTailWords, words.end(), 0u);
    return each_chunk(workers, [&](std::uint32_t parent, const Chunk& chunk) {
      std::uint32_t* const base = words.data() + rows.word_start[parent];
      Links links(*this, chunk, base);
      std::uint64_t number = rows.row_start[parent];
      std::uint32_t at = rows.page_words[parent];
      return each_row(chunk, extra_[parent], [&](std::uint32_t f, const Row& row) {
        const auto size = form(chunk.now.width).words(row.weights(), row.links());
        if (number >= rows.row_start[parent + 1] || rows.word_start[parent] + at + size > rows.word_start[parent + 1])
          return false; // not what was measured: the file was changed meanwhile
        std::fill_n(base + at, size, 0u);
        if (!write(chunk, row, links, base, at)) return false;
        if (!features.empty()) features[number] = f;
        rows.length.set(number++, static_cast<std::uint32_t>(size));
        at += static_cast<std::uint32_t>(size);
        return true;
      });
    });
  }

private:
  // A weight of a further sibling, or a child whose chunk has a new row: weights first, siblings rising.
  struct Extra {
    std::uint32_t feature;
    bool link;
    std::uint32_t slot;
    float weight;
    auto key() const noexcept { return std::tuple(feature, link, slot); }
  };
  // One chunk before and after.
  struct Chunk {
    Siblings was{0, 0}, now{0, 0};
    std::uint32_t number = kNoRow; // the old one
    CascadeChunk words{};
    Pages pages{};
  };
  // A row of it: its old record, if it had one, and what is new.
  struct Row {
    const std::uint32_t* old = nullptr;
    std::uint32_t at = 0, old_weights = 0, old_links = 0; // where it lay in the chunk, and what it had
    std::span<const Extra> more_weights, more_links;
    std::uint64_t weights() const noexcept { return old_weights + more_weights.size(); }
    std::uint64_t links() const noexcept { return old_links + more_links.size(); }
  };

  // Where the rows of the chunks below lie, asked for row by row.
  struct Links {
    Links(const LayerGrafter& layer, const Chunk& chunk, std::uint32_t* chunk_words)
        : base(chunk_words), turns(layer.turns(chunk)), children(layer.below_ ? chunk.now.width : 0) {
      for (std::uint32_t c = 0; c < children.size(); ++c) {
        const std::size_t node = chunk.now.begin + c;
        children[c] = {layer.below_->rows.row_start[node], layer.below_->rows.row_start[node + 1],
                       layer.below_->rows.page_words[node]};
      }
      if (turns > 0) {
        base[0] = turns;
        std::fill_n(base + 1, std::uint64_t{turns} * chunk.now.width, kNoRow);
      }
    }
    struct Child {
      std::uint64_t row = 0, end = 0;
      std::uint32_t at = 0;
    };
    std::uint32_t* base;
    std::uint32_t turns;
    std::vector<Child> children;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found; // slot and place, of one row
  };

  RecordForm form(std::uint32_t width) const noexcept { return {width, old_.inner, {WeightKind::f32, 1.0f}}; }

  bool chunk_at(std::uint32_t parent, Chunk& out) const noexcept {
    out = {};
    if (!shape_.children(parent, out.now)) return false;
    out.number = old_chunk_[parent];
    if (out.number == kNoRow) return out.now.width == 0; // a leaf that came has nothing below it
    return out.number < old_.bundle.parents() && old_.bundle.shape[0]->children(out.number, out.was) &&
           out.was.width <= out.now.width && old_.cascade.at(out.number, out.words) &&
           (out.was.width == 0 || out.words.pages(out.was.width, out.pages));
  }

  template <class Work> bool each_chunk(const Workers& workers, Work&& work) const {
    std::atomic<bool> sound{true};
    constexpr std::size_t kRun = 4; // chunks a task
    const std::size_t parents = shape_.parents();
    parallel_for(workers, (parents + kRun - 1) / kRun, [&](std::size_t task, unsigned) {
      for (std::size_t p = task * kRun; p < std::min(parents, (task + 1) * kRun); ++p) {
        Chunk chunk;
        const auto parent = static_cast<std::uint32_t>(p);
        if (!chunk_at(parent, chunk) || (chunk.number != kNoRow && !work(parent, chunk))) sound = false;
      }
    });
    return sound;
  }

  // How often places in the chunks below turn a page: see Pages.
  std::uint32_t turns(const Chunk& chunk) const noexcept {
    std::uint64_t most = 1;
    for (std::uint32_t c = 0; below_ && c < chunk.now.width; ++c) {
      const auto& start = below_->rows.word_start;
      most = std::max(most, start[chunk.now.begin + c + 1] - start[chunk.now.begin + c]);
    }
    for (std::uint32_t c = 0; !below_ && chunks_below_ && c < chunk.was.width; ++c) {
      CascadeChunk child;
      if (chunks_below_->at(chunk.was.begin + c, child)) most = std::max(most, child.word_count);
    }
    return static_cast<std::uint32_t>((most - 1) >> 16);
  }

  void gather(const Chunk& chunk, std::vector<Extra>& out) const {
    for (std::uint32_t c = chunk.was.width; c < chunk.now.width; ++c)
      more_.each_weight(0, {chunk.now.begin + c, 1},
                        [&](std::uint32_t f, std::uint32_t, float weight) { out.push_back({f, false, c, weight}); });
    for (std::uint32_t c = 0; below_ && c < chunk.was.width; ++c)
      for (const std::uint32_t f : below_->added[chunk.now.begin + c]) out.push_back({f, true, c, 0.0f});
    std::sort(out.begin(), out.end(), [](const Extra& a, const Extra& b) { return a.key() < b.key(); });
  }

  // Calls visit(feature, row) for all rows of a chunk, old and new, rising.
  template <class Visit> bool each_row(const Chunk& chunk, std::span<const Extra> extra, Visit&& visit) const {
    auto next = extra.begin();
    const auto take = [&](std::uint32_t f, Row& row) {
      const auto begin = next;
      while (next != extra.end() && next->feature == f && !next->link) ++next;
      const auto links = next;
      while (next != extra.end() && next->feature == f) ++next;
      row.more_weights = {begin, links};
      row.more_links = {links, next};
    };
    const auto before = [&](std::uint64_t bound) { // rows that were not there
      while (next != extra.end() && next->feature < bound) {
        Row row;
        const std::uint32_t f = next->feature;
        take(f, row);
        if (!visit(f, row)) return false;
      }
      return true;
    };
    const RecordForm was = form(chunk.was.width);
    const bool sound =
        old_.each_row(chunk.number, chunk.was.width, [&](const CascadeChunk& c, std::uint32_t f, std::uint32_t at) {
          if (!before(f)) return false;
          Row row;
          row.old = c.words + at;
          row.at = at;
          row.old_weights = was.weights(row.old);
          row.old_links = was.children(row.old);
          take(f, row);
          return visit(f, row);
        });
    return sound && before(std::uint64_t{kNoRow} + 1);
  }

  // One record of the new chunk.
  bool write(const Chunk& chunk, const Row& row, Links& links, std::uint32_t* base, std::uint32_t at) const {
    const RecordForm now = form(chunk.now.width);
    const std::uint64_t n = row.weights(), m = row.links();
    std::uint32_t* const record = base + at;
    const SetForm sets(chunk.now.width);
    const bool wide = chunk.now.width > kMaskWidth;
    if (wide) record[0] = static_cast<std::uint32_t>(n | m << 16);
    std::uint64_t nth = 0;
    const auto put = [&](std::uint32_t slot) {
      if (wide) put_sibling(sets, record + 1, n, nth, slot);
      else record[0] |= 1u << slot;
      ++nth;
    };
    std::uint32_t* const weights = record + now.weights_at(n, m);
    if (row.old && !each_old_weight(chunk, row, put)) return false;
    if (row.old_weights > 0) {
      const std::uint32_t* const from = row.old + form(chunk.was.width).weights_at(row.old_weights, row.old_links);
      std::copy_n(from, row.old_weights, weights);
    }
    for (const Extra& one : row.more_weights) {
      std::memcpy(weights + nth, &one.weight, sizeof one.weight);
      put(one.slot);
    }
    return !old_.inner || (find_links(chunk, row, links) && write_links(chunk, row, links, base, at));
  }

  // Calls visit(slot) for the old siblings that have a weight in a row.
  template <class Visit> bool each_old_weight(const Chunk& chunk, const Row& row, Visit&& visit) const {
    const std::uint32_t width = chunk.was.width;
    if (width > kMaskWidth) return each_sibling_of(SetForm(width), row.old + 1, row.old_weights, width, visit);
    return each_bit(MaskForm(width, old_.inner).weights(row.old), width, visit);
  }

  template <class Visit> static bool each_bit(std::uint32_t mask, std::uint32_t width, Visit&& visit) {
    if (width < kMaskWidth && mask >> width != 0) return false;
    for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
    return true;
  }

  // The children that go on with a row, old ones and new ones, and where.
  bool find_links(const Chunk& chunk, const Row& row, Links& links) const {
    links.found.clear();
    auto next = row.more_links.begin();
    bool sound = true;
    std::uint64_t nth = 0;
    const std::uint32_t width = chunk.was.width;
    const RecordForm was = form(width);
    const auto counted = [&](std::uint32_t slot) { // of a chunk that grew: its records one behind the other
      Links::Child& child = links.children[slot];
      if (child.row >= child.end) return sound = false;
      links.found.emplace_back(slot, child.at);
      child.at += below_->rows.length[child.row++];
      return true;
    };
    const auto new_ones = [&](std::uint32_t bound) {
      while (next != row.more_links.end() && next->slot < bound) counted((next++)->slot);
    };
    const auto old_one = [&](std::uint32_t slot) {
      new_ones(slot);
      if (below_) {
        counted(slot);
        return;
      }
      const std::uint64_t place = width > kMaskWidth ? 2 * was.offsets_at(row.old_weights, row.old_links) + nth
                                                     : MaskForm(width, true).place(row.old_weights, nth);
      ++nth;
      const std::uint32_t upper = chunk.pages.turns == 0 ? 0 : chunk.pages.upper(row.at, slot);
      links.found.emplace_back(slot, half_word(row.old, place) | upper);
    };
    if (row.old && width > kMaskWidth) {
      const SetForm sets(width);
      sound &= each_sibling_of(sets, row.old + 1 + sets.words(row.old_weights), row.old_links, width, old_one);
    } else if (row.old) {
      sound &= each_bit(MaskForm(width, true).children(row.old), width, old_one);
    }
    new_ones(width);
    return sound;
  }

  bool write_links(const Chunk& chunk, const Row& row, Links& links, std::uint32_t* base, std::uint32_t at) const {
    const RecordForm now = form(chunk.now.width);
    const MaskForm masks(chunk.now.width, true);
    const SetForm sets(chunk.now.width);
    const std::uint64_t n = row.weights(), m = row.links();
    std::uint32_t* const record = base + at;
    if (links.found.size() != m) return false;
    for (std::uint64_t nth = 0; nth < m; ++nth) {
      const auto [slot, offset] = links.found[nth];
      if (chunk.now.width <= kMaskWidth) {
        record[masks.child_word] |= 1u << (masks.child_lift + slot);
        set_half_word(record, masks.place(n, nth), offset);
      } else {
        put_sibling(sets, record + 1 + sets.words(n), m, nth, slot);
        set_half_word(record + now.offsets_at(n, m), nth, offset);
      }
      if (offset >> 16 > links.turns) return false;
      for (std::uint32_t page = offset >> 16; page > 0; --page) { // rows rise: the first one on a page turns to it
        std::uint32_t& turn = base[std::uint64_t{links.turns} * slot + page];
        if (turn != kNoRow) break;
        turn = at;
      }
    }
    return true;
  }

  CascadeSource old_;
  LayerShape shape_;
  std::span<const std::uint32_t> old_chunk_;
  ColumnSource more_;
  const CascadeWeights* chunks_below_; // as they are; null: there are none
  const GrownRows* below_;
  std::vector<std::vector<Extra>> extra_; // a chunk
};

} // namespace beamwood
