// The labels that trees reach in, the best k of a query out. Two sinks: one tree's, and that of several trees.
//
// The law of several trees: a label's scores are summed in tree order from +0, a tree that did not reach it adds nothing,
// and the sum is divided once by the number of trees.
//
// Several trees reach many labels of which few can win, and most of the work is opening the nodes above those. So nodes
// that have only labels to give are put off until all trees are walked. Then each label has a most that it can come to:
// its score where it is known, the score of the node above it where that was put off, nothing in a tree that did not
// reach it. And it has a least: its known scores. The k-th best least is a bar that k labels reach. The node with the
// highest score is opened next, unless none of its labels can come to the bar. What is left out cannot win, so it
// changes no bit. This needs scores that are not negative and only shrink along a path; else nothing is put off.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/engine/label_bounds.hpp"
#include "beamwood/engine/scorer.hpp"
#include "beamwood/engine/topk.hpp"

namespace beamwood {

// The row of one query: k labels and scores in rank order, padded with -1 and -inf.
inline void write_row(TopK& ranker, std::uint32_t k, std::int64_t* labels, float* scores) {
  const std::vector<Key>& ranked = ranker.ranked();
  for (std::uint32_t i = 0; i < k; ++i) {
    const bool there = i < ranked.size();
    labels[i] = there ? std::int64_t{id_of(ranked[i])} : -1;
    scores[i] = there ? score_of(ranked[i]) : -std::numeric_limits<float>::infinity();
  }
}

// A node that has been met, and the score along its path.
struct Met {
  std::uint32_t tree, layer; // of its children
  std::uint32_t node;
  float score;
};

// Scores all children of a node: inner(node, score) gets those that have children of their own, leaf(label, child, shown
// score) the labels. False: damaged.
template <class Inner, class Leaf>
bool sort_out(const Forest& forest, const Met& met, const Children& children, Scorer& scorer, Inner&& inner,
              Leaf&& leaf) {
  const TreeLayer& layer = forest.trees[met.tree].layers[met.layer];
  const bool last = met.layer + 1 == forest.trees[met.tree].layers.size();
  const float* const scores = scorer.all(layer.shape, children);
  bool sound = true;
  scorer.each_allowed(met.tree, met.layer, children.siblings, [&](std::uint32_t c) {
    std::uint32_t label;
    const Child kind = child_at(forest, layer, last, children.siblings.begin + c, label);
    if (kind == Child::inner) inner(children.siblings.begin + c, scores[c]);
    else if (kind == Child::leaf) leaf(label, c, scorer.shown(scores[c]));
    else sound = false;
  });
  return sound;
}

struct Answer {
  std::uint32_t label;
  float score;
};

// All labels that are reached, as they come: for whoever adds them up later.
class AllAnswers {
public:
  static constexpr bool puts_off = false;
  std::vector<Answer> answers;

  void reset(const Forest& forest, std::uint32_t, bool) {
    forest_ = &forest;
    answers.clear();
  }
  static bool beaten(float) noexcept { return false; }
  static void put_off(const Met&) noexcept {}

  template <class Inner> bool take(const Met& met, const Children& children, Scorer& scorer, Key, Inner&& inner) {
    return sort_out(*forest_, met, children, scorer, inner,
                    [this](std::uint32_t label, std::uint32_t, float score) { answers.push_back({label, score}); });
  }

private:
  const Forest* forest_ = nullptr;
};

// One tree: its labels compete at once, and the k-th best is the bar for all that follow.
class BestLabels {
public:
  TopK best;

  void reset(const Forest& forest, std::uint32_t k, bool) {
    forest_ = &forest, k_ = k;
    best.reset(k);
  }
  static constexpr bool puts_off = false;
  static void put_off(const Met&) noexcept {}
  static bool list_put_off(Scorer&) noexcept { return true; }

  // How many labels the tree has reached, up to k.
  static void enter_tree() noexcept {}
  std::uint64_t reached() { return best.ranked().size(); }
  void forget_tree() { best.reset(k_); }

  // Whether no label below a node that could show at most this much can be among the best.
  bool beaten(float shown) noexcept {
    best.tighten();
    return worse(key_of(shown, 0), best.bar());
  }

  // Takes the labels among a node's children; inner ones are given to inner(node, score). False: damaged.
  template <class Inner>
  bool take(const Met& met, const Children& children, Scorer& scorer, Key node_bar, Inner&& inner) {
    const TreeLayer& layer = forest_->trees[0].layers[met.layer];
    const bool last = met.layer + 1 == forest_->trees[0].layers.size();
    bool sound = true;
    best.tighten();
    scorer.each(0, met.layer, children, {node_bar, best.bar()}, [&](std::uint32_t c, float score) {
      const std::uint32_t node = children.siblings.begin + c;
      if (last && worse_or_same(key_of(scorer.shown(score), 0), best.bar())) return; // before its label is read
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer, last, node, label);
      if (kind == Child::inner) inner(node, score);
      else if (kind == Child::leaf) best.offer(key_of(scorer.shown(score), label));
      else sound = false;
    });
    return sound;
  }

private:
  const Forest* forest_ = nullptr;
  std::uint32_t k_ = 1;
};

