// One query and a cascade tree in, the labels it reaches out: beam search that follows rows downwards.
//
// The rows of the query in a chunk are a list of places; a child's list is made by following each place through its
// record. Each record is called for when its place is known, and short lists are made one beam node ahead of the sums,
// so that memory works while the kernel adds. In a bundle of several layers (bundle.hpp) this is done in the first one
// alone: the sums of the clans that were opened there serve the others.
//
// Nodes are opened best first until the exact bound says that none that is left can contribute (bound.hpp). With a
// filter, children that it does not enter are left out where children are scored.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/answers.hpp"
#include "beamwood/engine/block.hpp"
#include "beamwood/engine/bound.hpp"
#include "beamwood/engine/filter.hpp"
#include "beamwood/engine/hope.hpp"

namespace beamwood {

class alignas(kApart) CascadeWalk {
public:
  Work work;

  // Appends the labels that tree t reaches to `answers`; where it is alone, offers them to `best` instead, which keeps
  // k, and where there is a `hope` for several trees, to that. top: what `top_bundle` found for this query, if it was
  // asked before. False: the model's arrays are damaged.
  bool run(const Forest& forest, std::size_t t, const Query& query, std::uint32_t beam, bool bound,
           const Kernels& kernels, std::vector<Answer>& answers, TopK* best, const Filter* filter = nullptr,
           std::span<const Key> top = {}, Hope* hope = nullptr) {
    const Tree& tree = forest.trees[t];
    filter_ = filter, hope_ = hope, tree_ = t;
    start(forest, tree, query);
    if (!top.empty()) {
      if (!prepare(tree, 0, kernels)) return false;
      for (ranker_.reset(beam); const Key key : top) ranker_.offer(key);
      layer_ = bundle_.layers - 1;
      next_beam(tree, true);
    }
    for (;;) {
      const bool last = layer_ + 1 == tree.layers.size();
      TopK* const bar = !bound || !bound_holds(forest, tree.layers[layer_], last && best) ? nullptr
                        : last                                                            ? best
                                                                                          : &ranker_;
      ranker_.reset(beam);
      if (!walk_layer(forest, tree, bar, kernels, answers, best)) return false;
      if (last) return true;
      next_beam(tree, tree.layers[layer_].step == 0);
    }
  }

  // Whether `top_bundle` can be asked: there is enough below it to make up for the trouble.
  static bool has_top(const Forest& forest) noexcept {
    const Tree& tree = forest.trees[0];
    const Bundle bundle = tree.bundle(0);
    for (std::size_t step = 0; step < bundle.layers; ++step)
      if (!bundle.shape[step]->label.empty()) return false;
    return tree.layers.size() > bundle.layers + 1;
  }

  // The best nodes of the last layer of the first tree's top bundle, in rank order. False: damaged.
  bool top_bundle(const Forest& forest, const Query& query, std::uint32_t beam, const Kernels& kernels,
                  std::vector<Key>& keys) {
    const Tree& tree = forest.trees[0];
    filter_ = nullptr, hope_ = nullptr, tree_ = 0;
    start(forest, tree, query);
    for (;;) {
      ranker_.reset(beam);
      if (!walk_layer(forest, tree, nullptr, kernels, none_, nullptr)) return false;
      if (tree.ends_bundle(layer_)) break;
      next_beam(tree, layer_ == 0);
    }
    keys = ranker_.ranked();
    return true;
  }

private:
  static constexpr std::size_t kShortList = 48, kFewOrigins = 16;

  struct Open {
    std::uint32_t node;
    float score;
    Siblings siblings{}; // its children
    // Where a bundle begins: its chunk and the rows of the query there, how many slots it has, and those who lead on.
    CascadeChunk chunk{};
    RowList rows{};
    std::uint32_t width = 0, bottom_slot = 0;
    Siblings bottom{};
  };

