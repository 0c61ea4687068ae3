// The sums of a node's children in, the scores of those that may still win out: the only caller of activations.
//
// The law: a child's score is its activation, of its sum and then its bias, combined with what its parent hands down.
// Where a bar is up, who cannot pass it is seen from the sums (lowest_z) and is not scored: it would have been dropped.
// With a filter, children that it does not enter are left out here, and nowhere else.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "beamwood/engine/filter.hpp"
#include "beamwood/engine/order.hpp"
#include "beamwood/engine/score.hpp"
#include "beamwood/layout/forest.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

// What a child must be better than: an inner node, by its score; a label, by the score that is shown.
struct Bars {
  Key node = kWorstKey, label = kWorstKey;
};

// The children of one opened node.
struct Children {
  Siblings siblings;
  const float* sums; // without bias; vectors read up to 7 beyond the last
  float parent;      // the score of the node
};

// What a child is. Every number that is read from a file is checked here before it is used.
enum class Child : std::uint8_t { inner, leaf, damaged };

inline Child child_at(const Forest& forest, const TreeLayer& layer, bool last, std::uint32_t node,
                      std::uint32_t& label) noexcept {
  label = layer.shape.label.empty() ? kNoLabel : layer.shape.label[node];
  if (label == kNoLabel) return last ? Child::damaged : Child::inner;
  return label < forest.labels ? Child::leaf : Child::damaged;
}

class Scorer {
public:
  void start(const Forest& forest, const Kernels& kernels, const Filter* filter = nullptr,
             const StopFlag* stop = nullptr) noexcept {
    forest_ = &forest, kernels_ = &kernels, filter_ = filter, stop_ = stop;
  }

  // What a frontier asks between its steps.
  void check_stop() const { beamwood::check_stop(stop_); }
  bool filtered() const noexcept { return filter_ != nullptr; }

  bool has_labels(std::size_t tree, std::size_t l) const noexcept {
    return !forest_->trees[tree].layers[l].shape.label.empty();
  }

  // What an answer shows for a label with this score, and at most for any label below a node with this score.
  float shown(float score) const noexcept { return leaf_score(forest_->activation.path, score); }

  // The scores of all children. Good until the next call.
  const float* all(const LayerShape& shape, const Children& children) {
    const std::uint32_t width = children.siblings.width;
    make_room(width);
    const float* const bias = bias_of(shape, children);
    kernels_->activate(forest_->activation, children.sums, bias, width,
                       forest_->activation.handed_down(children.parent, bias, width), scores_.data());
    return scores_.data();
  }

  // The same of labels, as answers show them.
  const float* all_shown(const LayerShape& shape, const Children& children) {
    all(shape, children);
    if (forest_->activation.path == Path::log_exp)
      for (std::uint32_t c = 0; c < children.siblings.width; ++c) scores_[c] = shown(scores_[c]);
    return scores_.data();
  }

  // The score of one child.
  float one(const LayerShape& shape, const Children& children, std::uint32_t c) const noexcept {
    const float* const bias = bias_of(shape, children);
    return combine(forest_->activation.path, handed_down(shape, children),
                   activate(forest_->activation, bias ? children.sums[c] + bias[c] : children.sums[c]));
  }

  // Calls visit(child) for those that the filter enters.
  template <class Visit> void each_allowed(std::size_t tree, std::size_t l, const Siblings& siblings, Visit&& visit) {
    if (filter_) return filter_->each(tree, l, siblings, visit);
    for (std::uint32_t c = 0; c < siblings.width; ++c) visit(c);
  }

  // Calls take(child, score) for the children that may pass their bars, and maybe for some that will not.
  template <class Take>
  void each(std::size_t tree, std::size_t l, const Children& children, const Bars& bars, Take&& take) {
    const TreeLayer& layer = forest_->trees[tree].layers[l];
    const bool last = l + 1 == forest_->trees[tree].layers.size(), labels = !layer.shape.label.empty();
    const float node = last ? kAll : lowest(layer.shape, children, bars.node, false);
    const float label = labels ? lowest(layer.shape, children, bars.label, true) : kAll;
    const bool mixed = labels && !last;
    if (node == kAll && label == kAll) return each_of_all(tree, l, layer.shape, children, take);
    gather(tree, l, layer.shape, children, mixed, node, label);
    score_few(layer.shape, children);
    for (std::uint32_t i = 0; i < few_count_; ++i) take(child_[i], scores_[i]);
  }

