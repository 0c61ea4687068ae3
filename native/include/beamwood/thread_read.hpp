// Threaded chunks in, the features of their rows out, layer by layer from the root down: the way back to other layouts.
//
// The root index names the features of the top layer's rows. The rows of a child's chunk are those of its parent's that
// go on there, in the same order: so reading a parent's records one behind the other lists its children's features. A
// file may be damaged, so what is read is checked: every chunk must have as many records as features were listed for it.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "beamwood/forest.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// The weights of a threaded layer with the features that ThreadReader found: a source for LayerBuilder.
struct ThreadSource {
  ThreadedWeights threads;
  std::uint32_t masks; // 1 in the last layer, else 2
  std::span<const std::uint64_t> row_start;
  std::span<const std::uint32_t> feature;

  // Calls visit(feature, place) for each record of a chunk. False: the records are not those of honest rows.
  template <class Visit> bool each_row(std::uint32_t parent, std::uint32_t width, Visit&& visit) const {
    ThreadedChunk chunk;
    if (!threads.at(parent, chunk)) return false;
    std::uint64_t at = 0;
    for (std::uint64_t row = row_start[parent]; row < row_start[parent + 1]; ++row) {
      if (at >= chunk.word_count) return false;
      const std::uint64_t words = size_of_record(chunk.words + at, width, masks, chunk.code, chunk.narrow).words;
      if (at + words > chunk.word_count || !visit(chunk, feature[row], static_cast<std::uint32_t>(at))) return false;
      at += words;
    }
    return at == chunk.word_count;
  }

  template <class Visit> bool each_weight(std::uint32_t parent, const Siblings& siblings, Visit&& visit) const {
    return each_row(parent, siblings.width, [&](const ThreadedChunk& chunk, std::uint32_t f, std::uint32_t at) {
      return beamwood::each_weight(chunk.words, chunk.word_count, at, siblings.width, masks, chunk.code,
                                   [&](std::uint32_t child, float weight) { visit(f, child, weight); });
    });
  }
};

class ThreadReader {
public:
  explicit ThreadReader(const Tree& tree) : tree_(tree) {}

  // The next layer, the top one first. False: the threads are damaged.
  bool next(const Workers& workers) {
    if (at_ >= tree_.layers.size()) return false;
    if (at_++ == 0) {
      start_at_root();
      return true;
    }
    const ThreadSource above{tree_.layers[at_ - 2].threads, 2, row_start_, feature_};
    const LayerShape& shape = tree_.layers[at_ - 2].shape;
    for (std::size_t i = 0; i + 1 < shape.child_start.size(); ++i)
      if (shape.child_start[i] > shape.child_start[i + 1]) return false; // no two chunks may own a node
    std::vector<std::uint64_t> start(shape.nodes + std::size_t{1}, 0);
    if (!each_thread(shape, above, workers, [&](std::uint32_t node, std::uint32_t) { ++start[node + 1]; }))
      return false;
    for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    std::vector<std::uint32_t> feature(start.back());
    std::vector<std::uint64_t> place(start.begin(), start.end() - 1);
    each_thread(shape, above, workers, [&](std::uint32_t node, std::uint32_t f) { feature[place[node]++] = f; });
    row_start_ = std::move(start);
    feature_ = std::move(feature);
    return true;
  }

  std::size_t layer() const noexcept { return at_ - 1; }

  // Of the layer that `next` came to; good until the next call of it.
  ThreadSource source() const noexcept {
    return {tree_.layers[at_ - 1].threads, at_ == tree_.layers.size() ? 1u : 2u, row_start_, feature_};
  }

private:
  void start_at_root() {
    const auto& root = tree_.layers[0].threads.root;
    feature_.clear();
    for (std::size_t f = 0; f < root.size(); ++f)
      if (root[f] != kNoRow) feature_.push_back(static_cast<std::uint32_t>(f));
    row_start_ = {0, feature_.size()};
  }

  // Calls visit(node, feature) for every thread that leads from a layer into the chunk of one of its nodes.
  template <class Visit>
  static bool each_thread(const LayerShape& shape, const ThreadSource& above, const Workers& workers, Visit&& visit) {
    std::atomic<bool> sound{true};
    parallel_for(workers, shape.parents(), [&](std::size_t parent, unsigned) {
      Siblings siblings;
      const auto p = static_cast<std::uint32_t>(parent);
      const auto row = [&](const ThreadedChunk& chunk, std::uint32_t f, std::uint32_t at) {
        return each_child(chunk.words + at, siblings.width,
                          [&](std::uint32_t child) { visit(siblings.begin + child, f); });
      };
      if (!shape.children(p, siblings) || !above.each_row(p, siblings.width, row)) sound = false;
    });
    return sound;
  }

  // Calls visit(child) for every child whose chunk goes on with the row of this record.
  template <class Visit> static bool each_child(const std::uint32_t* record, std::uint32_t width, Visit&& visit) {
    if (width <= kMaskWidth) {
      if (width < kMaskWidth && record[1] >> width != 0) return false;
      for (std::uint32_t mask = record[1]; mask != 0; mask &= mask - 1)
        visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
      return true;
    }
    const SetForm form(width);
    return each_sibling_of(form, record + 1 + form.words(*record & 0xffffu), *record >> 16, width, visit);
  }

  const Tree& tree_;
  std::size_t at_ = 0;
  std::vector<std::uint64_t> row_start_;
  std::vector<std::uint32_t> feature_;
};

} // namespace beamwood
