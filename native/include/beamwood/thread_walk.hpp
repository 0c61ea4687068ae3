// One query and a threaded tree in, the labels it reaches out: beam search that follows threads.
//
// The rows of the query in a chunk are a list of places; a child's list is made by following each place through its
// record. Each record is called for when its place is known, and short lists are made one beam node ahead of the sums,
// so that memory works while the kernel adds.
//
// Nodes are opened best first until the exact bound says that none that is left can contribute (bound.hpp). With a
// filter, children that it does not enter are left out where children are scored.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/answers.hpp"
#include "beamwood/block.hpp"
#include "beamwood/bound.hpp"
#include "beamwood/filter.hpp"
#include "beamwood/hope.hpp"

namespace beamwood {

class alignas(kApart) ThreadedWalk {
public:
  Work work;

  // Appends the labels that tree t reaches to `answers`; where it is alone, offers them to `best` instead, which keeps
  // k, and where there is a `hope` for several trees, to that. top: what `top_layer` found for this query, if it was
  // asked before. False: the model's arrays are damaged.
  bool run(const Forest& forest, std::size_t t, const Query& query, std::uint32_t beam, bool bound,
           const Kernels& kernels, std::vector<Answer>& answers, TopK* best, const Filter* filter = nullptr,
           std::span<const Key> top = {}, Hope* hope = nullptr) {
    const Tree& tree = forest.trees[t];
    filter_ = filter, hope_ = hope, tree_ = t;
    start(forest, query);
    for (std::size_t l = 0; l < tree.layers.size(); ++l) {
      const TreeLayer* above = l == 0 ? nullptr : &tree.layers[l - 1];
      const bool last = l + 1 == tree.layers.size();
      const TreeLayer& layer = tree.layers[l];
      layer_ = l;
      ranker_.reset(beam);
      if (l == 0 && !top.empty()) {
        if (!prepare(layer, above, 0)) return false;
        for (const Key key : top) ranker_.offer(key);
      } else {
        TopK* const bar = !bound || !bound_holds(forest, layer, last && best) ? nullptr : last ? best : &ranker_;
        if (!walk_layer(forest, layer, above, last, bar, kernels, answers, best)) return false;
      }
      if (last) return true;
      next_beam(tree.layers[l + 1]);
    }
    return true;
  }

  // The best nodes of the first tree's top layer, which must have no labels, in rank order. False: damaged.
  bool top_layer(const Forest& forest, const Query& query, std::uint32_t beam, const Kernels& kernels,
                 std::vector<Key>& keys) {
    const Tree& tree = forest.trees[0];
    filter_ = nullptr, hope_ = nullptr, tree_ = layer_ = 0;
    start(forest, query);
    ranker_.reset(beam);
    if (!walk_layer(forest, tree.layers[0], nullptr, false, nullptr, kernels, none_, nullptr)) return false;
    keys = ranker_.ranked();
    return true;
  }

private:
  static constexpr std::size_t kShortList = 48, kFewParents = 16;

  struct Open {
    std::uint32_t node;
    float score;
    Siblings siblings{};
    ThreadedChunk chunk{};
    std::size_t rows_begin = 0, rows_end = 0;
  };

  void start(const Forest& forest, const Query& query) {
    query_ = &query;
    rows_.used = 0;
    above_.clear();
    open_.assign(1, {0, forest.activation.root_score()});
  }

  bool walk_layer(const Forest& forest, const TreeLayer& layer, const TreeLayer* above, bool last, TopK* bar,
                  const Kernels& kernels, std::vector<Answer>& answers, TopK* best) {
    std::size_t prepared = 0;
    if (!bar && above) { // everything will be opened
      if (!prepare_all(layer)) return false;
      prepared = open_.size();
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (bar && beaten(forest, open_[i].score, last, *bar)) {
        open_.resize(i); // those after it were not opened and have no children to rank
        break;
      }
      if (prepared == i && !prepare(layer, above, prepared++)) return false;
      const Open& open = open_[i];
      // Long lists keep memory busy by themselves, and one that is made ahead may turn out not to be needed.
      if (prepared == i + 1 && prepared < open_.size() && open.rows_end - open.rows_begin < kShortList &&
          !(bar && beaten(forest, open_[i + 1].score, last, *bar)) && !prepare(layer, above, prepared++))
        return false;
      if (!add_up(layer, open, last ? 1 : 2, kernels)) return false;
      if (!score(forest, layer, open, last, bar, kernels, answers, best)) return false;
    }
    return true;
  }