  // A bar that the n-th best inner child of a wide node reaches, though none is scored yet; kWorstKey where none is seen.
  // The children are dealt to 32 lanes: the n-th best of the lanes' best is a child that n - 1 others come up to.
  Key bar_of_wide(std::size_t tree, std::size_t l, const Children& children, std::size_t n) const noexcept {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    const LayerShape& shape = forest_->trees[tree].layers[l].shape;
    const std::uint32_t width = children.siblings.width;
    if (filter_ || width <= kMaskWidth || n == 0 || n > kMaskWidth / 2) return kWorstKey;
    const float* const bias = bias_of(shape, children);
    std::array<float, kMaskWidth> best;
    best.fill(kLeast);
    const auto deal = [&](std::uint32_t at, std::uint32_t lanes) {
      const float* const z = children.sums + at;
      if (bias) // two loops, so that both are vectors
        for (std::uint32_t i = 0; i < lanes; ++i) best[i] = std::max(best[i], z[i] + bias[at + i]);
      else
        for (std::uint32_t i = 0; i < lanes; ++i) best[i] = std::max(best[i], z[i]);
    };
    std::uint32_t at = 0;
    for (; at + kMaskWidth <= width; at += kMaskWidth) deal(at, kMaskWidth);
    deal(at, width - at);
    std::array<std::uint8_t, kMaskWidth> order;
    kernels_->rank(best.data(), kMaskWidth, order.data());
    const float z = best[order[n - 1]];
    if (!std::isfinite(z)) return kWorstKey;
    const Activation& activation = forest_->activation;
    return key_of(combine(activation.path, handed_down(shape, children), activate(activation, z)), kNoLabel);
  }

private:
  static constexpr float kAll = -std::numeric_limits<float>::infinity();
  static constexpr std::uint32_t kOneByOne = 2;

  static const float* bias_of(const LayerShape& shape, const Children& children) noexcept {
    return shape.bias.empty() ? nullptr : shape.bias.data() + children.siblings.begin;
  }

  void make_room(std::uint32_t width) {
    const std::size_t room = width <= kMaskWidth ? kMaskWidth : 65536;
    if (scores_.size() < room) scores_.resize(room), few_.resize(room), child_.resize(room);
  }

  float handed_down(const LayerShape& shape, const Children& children) const noexcept {
    return forest_->activation.handed_down(children.parent, bias_of(shape, children), children.siblings.width);
  }

  // What a sum must reach for its child to pass a bar.
  float lowest(const LayerShape& shape, const Children& children, Key bar, bool leaf) const noexcept {
    if (bar == kWorstKey) return kAll;
    if (bar == kNoKeyPasses) return -kAll;
    const float score = score_of(bar);
    if (score != score) return kAll;
    return static_cast<float>(lowest_z(forest_->activation, handed_down(shape, children), score, leaf));
  }

  // No bar is up yet. Of a few the best come first: then those behind them are turned away by one compare each.
  template <class Take>
  void each_of_all(std::size_t tree, std::size_t l, const LayerShape& shape, const Children& children, Take&& take) {
    const float* const scores = all(shape, children);
    const std::uint32_t width = children.siblings.width;
    if (filter_ || width > kMaskWidth)
      return each_allowed(tree, l, children.siblings, [&](std::uint32_t c) { take(c, scores[c]); });
    kernels_->rank(scores, width, order_.data());
    for (std::uint32_t i = 0; i < width; ++i) take(order_[i], scores[order_[i]]);
  }

  // Lists the children whose sums reach what they must, in child_, and those sums with their biases, in few_.
  void gather(std::size_t tree, std::size_t l, const LayerShape& shape, const Children& children, bool mixed,
              float node, float label) {
    const float* const bias = bias_of(shape, children);
    const float lower = mixed ? std::min(node, label) : std::max(node, label);
    make_room(children.siblings.width);
    few_count_ = 0;
    for (std::uint32_t at = 0; at < children.siblings.width; at += kMaskWidth) {
      const Siblings some{children.siblings.begin + at, std::min(kMaskWidth, children.siblings.width - at)};
      const float* const beside = bias ? bias + at : nullptr;
      std::uint32_t mask = kernels_->reaching(children.sums + at, beside, some.width, lower);
      if (filter_) mask &= filter_->siblings(tree, l, some);
      for (; mask != 0; mask &= mask - 1) {
        const std::uint32_t c = at + static_cast<std::uint32_t>(std::countr_zero(mask));
        const float z = bias ? children.sums[c] + bias[c] : children.sums[c];
        child_[few_count_] = c;
        few_[few_count_] = z;
        const bool drops = mixed && z < (shape.label[children.siblings.begin + c] == kNoLabel ? node : label);
        few_count_ += !drops;
      }
    }
  }

  void score_few(const LayerShape& shape, const Children& children) noexcept {
    const Activation& activation = forest_->activation;
    const float parent = handed_down(shape, children);
    if (few_count_ > kOneByOne)
      return kernels_->activate(activation, few_.data(), nullptr, few_count_, parent, scores_.data());
    for (std::uint32_t i = 0; i < few_count_; ++i)
      scores_[i] = combine(activation.path, parent, activate(activation, few_[i]));
  }

  const Forest* forest_ = nullptr;
  const Kernels* kernels_ = nullptr;
  const Filter* filter_ = nullptr;
  const StopFlag* stop_ = nullptr;
  std::vector<float> scores_, few_;
  std::vector<std::uint32_t> child_; // whose sums are in few_
  std::uint32_t few_count_ = 0;
  std::array<std::uint8_t, kMaskWidth> order_{};
};

} // namespace beamwood