  void start(const Forest& forest, const Tree& tree, const Query& query) {
    query_ = &query;
    rows_.used = 0;
    origins_.clear();
    open_.assign(1, {0, forest.activation.root_score()});
    layer_ = 0;
    bundle_ = tree.bundle(0);
    leads_on_ = tree.leads_on(0);
  }

  bool walk_layer(const Forest& forest, const Tree& tree, TopK* bar, const Kernels& kernels,
                  std::vector<Answer>& answers, TopK* best) {
    const TreeLayer& layer = tree.layers[layer_];
    const bool last = layer_ + 1 == tree.layers.size(), inside = layer.step > 0;
    std::size_t prepared = 0;
    if (!bar && layer_ > 0 && !inside) { // everything will be opened
      if (!prepare_all(layer)) return false;
      prepared = open_.size();
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (bar && beaten(forest, open_[i].score, last, *bar)) {
        open_.resize(i); // those after it were not opened and have no children to rank
        break;
      }
      if (inside) {
        if (!find_sums(layer, open_[i])) return false;
      } else {
        if (prepared == i && !prepare(tree, prepared++, kernels)) return false;
        // Long lists keep memory busy by themselves, and one that is made ahead may turn out not to be needed.
        if (prepared == i + 1 && prepared < open_.size() && open_[i].rows.size() < kShortList &&
            !(bar && beaten(forest, open_[i + 1].score, last, *bar)) && !prepare(tree, prepared++, kernels))
          return false;
        if (!add_up(i, kernels)) return false;
      }
      bias_ = layer.shape.bias.empty() ? nullptr : layer.shape.bias.data() + open_[i].siblings.begin;
      if (!score(forest, layer, open_[i], last, bar, kernels, answers, best)) return false;
    }
    return true;
  }

  // Finds a node's clan and chunk, in the first layer of a bundle.
  bool find_chunk(const TreeLayer& layer, std::size_t i) {
    Open& open = open_[i];
    if (open.node >= layer.shape.parents() || !layer.shape.children(open.node, open.siblings) ||
        !layer.cascade.at(open.node, open.chunk))
      return false;
    open.width = open.siblings.width, open.bottom_slot = 0, open.bottom = open.siblings;
    if (bundle_.layers == 1) return true;
    if (clans_.size() <= i) clans_.resize(i + 1), clan_sums_.resize((i + 2) * kMaskWidth);
    Clan& clan = clans_[i];
    if (!bundle_.clan(open.node, clan)) return false;
    open.width = clan.width(), open.bottom_slot = clan.bottom_slot(), open.bottom = clan.bottom();
    return true;
  }

  // Finds a node's chunk and makes its list of rows from those of the chunk above, calling for each record.
  bool prepare(const Tree& tree, std::size_t i, const Kernels& kernels) {
    const TreeLayer& layer = tree.layers[layer_];
    if (!find_chunk(layer, i)) return false;
    Open& open = open_[i];
    call_for_siblings(layer.shape.bias, open.siblings);
    call_for_siblings(bundle_.shape[bundle_.layers - 1]->label, open.bottom);
    open.rows = {rows_.used, rows_.used};
    if (layer_ == 0) {
      open.rows.end += root_rows(layer.cascade, *query_, open.chunk, rows_.room(query_->count + 1));
    } else if (open.chunk.word_count != 0) {
      Open& from = origins_[origin_of(open.node, [this](std::size_t o) { return origins_[o].bottom; })];
      const std::uint32_t place = open.node - from.bottom.begin;
      if (place >= from.bottom.width) return false;
      open.rows.end += follow_list(kernels, from.chunk, from.width, from.bottom_slot + place, from.rows, rows_above_,
                                   open.chunk, rows_.room(from.rows.size() + 1));
    }
    rows_.used = open.rows.end;
    return true;
  }