  // Finds a node's chunk and makes its list of rows from its parent's, calling for each record.
  bool prepare(const TreeLayer& layer, const TreeLayer* above, std::size_t i) {
    Open& open = open_[i];
    if (open.node >= layer.shape.parents() || !layer.shape.children(open.node, open.siblings) ||
        !layer.threads.at(open.node, open.chunk))
      return false;
    call_for_siblings(layer.shape.bias, open.siblings);
    call_for_siblings(layer.shape.label, open.siblings);
    open.rows_begin = open.rows_end = rows_.used;
    if (!above) {
      open.rows_end += root_rows(layer.threads, *query_, open.chunk, rows_.room(query_->count + 1));
    } else if (open.chunk.word_count != 0) {
      const Open& parent = parent_of(open.node);
      const std::size_t count = parent.rows_end - parent.rows_begin;
      const std::uint32_t child = open.node - parent.siblings.begin;
      if (child >= parent.siblings.width) return false;
      open.rows_end += follow_all(parent.chunk, parent.siblings.width, child, rows_above_.at(parent.rows_begin), count,
                                  open.chunk, rows_.room(count + 1));
    }
    rows_.used = open.rows_end;
    return true;
  }

  // Calls for what stands beside the children: their biases or labels.
  template <class Number>
  static void call_for_siblings(std::span<const Number> numbers, const Siblings& siblings) noexcept {
    if (numbers.empty()) return;
    __builtin_prefetch(numbers.data() + siblings.begin);
    __builtin_prefetch(numbers.data() + siblings.begin + siblings.width / 2);
  }

  // The same for all nodes at once, parent by parent: a record is read once for all of its children that are opened.
  bool prepare_all(const TreeLayer& layer) {
    for (Open& open : open_)
      if (open.node >= layer.shape.parents() || !layer.shape.children(open.node, open.siblings) ||
          !layer.threads.at(open.node, open.chunk))
        return false;
    for (const Open& parent : above_) {
      const std::uint32_t begin = parent.siblings.begin, width = parent.siblings.width;
      const std::size_t count = parent.rows_end - parent.rows_begin;
      children_.clear();
      for (Open& open : open_) {
        if (open.node - begin >= width) continue;
        open.rows_begin = open.rows_end = rows_.used;
        rows_.room(count + 1); // + 1: a row that does not go on is written and taken back
        rows_.used += count + 1;
        if (open.chunk.word_count != 0) children_.push_back(&open);
      }
      if (width > kMaskWidth) { // a record's children are looked for one by one anyhow
        for (Open* const open : children_)
          open->rows_end += follow_all(parent.chunk, width, open->node - begin, rows_above_.at(parent.rows_begin),
                                       count, open->chunk, rows_.rows.data() + open->rows_begin);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Placed row = rows_above_.rows[parent.rows_begin + i];
        for (Open* const open : children_) {
          const std::uint32_t at = follow(parent.chunk, row.offset, width, open->node - begin);
          const bool there = at != kNoRow;
          rows_.rows[open->rows_end] = {at, row.value};
          call_for(open->chunk, there ? at : 0);
          open->rows_end += there;
        }
      }
    }
    return true;
  }

  const Open& parent_of(std::uint32_t node) const noexcept {
    if (by_child_.empty()) { // which one it is cannot be foreseen: all are looked at
      std::size_t found = 0;
      for (std::size_t i = 0; i < above_.size(); ++i)
        found = node - above_[i].siblings.begin < above_[i].siblings.width ? i : found;
      return above_[found];
    }
    const auto after = std::upper_bound(by_child_.begin(), by_child_.end(), std::uint64_t{node} << 32 | 0xffffffffu);
    return above_[static_cast<std::uint32_t>(*(after - 1))];
  }

