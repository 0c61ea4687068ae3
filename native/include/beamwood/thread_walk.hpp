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
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/answers.hpp"
#include "beamwood/block.hpp"
#include "beamwood/bound.hpp"
#include "beamwood/filter.hpp"
#include "beamwood/hope.hpp"

namespace beamwood {

class ThreadedWalk {
public:
  Work work;

  // Appends the labels that tree t reaches to `answers`; where it is alone, offers them to `best` instead, which keeps
  // k, and where there is a `hope` for several trees, to that. top: what `top_layer` found for this query, if it was
  // asked before. False: the model's arrays are damaged.
  bool run(const Forest& forest, std::size_t t, const Query& query, std::uint32_t beam, bool bound,
           const Kernels& kernels, std::vector<Answer>& answers, TopK* best, const Filter* filter = nullptr,
           std::span<const Key> top = {}, Hope* hope = nullptr) {
    const Tree& tree = forest.trees[t];
    filter_ = filter, tree_ = t, hope_ = hope;
    start(forest, tree.layers[0], query);
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
      next_beam();
    }
    return true;
  }

  // The best nodes of the first tree's top layer, which must have no labels, in rank order. False: damaged.
  bool top_layer(const Forest& forest, const Query& query, std::uint32_t beam, const Kernels& kernels,
                 std::vector<Key>& keys) {
    const Tree& tree = forest.trees[0];
    filter_ = nullptr, hope_ = nullptr, tree_ = layer_ = 0;
    start(forest, tree.layers[0], query);
    ranker_.reset(beam);
    if (!walk_layer(forest, tree.layers[0], nullptr, false, nullptr, kernels, none_, nullptr)) return false;
    keys = ranker_.ranked();
    return true;
  }

private:
  static constexpr std::size_t kShortList = 48, kFewParents = 16;
  static constexpr double kAny = -std::numeric_limits<double>::infinity(); // no sum is too low

  struct Open {
    std::uint32_t node;
    float score;
    Siblings siblings{};
    ThreadedChunk chunk{};
    std::size_t rows_begin = 0, rows_end = 0;
  };

