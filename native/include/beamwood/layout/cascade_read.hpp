// Cascade chunks in, the features of their rows out, layer by layer from the root down: the way back to other layouts.
//
// The root index names the features of the top chunk's rows. The rows of a chunk are those of the chunk above that go on
// there, in the same order: so reading that one's records one behind the other lists the features of those below. A
// file may be damaged, so what is read is checked: every chunk must have as many records as features were listed for it.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "beamwood/layout/forest.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// The weights of a cascade layer with the features that CascadeReader found: a source for LayerBuilder.
struct CascadeSource {
  CascadeWeights cascade; // those of its bundle
  bool inner = false;     // they are linked to others
  std::span<const std::uint64_t> row_start;
  std::span<const std::uint32_t> feature;
  Bundle bundle;
  std::size_t step = 0;                  // the layer's place in the bundle
  std::span<const std::uint32_t> origin; // beyond the first layer of a bundle: of each parent, whose slots it is in

  // Calls visit(chunk, feature, place) for each record of a chunk. False: the records are not those of honest rows.
  template <class Visit> bool each_row(std::uint32_t number, std::uint32_t width, Visit&& visit) const {
    CascadeChunk chunk;
    Pages pages;
    if (!cascade.at(number, chunk) || !chunk.pages(width, pages)) return false;
    const RecordForm form = chunk.form(width, inner);
    std::uint64_t at = Pages::words(pages.turns, width);
    for (std::uint64_t row = row_start[number]; row < row_start[number + 1]; ++row) {
      if (at >= chunk.word_count) return false;
      const std::uint64_t words = form.words(chunk.words + at);
      if (at + words > chunk.word_count || !visit(chunk, feature[row], static_cast<std::uint32_t>(at))) return false;
      at += words;
    }
    return at == chunk.word_count;
  }

  template <class Visit> bool each_weight(std::uint32_t parent, const Siblings& siblings, Visit&& visit) const {
    const std::uint32_t number = step == 0 ? parent : origin[parent];
    SubtreeSlots slots;
    if (!bundle.slots(number, slots)) return false;
    const std::uint32_t first = slots.slot[step] + (siblings.begin - slots.begin[step]);
    return each_row(number, slots.width(), [&](const CascadeChunk& chunk, std::uint32_t f, std::uint32_t at) {
      return beamwood::each_weight(chunk.words, chunk.word_count, at, chunk.form(slots.width(), inner),
                                   [&](std::uint32_t slot, float weight) {
                                     if (slot - first < siblings.width) visit(f, slot - first, weight);
                                   });
    });
  }
};

class CascadeReader {
public:
  explicit CascadeReader(const Tree& tree) : tree_(tree) {}

  // The next layer, the top one first. False: the cascade is damaged.
  bool next(const Workers& workers) {
    if (at_ >= tree_.layers.size()) return false;
    if (at_ == 0) {
      start_at_root();
    } else {
      const LayerShape& above = tree_.layers[at_ - 1].shape;
      for (std::size_t i = 0; i + 1 < above.child_start.size(); ++i)
        if (above.child_start[i] > above.child_start[i + 1]) return false; // no two chunks may own a node
      if (above.child_start.back() > above.nodes) return false;
      if (tree_.layers[at_].step > 0) find_origins(above);
      else if (!follow_cascade(workers)) return false;
    }
    ++at_;
    return true;
  }

  std::size_t layer() const noexcept { return at_ - 1; }

  // Of the layer that `next` came to; good until the next call of it.
  CascadeSource source() const noexcept {
    const std::size_t step = tree_.layers[layer()].step;
    return {tree_.layers[layer() - step].cascade,
            tree_.has_chunks_below(layer()),
            row_start_,
            feature_,
            tree_.bundle(layer()),
            step,
            origin_};
  }

private:
  void start_at_root() {
    const auto& root = tree_.layers[0].cascade.root;
    feature_.clear();
    for (std::size_t f = 0; f < root.size(); ++f)
      if (root[f] != kNoRow) feature_.push_back(static_cast<std::uint32_t>(f));
    row_start_ = {0, feature_.size()};
  }

  // The nodes of the layer above are the next one's parents: each is in the slots of its own parent.
  void find_origins(const LayerShape& above) {
    std::vector<std::uint32_t> origin(above.nodes, 0);
    for (std::uint32_t p = 0; p < above.parents(); ++p)
      for (std::uint32_t node = above.child_start[p]; node < above.child_start[p + 1]; ++node)
        origin[node] = tree_.layers[at_].step == 1 ? p : origin_[p];
    origin_ = std::move(origin);
  }

  // The features of the next bundle's chunks.
  bool follow_cascade(const Workers& workers) {
    const CascadeSource above = source();
    std::vector<std::uint64_t> start(tree_.layers[at_ - 1].shape.nodes + std::size_t{1}, 0);
    if (!each_place(above, workers, [&](std::uint32_t node, std::uint32_t) { ++start[node + 1]; })) return false;
    for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    std::vector<std::uint32_t> feature(start.back());
    std::vector<std::uint64_t> place(start.begin(), start.end() - 1);
    each_place(above, workers, [&](std::uint32_t node, std::uint32_t f) { feature[place[node]++] = f; });
    row_start_ = std::move(start);
    feature_ = std::move(feature);
    return true;
  }

  // Calls visit(node, feature) for every link from a bundle into the chunk of a node of its last layer.
  template <class Visit> static bool each_place(const CascadeSource& above, const Workers& workers, Visit&& visit) {
    std::atomic<bool> sound{true};
    parallel_for(workers, above.bundle.parents(), [&](std::size_t parent, unsigned) {
      SubtreeSlots slots;
      const auto p = static_cast<std::uint32_t>(parent);
      const auto row = [&](const CascadeChunk& chunk, std::uint32_t f, std::uint32_t at) {
        bool at_bottom = true;
        const bool honest = each_child(chunk.words + at, slots.width(), [&](std::uint32_t slot) {
          if (slot < slots.bottom_slot()) at_bottom = false;
          else visit(slots.bottom().begin + (slot - slots.bottom_slot()), f);
        });
        return honest && at_bottom;
      };
      if (!above.bundle.slots(p, slots) || !above.each_row(p, slots.width(), row)) sound = false;
    });
    return sound;
  }

  // Calls visit(slot) for each slot whose chunk goes on with the row of this record.
  template <class Visit> static bool each_child(const std::uint32_t* record, std::uint32_t width, Visit&& visit) {
    if (width <= kMaskWidth) {
      std::uint32_t mask = MaskForm(width, true).children(record);
      if (width < kMaskWidth && mask >> width != 0) return false;
      for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
      return true;
    }
    const SetForm form(width);
    return each_sibling_of(form, record + 1 + form.words(*record & 0xffffu), *record >> 16, width, visit);
  }

  const Tree& tree_;
  std::size_t at_ = 0;
  std::vector<std::uint64_t> row_start_; // of the chunks of the bundle that the layer is in
  std::vector<std::uint32_t> feature_;
  std::vector<std::uint32_t> origin_;
};

} // namespace beamwood