  bool add_up(const TreeLayer& layer, const Open& open, std::uint32_t masks, const Kernels& kernels) {
    const std::size_t room = open.siblings.width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums_.size() < room) sums_.resize(room), scores_.resize(room), few_.resize(room), child_.resize(room);
    bias_ = layer.shape.bias.empty() ? nullptr : layer.shape.bias.data() + open.siblings.begin;
    const auto count = static_cast<std::uint32_t>(open.rows_end - open.rows_begin);
    const std::int64_t words = kernels.accumulate(open.chunk.words, open.chunk.word_count, open.siblings.width, masks,
                                                  open.chunk.code, rows_.at(open.rows_begin), count, sums_.data());
    if (words < 0) return false;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    return true;
  }

  // Scores the children of a node and offers them. False: a label does not exist.
  bool score(const Forest& forest, const TreeLayer& layer, const Open& open, bool last, TopK* bar,
             const Kernels& kernels, std::vector<Answer>& answers, TopK* best) {
    bool sound = true;
    const bool hopeful = hope_ && !layer.shape.label.empty();
    if (hopeful) hope_->keep(layer.shape, open.siblings, open.score, sums_.data());
    if (layer.shape.label.empty() && !last) {
      each_hopeful(forest, layer, open, last, bar, kernels,
                   [&](std::uint32_t c, float score) { ranker_.offer(key_of(score, open.siblings.begin + c)); });
    } else {
      each_hopeful(forest, layer, open, last, bar, kernels, [&](std::uint32_t c, float score) {
        sound = sound && offer(forest, layer, open.siblings.begin + c, score, last, answers, best);
      });
    }
    if (bar) bar->tighten();
    if (hopeful) hope_->raise();
    return sound;
  }

  // Where there is a bar for nodes and another for labels, or the chunk is wide: gathers the children that may pass
  // theirs, in child_, and their sums with their biases, in few_. False: no bar is up.
  bool gather(const Forest& forest, const TreeLayer& layer, const Open& open, bool last, const TopK* bar,
              const Kernels& kernels, std::uint32_t& few) noexcept {
    const auto lowest = [&](Key key, bool leaf) {
      if (key == kWorstKey) return -std::numeric_limits<float>::infinity();
      return static_cast<float>(lowest_z(forest.activation, open.score, score_of(key), leaf));
    };
    const bool mixed = !bar && !last; // nodes and labels
    const float label = lowest(bar ? bar->bar() : hope_->bar(), last || mixed);
    const float node = mixed ? lowest(ranker_.bar(), false) : label;
    few = 0;
    if (std::isinf(label)) return false;
    for (std::uint32_t at = 0; at < open.siblings.width; at += kMaskWidth) {
      const Siblings some{open.siblings.begin + at, std::min(kMaskWidth, open.siblings.width - at)};
      const float* const bias = bias_ ? bias_ + at : nullptr;
      std::uint32_t mask = kernels.reaching(sums_.data() + at, bias, some.width, label);
      if (mixed) {
        const std::uint32_t inner = layer.shape.inner(some);
        if (inner != 0) mask = (mask & ~inner) | (kernels.reaching(sums_.data() + at, bias, some.width, node) & inner);
      }
      if (filter_) mask &= filter_->siblings(tree_, layer_, some);
      for (; mask != 0; mask &= mask - 1) {
        const std::uint32_t c = at + static_cast<std::uint32_t>(std::countr_zero(mask));
        child_[few] = c;
        few_[few++] = bias_ ? sums_[c] + bias_[c] : sums_[c];
      }
    }
    return true;
  }