  // Beyond the first layer of a bundle: a node's children have had their sums added up with those of their clan.
  bool find_sums(const TreeLayer& layer, Open& open) {
    const std::size_t above = layer.step - 1;
    const auto run = [&](std::size_t o) { return Siblings{clans_[o].begin[above], clans_[o].nodes(above)}; };
    const std::size_t origin = origin_of(open.node, run);
    std::uint32_t slot;
    if (open.node >= layer.shape.parents() || open.node - run(origin).begin >= run(origin).width ||
        !layer.shape.children(open.node, open.siblings) || !clans_[origin].find(layer.step, open.siblings, slot))
      return false;
    z_ = clan_sums_.data() + origin * kMaskWidth + slot;
    return true;
  }

  // Calls for what stands beside the children: their biases or labels.
  template <class Number>
  static void call_for_siblings(std::span<const Number> numbers, const Siblings& siblings) noexcept {
    if (numbers.empty()) return;
    __builtin_prefetch(numbers.data() + siblings.begin);
    __builtin_prefetch(numbers.data() + siblings.begin + siblings.width / 2);
  }

  // The same for all nodes at once, origin by origin: a record is read once for all that are opened below it.
  bool prepare_all(const TreeLayer& layer) {
    for (std::size_t i = 0; i < open_.size(); ++i)
      if (!find_chunk(layer, i)) return false;
    for (const Open& from : origins_) {
      const std::size_t count = from.rows.size();
      children_.clear();
      for (Open& open : open_) {
        if (open.node - from.bottom.begin >= from.bottom.width) continue;
        open.rows = {rows_.used, rows_.used};
        rows_.room(count + 1); // + 1: a row that does not go on is written and taken back
        rows_.used += count + 1;
        if (open.chunk.word_count != 0) children_.push_back(&open);
      }
      const auto slot_of = [&from](const Open& open) { return from.bottom_slot + (open.node - from.bottom.begin); };
      if (from.width > kMaskWidth) { // a record's children are looked for one by one anyhow
        for (Open* const open : children_)
          open->rows.end += follow_all(from.chunk, from.width, slot_of(*open), rows_above_.at(from.rows.begin), count,
                                       open->chunk, rows_.rows.data() + open->rows.begin);
        continue;
      }
      Pages pages;
      if (!from.chunk.pages(from.width, pages)) return false;
      for (std::size_t i = 0; i < count; ++i) {
        const Placed row = rows_above_.rows[from.rows.begin + i];
        for (Open* const open : children_) {
          const std::uint32_t at = follow(from.chunk, pages, row.offset, from.width, slot_of(*open));
          const bool there = at != kNoRow;
          rows_.rows[open->rows.end] = {at, row.value};
          call_for(open->chunk, there ? at : 0);
          open->rows.end += there;
        }
      }
    }
    return true;
  }

  // Which of the origins has a node in its run of nodes.
  template <class Run> std::size_t origin_of(std::uint32_t node, Run&& run) const noexcept {
    if (sorted_.empty()) { // which one it is cannot be foreseen: all are looked at
      std::size_t found = 0;
      for (std::size_t o = 0; o < origins_.size(); ++o) found = node - run(o).begin < run(o).width ? o : found;
      return found;
    }
    const auto after = std::upper_bound(sorted_.begin(), sorted_.end(), node, [&](std::uint32_t n, std::uint64_t key) {
      return n < run(static_cast<std::uint32_t>(key)).begin;
    });
    return after == sorted_.begin() ? 0 : static_cast<std::uint32_t>(*(after - 1));
  }

  // Adds up the rows of an opened node's chunk: its children's sums are at z_.
  bool add_up(std::size_t i, const Kernels& kernels) {
    const Open& open = open_[i];
    const std::size_t room = open.width <= kMaskWidth ? kMaskWidth : 65536;
    if (sums_.size() < room) sums_.resize(room), scores_.resize(room), few_.resize(room), child_.resize(room);
    float* const sums = bundle_.layers == 1 ? sums_.data() : clan_sums_.data() + i * kMaskWidth;
    const auto count = static_cast<std::uint32_t>(open.rows.size());
    const std::int64_t words = kernels.accumulate(open.chunk.words, open.chunk.word_count, open.width, leads_on_,
                                                  open.chunk.code, rows_.at(open.rows.begin), count, sums);
    z_ = sums;
    if (words < 0) return false;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    return true;
  }