  void start(const Forest& forest, const TreeLayer& top, const Query& query) {
    rows_.clear();
    above_.clear();
    open_.assign(1, {0, forest.activation.root_score()});
    for (std::uint32_t i = 0; i < query.count; ++i) {
      const std::uint32_t at = top.threads.root[query.feature[i]];
      if (at != kNoRow) rows_.push_back({at, query.value[i]});
    }
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
    if (!above) {
      open.rows_end = rows_.size();
      for (const Placed& row : rows_) call_for(open.chunk, row.offset);
      return true;
    }
    const Open& parent = parent_of(open.node);
    open.rows_begin = open.rows_end = rows_.size();
    if (open.chunk.word_count == 0) return true;
    const std::size_t count = parent.rows_end - parent.rows_begin;
    const std::uint32_t child = open.node - parent.siblings.begin;
    if (child >= parent.siblings.width) return false;
    rows_.resize(open.rows_begin + count);
    open.rows_end += follow_all(parent.chunk, parent.siblings.width, child, rows_above_.data() + parent.rows_begin,
                                count, open.chunk, rows_.data() + open.rows_begin);
    rows_.resize(open.rows_end);
    return true;
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
        open.rows_begin = open.rows_end = rows_.size();
        rows_.resize(rows_.size() + count + 1); // + 1: a row that does not go on is written and taken back
        if (open.chunk.word_count != 0) children_.push_back(&open);
      }
      if (width > kMaskWidth) { // a record's children are found one by one anyhow
        for (Open* const open : children_)
          open->rows_end += follow_all(parent.chunk, width, open->node - begin, rows_above_.data() + parent.rows_begin,
                                       count, open->chunk, rows_.data() + open->rows_begin);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const Placed row = rows_above_[parent.rows_begin + i];
        for (Open* const open : children_) {
          const std::uint32_t at = follow(parent.chunk, row.offset, width, open->node - begin);
          const bool there = at != kNoRow;
          rows_[open->rows_end] = {at, row.value};
          call_for(open->chunk, there ? at : 0);
          open->rows_end += there;
        }
      }
    }
    return true;
  }

  const Open& parent_of(std::uint32_t node) const noexcept {
    if (by_child_.empty()) {
      std::size_t i = 0;
      while (i + 1 < above_.size() && node - above_[i].siblings.begin >= above_[i].siblings.width) ++i;
      return above_[i];
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
                                                  open.chunk.code, rows_.data() + open.rows_begin, count, sums_.data());
    if (words < 0) return false;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    return true;
  }

  // Scores the children of a node and offers them. Once the bar is up few children can pass it, and which those are is
  // seen from their sums: only they are activated.
  bool score(const Forest& forest, const TreeLayer& layer, const Open& open, bool last, TopK* bar,
             const Kernels& kernels, std::vector<Answer>& answers, TopK* best) {
    const std::uint32_t width = open.siblings.width;
    const bool hopeful = hope_ && !layer.shape.label.empty();
    if (hopeful) hope_->keep(layer.shape, open.siblings, open.score, sums_.data());
    bool sound = true;
    const auto take = [&](std::uint32_t c, float score) {
      sound = sound && offer(forest, layer, open.siblings.begin + c, score, last, answers, best);
    };
    if (bar && bar->bar() != kWorstKey && width <= kMaskWidth) {
      const double lowest = lowest_z(forest.activation, open.score, score_of(bar->bar()), last);
      std::uint32_t mask = kernels.reaching(sums_.data(), bias_, width, static_cast<float>(lowest));
      if (filter_) mask &= filter_->siblings(tree_, layer_, open.siblings);
      for (; mask != 0; mask &= mask - 1) {
        const auto c = static_cast<std::uint32_t>(std::countr_zero(mask));
        const float z = bias_ ? sums_[c] + bias_[c] : sums_[c];
        take(c, combine(forest.activation.path, open.score, activate(forest.activation, z)));
      }
    } else if ((hopeful || (bar && width > kMaskWidth)) && reach_of(forest, open.score, last, bar, hopeful) > kAny) {
      const auto lowest = static_cast<float>(reach_of(forest, open.score, last, bar, hopeful));
      const std::uint32_t few = gather(open.siblings, kernels, lowest);
      kernels.activate(forest.activation, few_.data(), nullptr, few, open.score, scores_.data());
      for (std::uint32_t i = 0; i < few; ++i) take(child_[i], scores_[i]);
    } else {
      scores_of_children(kernels, forest.activation, sums_.data(), bias_, width, open.score, scores_.data());
      if (filter_) filter_->each(tree_, layer_, open.siblings, [&](std::uint32_t c) { take(c, scores_[c]); });
      else
        for (std::uint32_t c = 0; c < width; ++c) take(c, scores_[c]);
    }
    if (bar) bar->tighten();
    if (hopeful) hope_->raise();
    return sound;
  }

  // The lowest sum (with its bias) that lifts a child to a bar that matters in this layer, or kAny.
  double reach_of(const Forest& forest, float parent, bool last, const TopK* bar, bool hopeful) const noexcept {
    const auto lowest = [&](Key key, bool leaf) {
      return key == kWorstKey ? kAny : lowest_z(forest.activation, parent, score_of(key), leaf);
    };
    if (!hopeful) return lowest(bar->bar(), last);
    const double label = lowest(hope_->bar(), true);
    return last ? label : std::min(label, lowest(ranker_.bar(), false));
  }

  // The children whose sums are not below `lowest`, and these sums with their biases, side by side.
  std::uint32_t gather(const Siblings& siblings, const Kernels& kernels, float lowest) noexcept {
    std::uint32_t few = 0;
    for (std::uint32_t at = 0; at < siblings.width; at += kMaskWidth) {
      const std::uint32_t width = std::min(kMaskWidth, siblings.width - at);
      std::uint32_t mask = kernels.reaching(sums_.data() + at, bias_ ? bias_ + at : nullptr, width, lowest);
      if (filter_) mask &= filter_->siblings(tree_, layer_, {siblings.begin + at, width});
      for (; mask != 0; mask &= mask - 1) {
        const std::uint32_t c = at + static_cast<std::uint32_t>(std::countr_zero(mask));
        child_[few] = c;
        few_[few++] = bias_ ? sums_[c] + bias_[c] : sums_[c];
      }
    }
    return few;
  }

  // Inner nodes compete for the next beam, labels go to the answers. False: the label does not exist.
  bool offer(const Forest& forest, const TreeLayer& layer, std::uint32_t node, float score, bool last,
             std::vector<Answer>& answers, TopK* best) {
    if (layer.shape.label.empty()) {
      if (!last) ranker_.offer(key_of(score, node));
      return !last;
    }
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
  void next_beam() {
    above_.swap(open_);
    rows_above_.swap(rows_);
    rows_.clear();
    by_child_.clear();
    if (above_.size() > kFewParents) {
      for (std::size_t i = 0; i < above_.size(); ++i)
        by_child_.push_back(std::uint64_t{above_[i].siblings.begin} << 32 | i);
      std::sort(by_child_.begin(), by_child_.end());
    }
    open_.clear();
    for (const Key key : ranker_.ranked()) open_.push_back({id_of(key), score_of(key)});
  }

  std::vector<Open> open_, above_;
  std::vector<Placed> rows_, rows_above_;
  std::vector<std::uint64_t> by_child_; // first child << 32 | place in above_, rising; empty when those are few
  std::vector<float> sums_, scores_, few_;
  std::vector<std::uint32_t> child_; // whose sums are in few_
  std::vector<Open*> children_; // of one parent
  const float* bias_ = nullptr; // of the node whose children are being scored
  const Filter* filter_ = nullptr;
  Hope* hope_ = nullptr;
  std::size_t tree_ = 0, layer_ = 0;
  TopK ranker_;
  std::vector<Answer> none_;
};

} // namespace beamwood