  // Calls take(child, score) for the children that may pass the bar, or for all when there is none. Once the bar is up
  // few can, and which those are is seen from their sums: only they are activated. Before, the best come first, so that
  // whoever stands behind one that did not pass need not be taken.
  template <class Take>
  void each_hopeful(const Forest& forest, const TreeLayer& layer, const Open& open, bool last, TopK* bar,
                    const Kernels& kernels, Take&& take) {
    const std::uint32_t width = open.siblings.width;
    std::uint32_t few = 0;
    const bool wide = bar && width > kMaskWidth, hopeful = hope_ && !bar && !layer.shape.label.empty();
    if ((wide || hopeful) && gather(forest, layer, open, last, bar, kernels, few)) {
      kernels.activate(forest.activation, few_.data(), nullptr, few, open.score, scores_.data());
      for (std::uint32_t i = 0; i < few; ++i) take(child_[i], scores_[i]);
      return;
    }
    if (bar && bar->bar() != kWorstKey && width <= kMaskWidth) {
      const double lowest = lowest_z(forest.activation, open.score, score_of(bar->bar()), last);
      std::uint32_t mask = kernels.reaching(sums_.data(), bias_, width, static_cast<float>(lowest));
      if (filter_) mask &= filter_->siblings(tree_, layer_, open.siblings);
      for (; mask != 0; mask &= mask - 1) {
        const auto c = static_cast<std::uint32_t>(std::countr_zero(mask));
        const float z = bias_ ? sums_[c] + bias_[c] : sums_[c];
        take(c, combine(forest.activation.path, open.score, activate(forest.activation, z)));
      }
      return;
    }
    scores_of_children(kernels, forest.activation, sums_.data(), bias_, width, open.score, scores_.data());
    if (filter_) {
      filter_->each(tree_, layer_, open.siblings, [&](std::uint32_t c) { take(c, scores_[c]); });
    } else if (bar && width <= kMaskWidth && forest.activation.path != Path::log_exp) {
      kernels.rank(scores_.data(), width, order_.data());
      for (std::uint32_t i = 0; i < width && key_of(scores_[order_[i]], 0) < bar->bar(); ++i)
        take(order_[i], scores_[order_[i]]);
    } else {
      for (std::uint32_t c = 0; c < width; ++c) take(c, scores_[c]);
    }
  }

  // Inner nodes compete for the next beam, labels go to the answers. False: the label does not exist.
  bool offer(const Forest& forest, const TreeLayer& layer, std::uint32_t node, float score, bool last,
             std::vector<Answer>& answers, TopK* best) {
    if (layer.shape.label.empty()) return false; // the last layer
    const float shown = leaf_score(forest.activation.path, score);
    if (last && best && key_of(shown, 0) >= best->bar()) return true; // most fall here, before their label is read
    const std::uint32_t label = layer.shape.label[node];
    if (label == kNoLabel && !last) {
      ranker_.offer(key_of(score, node));
      return true;
    }
    if (label >= forest.labels) return false;
    if (best) best->offer(key_of(shown, label));
    else if (hope_) hope_->offer(label, shown);
    else answers.push_back({label, shown});
    return true;
  }

  // The best candidates become the nodes to open, best first; this layer's rows become those above.
  void next_beam(const TreeLayer& below) {
    above_.swap(open_);
    std::swap(rows_above_, rows_);
    rows_.used = 0;
    by_child_.clear();
    if (above_.size() > kFewParents) {
      for (std::size_t i = 0; i < above_.size(); ++i)
        by_child_.push_back(std::uint64_t{above_[i].siblings.begin} << 32 | i);
      std::sort(by_child_.begin(), by_child_.end());
    }
    open_.clear();
    for (const Key key : ranker_.ranked()) {
      const std::uint32_t node = id_of(key);
      open_.push_back({node, score_of(key)});
      __builtin_prefetch(below.shape.child_start.data() + node);
      __builtin_prefetch(below.threads.start.data() + node);
    }
  }

  std::vector<Open> open_, above_;
  RowLists rows_, rows_above_;
  std::vector<std::uint64_t> by_child_; // first child << 32 | place in above_, rising; empty when those are few
  std::vector<float> sums_, scores_, few_;
  std::vector<std::uint32_t> child_; // whose sums are in few_
  std::array<std::uint8_t, kMaskWidth> order_{};
  std::vector<Open*> children_; // of one parent
  const float* bias_ = nullptr; // of the node whose children are being scored
  const Query* query_ = nullptr;
  const Filter* filter_ = nullptr;
  Hope* hope_ = nullptr;
  std::size_t tree_ = 0, layer_ = 0;
  TopK ranker_;
  std::vector<Answer> none_;
};

} // namespace beamwood