  // Scores the children of a node and offers them. False: a label does not exist.
  bool score(const Forest& forest, const TreeLayer& layer, const Open& open, bool last, TopK* bar,
             const Kernels& kernels, std::vector<Answer>& answers, TopK* best) {
    bool sound = true;
    const bool hopeful = hope_ && !layer.shape.label.empty();
    if (hopeful) hope_->keep(layer.shape, open.siblings, open.score, z_);
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
      std::uint32_t mask = kernels.reaching(z_ + at, bias, some.width, label);
      if (mixed) {
        const std::uint32_t inner = layer.shape.inner(some);
        if (inner != 0) mask = (mask & ~inner) | (kernels.reaching(z_ + at, bias, some.width, node) & inner);
      }
      if (filter_) mask &= filter_->siblings(tree_, layer_, some);
      for (; mask != 0; mask &= mask - 1) {
        const std::uint32_t c = at + static_cast<std::uint32_t>(std::countr_zero(mask));
        child_[few] = c;
        few_[few++] = bias_ ? z_[c] + bias_[c] : z_[c];
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
      std::uint32_t mask = kernels.reaching(z_, bias_, width, static_cast<float>(lowest));
      if (filter_) mask &= filter_->siblings(tree_, layer_, open.siblings);
      for (; mask != 0; mask &= mask - 1) {
        const auto c = static_cast<std::uint32_t>(std::countr_zero(mask));
        const float z = bias_ ? z_[c] + bias_[c] : z_[c];
        take(c, combine(forest.activation.path, open.score, activate(forest.activation, z)));
      }
      return;
    }
    scores_of_children(kernels, forest.activation, z_, bias_, width, open.score, scores_.data());
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

  // The best candidates become the nodes to open, best first. begun: those that were opened are the origins from here on.
  void next_beam(const Tree& tree, bool begun) {
    if (begun) {
      origins_.swap(open_);
      std::swap(rows_above_, rows_);
      rows_.used = 0;
      sorted_.clear();
      if (origins_.size() > kFewOrigins) {
        for (std::size_t o = 0; o < origins_.size(); ++o) sorted_.push_back(std::uint64_t{origins_[o].node} << 32 | o);
        std::sort(sorted_.begin(), sorted_.end());
      }
    }
    const TreeLayer& below = tree.layers[++layer_];
    if (below.step == 0) bundle_ = tree.bundle(layer_), leads_on_ = tree.leads_on(layer_);
    open_.clear();
    for (const Key key : ranker_.ranked()) {
      const std::uint32_t node = id_of(key);
      open_.push_back({node, score_of(key)});
      __builtin_prefetch(below.shape.child_start.data() + node);
      if (below.step == 0) __builtin_prefetch(below.cascade.start.data() + node);
    }
  }

  std::vector<Open> open_, origins_; // the nodes of this layer's parents; those of the bundle that was begun last
  RowLists rows_, rows_above_;
  std::vector<std::uint64_t> sorted_; // node << 32 | place in origins_, rising; empty when those are few
  std::vector<float> sums_, scores_, few_;
  std::vector<std::uint32_t> child_; // whose sums are in few_
  std::array<std::uint8_t, kMaskWidth> order_{};
  std::vector<Open*> children_;  // of one origin
  std::vector<Clan> clans_;      // in a bundle of several layers: those of the origins,
  std::vector<float> clan_sums_; // and their sums, 32 each
  const float* z_ = nullptr;     // the sums of the node whose children are being scored
  const float* bias_ = nullptr;  // of the node whose children are being scored
  const Query* query_ = nullptr;
  const Filter* filter_ = nullptr;
  Hope* hope_ = nullptr;
  std::size_t tree_ = 0, layer_ = 0;
  Bundle bundle_;
  bool leads_on_ = false; // its chunks
  TopK ranker_;
  std::vector<Answer> none_;
};

} // namespace beamwood
