// Allowed labels in, one bit a node out: whether an allowed label lies at or below it.
//
// A search with a filter never enters a node whose bit is 0. The bits take 1/8 byte a node; they are made once, from the
// shape of the trees alone, so a filter serves every layout of its model. Never changed once built.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/layout/forest.hpp"

namespace beamwood {

class Filter {
public:
  // Reads every label and every child range once. False: the trees are damaged.
  bool build(const Forest& forest, std::span<const std::uint8_t> allowed) {
    trees_.clear();
    allowed_ = static_cast<std::uint64_t>(std::count_if(allowed.begin(), allowed.end(), [](auto one) { return one; }));
    for (const Tree& tree : forest.trees) {
      std::vector<Bits> layers(tree.layers.size());
      for (std::size_t l = layers.size(); l-- > 0;) {
        const bool last = l + 1 == layers.size();
        layers[l] = Bits(tree.layers[l].shape.nodes);
        if (!last && !mark_parents(tree.layers[l + 1].shape, layers[l + 1], layers[l])) return false;
        if (!mark_leaves(tree.layers[l].shape, allowed, last, layers[l])) return false;
      }
      trees_.push_back(std::move(layers));
    }
    labels_ = Bits(forest.postings ? forest.labels : 0);
    for (std::uint32_t label = 0; label < labels_.nodes; ++label)
      if (allowed[label]) labels_.set(label);
    return true;
  }

  // Whether it was built for trees of this shape: what memory safety needs.
  bool fits(const Forest& forest) const noexcept {
    if (trees_.size() != forest.trees.size() || labels_.nodes != (forest.postings ? forest.labels : 0)) return false;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      const auto& layers = forest.trees[t].layers;
      if (trees_[t].size() != layers.size()) return false;
      for (std::size_t l = 0; l < layers.size(); ++l)
        if (trees_[t][l].nodes != layers[l].shape.nodes) return false;
    }
    return true;
  }

  bool enters(std::size_t tree, std::size_t layer, std::uint32_t node) const noexcept {
    return trees_[tree][layer].has(node);
  }

  // Whether a label may be found; for models that have inverted lists.
  bool allows(std::uint32_t label) const noexcept { return label < labels_.nodes && labels_.has(label); }

  // The bits of up to 32 siblings, the first one lowest.
  std::uint32_t siblings(std::size_t tree, std::size_t layer, const Siblings& siblings) const noexcept {
    return trees_[tree][layer].run(siblings.begin, siblings.width);
  }

  // Calls visit(number of the sibling) for those that are entered.
  template <class Visit> void each(std::size_t tree, std::size_t layer, const Siblings& siblings, Visit&& visit) const {
    const Bits& bits = trees_[tree][layer];
    for (std::uint32_t at = 0; at < siblings.width; at += 32) {
      std::uint32_t mask = bits.run(siblings.begin + at, std::min(32u, siblings.width - at));
      for (; mask != 0; mask &= mask - 1) visit(at + static_cast<std::uint32_t>(std::countr_zero(mask)));
    }
  }

  // How many labels are allowed.
  std::uint64_t allowed() const noexcept { return allowed_; }

  std::uint64_t bytes() const noexcept {
    std::uint64_t sum = labels_.nodes == 0 ? 0 : labels_.words.size() * sizeof(std::uint64_t);
    for (const auto& layers : trees_)
      for (const Bits& bits : layers) sum += bits.words.size() * sizeof(std::uint64_t);
    return sum;
  }

private:
  struct Bits {
    std::uint32_t nodes = 0;
    std::vector<std::uint64_t> words;

    Bits() = default;
    explicit Bits(std::uint32_t count) : nodes(count), words(count / 64u + 2u) {} // one to spare, for run()

    bool has(std::uint32_t i) const noexcept { return words[i / 64] >> (i % 64) & 1u; }
    void set(std::uint32_t i) noexcept { words[i / 64] |= std::uint64_t{1} << (i % 64); }
    std::uint32_t run(std::uint32_t begin, std::uint32_t count) const noexcept {
      const std::uint32_t word = begin / 64, shift = begin % 64;
      std::uint64_t bits = words[word] >> shift;
      if (shift != 0) bits |= words[word + 1] << (64 - shift);
      return static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << count) - 1));
    }
  };

  // Child ranges must rise, so that every node has one parent: a search that goes on then ends.
  static bool mark_parents(const LayerShape& below, const Bits& children, Bits& parents) {
    Siblings range;
    for (std::uint32_t parent = 0; parent < below.parents(); ++parent) {
      if (!below.children(parent, range)) return false;
      for (std::uint32_t c = 0; c < range.width; ++c)
        if (children.has(range.begin + c)) {
          parents.set(parent);
          break;
        }
    }
    return true;
  }

  static bool mark_leaves(const LayerShape& shape, std::span<const std::uint8_t> allowed, bool last, Bits& bits) {
    if (shape.label.empty()) return !last;
    for (std::uint32_t node = 0; node < shape.nodes; ++node) {
      const std::uint32_t label = shape.label[node];
      if (label == kNoLabel && !last) continue;
      if (label >= allowed.size()) return false;
      if (allowed[label]) bits.set(node);
    }
    return true;
  }

  std::vector<std::vector<Bits>> trees_;
  Bits labels_; // where there are inverted lists
  std::uint64_t allowed_ = 0;
};

} // namespace beamwood