// Several trees.
class SumOfTrees {
public:
  TopK best;
  bool puts_off = false;

  // Whether leaving labels out is exact for a forest.
  static bool bound_holds(const Forest& forest) noexcept {
    const Path path = forest.activation.path;
    return forest.activation.only_shrinks() && forest.trees.size() <= 1000 &&
           (path == Path::product || path == Path::log_exp);
  }

  void reset(const Forest& forest, std::uint32_t k, bool bound) {
    forest_ = &forest, k_ = k;
    puts_off = bound && bound_holds(forest);
    parts_.clear(), label_.clear(), child_.clear(), score_.clear();
    enter_tree();
  }

  static bool beaten(float) noexcept { return false; }

  // A node of which only labels are left to be had.
  void put_off(const Met& met) { parts_.push_back({met, label_.size(), label_.size(), false}); }

  // As that of BestLabels, which takes scores at once.
  template <class Inner> bool take(const Met& met, const Children& children, Scorer& scorer, Key, Inner&& inner) {
    Part part{met, label_.size(), label_.size(), true};
    std::size_t at = make_room(children.siblings.width);
    const bool sound =
        sort_out(*forest_, met, children, scorer, inner,
                 [&](std::uint32_t label, std::uint32_t child, float score) { keep(at++, label, child, score); });
    part.end = cut(at);
    if (part.end > part.begin) parts_.push_back(part);
    return sound;
  }

  // Takes labels that trees have reached, in tree order, with what they score there.
  void take_all(std::span<const Answer> answers) {
    std::size_t at = make_room(answers.size());
    for (const Answer& answer : answers) keep(at++, answer.label, 0, answer.score);
    parts_.push_back({{}, 0, label_.size(), true});
  }

  // How many labels the tree that was entered last has reached. Those under nodes that were put off count too, once they
  // are listed. False: damaged.
  void enter_tree() noexcept { first_part_ = parts_.size(), first_label_ = label_.size(); }
  std::uint64_t reached() const noexcept { return label_.size() - first_label_; }
  void forget_tree() {
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(first_part_), parts_.end());
    cut(first_label_);
  }
  bool list_put_off(Scorer& scorer) {
    for (Part& part : parts_)
      if (!part.open && part.begin == part.end && !list_labels(part, scorer)) return false;
    return true;
  }

  // Opens what may still win and leaves the best k in `best`. open(met, children) makes the sums of a node that was put
  // off; false: damaged.
  template <class Open> bool settle(Scorer& scorer, Open&& open) {
    comparable_ = true;
    if (puts_off && !bound_labels(scorer)) return false;
    if (!puts_off) bounds_.reset(label_.size()), number_labels();
    order_.clear();
    for (std::uint32_t p = 0; p < parts_.size(); ++p)
      if (!parts_[p].open) order_.push_back(key_of(scorer.shown(parts_[p].met.score), p));
    std::sort(order_.begin(), order_.end());
    for (bool all = false;; all = true) { // a second time where scores turned out not to be comparable
      for (const Key key : order_) {
        Part& part = parts_[id_of(key)];
        if (part.open || (!all && !may_win(part))) continue;
        if (!open_part(part, scorer, open)) return false;
      }
      if (comparable_ || all) break;
      bar_ = kNoBar;
    }
    add_up();
    return true;
  }

private:
  static constexpr double kNoBar = -std::numeric_limits<double>::infinity();

  struct Part {
    Met met;
    std::size_t begin, end; // its labels
    bool open;
  };

  // Labels are written into room that is there, and what is left of it is cut off.
  std::size_t make_room(std::size_t count) {
    const std::size_t at = label_.size();
    label_.resize(at + count), child_.resize(at + count), score_.resize(at + count);
    return at;
  }
  void keep(std::size_t at, std::uint32_t label, std::uint32_t child, float score) noexcept {
    label_[at] = label, child_[at] = static_cast<std::uint16_t>(child), score_[at] = score;
  }
  std::size_t cut(std::size_t end) {
    label_.resize(end), child_.resize(end), score_.resize(end);
    return end;
  }

  bool list_labels(Part& part, Scorer& scorer) {
    const TreeLayer& layer = forest_->trees[part.met.tree].layers[part.met.layer];
    const bool last = part.met.layer + 1 == forest_->trees[part.met.tree].layers.size();
    Siblings siblings;
    if (part.met.node >= layer.shape.parents() || !layer.shape.children(part.met.node, siblings)) return false;
    part.begin = label_.size();
    std::size_t at = make_room(siblings.width);
    bool sound = true;
    scorer.each_allowed(part.met.tree, part.met.layer, siblings, [&](std::uint32_t c) {
      std::uint32_t label;
      const Child kind = child_at(*forest_, layer, last, siblings.begin + c, label);
      keep(at, label, c, 0.0f);
      at += kind == Child::leaf;
      sound = sound && kind != Child::damaged;
    });
    part.end = cut(at);
    return sound;
  }

  // Every label of a part gets its number.
  void number_labels() {
    number_.resize(label_.size());
    for (std::size_t i = 0; i < label_.size(); ++i) number_[i] = bounds_.number_of(label_[i]);
  }

  // Finds the most and the least of each label.
  bool bound_labels(Scorer& scorer) {
    if (!list_put_off(scorer)) return false;
    bounds_.reset(label_.size());
    number_labels();
    top_.clear();
    in_top_.assign(bounds_.size(), 0);
    bar_ = kNoBar;
    for (const Part& part : parts_) {
      const double bound = static_cast<double>(scorer.shown(part.met.score));
      comparable_ = comparable_ && bound >= 0.0;
      for (std::size_t i = part.begin; i < part.end; ++i) {
        if (part.open) learn(i, 0.0);
        else bounds_.may_add(number_[i], bound);
      }
    }
    raise_bar();
    return true;
  }

  // A label's score in one tree is known: its bounds draw nearer to each other.
  void learn(std::size_t i, double bound) {
    const std::uint32_t number = number_[i];
    const auto score = static_cast<double>(score_[i]);
    comparable_ = comparable_ && score >= 0.0; // false for NaN
    bounds_.add(number, bound, score);
    if (bounds_.least(number) > bar_ && !in_top_[number]) in_top_[number] = 1, top_.push_back(number);
  }

  // The bar is the k-th best least. Only those above it can take part in the next one.
  void raise_bar() {
    if (top_.size() < k_) return;
    const auto better = [this](std::uint32_t a, std::uint32_t b) { return bounds_.least(a) > bounds_.least(b); };
    const auto kth = top_.begin() + (k_ - 1);
    std::nth_element(top_.begin(), kth, top_.end(), better);
    bar_ = bounds_.least(*kth);
    for (auto below = kth + 1; below != top_.end(); ++below) in_top_[*below] = 0;
    top_.erase(kth + 1, top_.end());
  }

  // Sums are rounded to float32 a few times, so who comes close to the bar may still win; and ties go by label.
  double enough() const noexcept {
    const double slack = 1e-6 * static_cast<double>(forest_->trees.size() + 8);
    return comparable_ ? bar_ * (1.0 - slack) - 1e-13 : kNoBar;
  }

  bool may_win(const Part& part) const noexcept {
    const double least = enough();
    for (std::size_t i = part.begin; i < part.end; ++i)
      if (bounds_.most(number_[i]) >= least) return true;
    return false;
  }

  template <class Open> bool open_part(Part& part, Scorer& scorer, Open&& open) {
    Children children{};
    if (!open(part.met, children)) return false;
    const float* const scores = scorer.all(forest_->trees[part.met.tree].layers[part.met.layer].shape, children);
    const double bound = static_cast<double>(scorer.shown(part.met.score));
    for (std::size_t i = part.begin; i < part.end; ++i) {
      score_[i] = scorer.shown(scores[child_[i]]);
      learn(i, bound);
    }
    part.open = true;
    raise_bar();
    return true;
  }

  // The law of several trees, for the labels that may still win. Parts are in tree order.
  void add_up() {
    const double least = puts_off ? enough() : kNoBar;
    sum_.assign(bounds_.size(), 0.0f);
    for (const Part& part : parts_)
      for (std::size_t i = part.begin; part.open && i < part.end; ++i) sum_[number_[i]] += score_[i];
    best.reset(k_);
    for (std::uint32_t number = 0; number < sum_.size(); ++number) {
      if (puts_off && comparable_ && bounds_.most(number) < least) continue;
      // + 0: a tiny negative mean may round to -0, and the order law has one zero.
      const float mean = sum_[number] / static_cast<float>(forest_->trees.size()) + 0.0f;
      best.offer(key_of(mean, bounds_.label[number]));
    }
  }

  const Forest* forest_ = nullptr;
  std::uint32_t k_ = 1;
  std::vector<Part> parts_;
  std::size_t first_part_ = 0, first_label_ = 0; // of the tree that was entered last
  std::vector<std::uint32_t> label_, number_;    // of the parts' labels, part behind part
  std::vector<std::uint16_t> child_;             // which of its siblings each is
  std::vector<float> score_, sum_;
  LabelBounds bounds_;
  std::vector<Key> order_;
  std::vector<std::uint32_t> top_;   // those with the best leasts, k and more
  std::vector<std::uint8_t> in_top_; // by number
  double bar_ = kNoBar;
  bool comparable_ = true;
};

} // namespace beamwood
