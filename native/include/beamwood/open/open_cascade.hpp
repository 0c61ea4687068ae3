// One node of a cascade tree in, the sums of its children out: nodes in any order, each after its parent.
//
// The rows of the query in a chunk are a list of places; a child's list is made by following each place through its
// record. So what was opened is kept, layer by layer, until the next query. In a bundle of several layers (bundle.hpp) a
// node's chunk has the sums of all its subtree slots: they are kept too, and nodes inside of the bundle have theirs at
// once.
//
// A run of dense rows (score.hpp) is no list: where its first record lies says where all of them do. Records that lie side by
// side and go on in a child lie side by side there too; and as none is longer than the longest that the child's chunk can
// have, all are that long when the first and the last are as far apart as that makes them.
//
// Finding rows and adding them up are two steps: each record is prefetched when its place is known, so whoever knows the
// next node finds its rows first, and memory works while the kernel adds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "beamwood/engine/options.hpp"
#include "beamwood/layout/follow.hpp"
#include "beamwood/layout/forest.hpp"
#include "beamwood/open/query_tail.hpp"
#include "beamwood/open/work.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

class alignas(kApart) CascadeOpener {
public:
  Work work;

  static constexpr std::uint32_t kUnknown = 0xffffffffu; // the number of a parent that is to be looked for

  // Forgets what was opened. The arguments must live until the next start.
  void start(const Forest& forest, std::size_t t, const Query& query, const Kernels& kernels, const SearchOptions&) {
    tree_ = &forest.trees[t], query_ = &query, kernels_ = &kernels;
    tail_.start(query);
    if (layers_.size() < tree_->layers.size()) layers_.resize(tree_->layers.size());
    for (std::size_t l = 0; l < tree_->layers.size(); ++l) {
      Layer& layer = layers_[l];
      layer.opened.clear();
      layer.slots.clear();
      layer.sorted.clear();
      layer.rows.clear();
      layer.sums_used = 0;
      layer.bundle = tree_->bundle(l);
      layer.linked = tree_->has_chunks_below(l);
    }
  }

  // Finds the rows of a node whose children are in layer l; `parent` is the number that its own parent got, or
  // kUnknown. The node's number goes to `number`. False: the model's arrays are damaged.
  bool find(std::size_t l, std::uint32_t node, std::uint32_t parent, std::uint32_t& number) {
    const TreeLayer& layer = tree_->layers[l];
    Layer& here = layers_[l];
    number = static_cast<std::uint32_t>(here.opened.size());
    Opened& open = here.opened.emplace_back();
    open.node = node;
    if (node >= layer.shape.parents() || !layer.shape.children(node, open.siblings)) return false;
    if (layer.step > 0) return find_inside(l, node, parent, open);
    return find_chunk(layer, here, open) && (l == 0 ? from_root(layer, here, open) : from_above(l, parent, here, open));
  }

  const Siblings& siblings(std::size_t l, std::uint32_t number) const noexcept {
    return layers_[l].opened[number].siblings;
  }

  // Whether a node's rows keep memory busy for so long that nothing else should be asked for meanwhile.
  bool has_many_rows(std::size_t l, std::uint32_t number) const noexcept {
    return layers_[l].opened[number].rows.size() >= kShortList;
  }

  // Whether rows of a node should be found before those of another are added up: the query's are few, as above.
  bool finds_ahead() const noexcept { return query_->count - tail_.count() < kShortList; }

  // Whether opening a node costs no more than deciding whether to.
  bool has_few_rows() const noexcept { return query_->count - tail_.count() < kFewRows; }

  // The children's sums, without their bias; null: the model's arrays are damaged. Good until the next call.
  const float* sums(std::size_t l, std::uint32_t number) {
    const TreeLayer& layer = tree_->layers[l];
    Layer& here = layers_[l];
    Opened& open = here.opened[number];
    if (layer.step > 0) {
      const Layer& first = layers_[l - layer.step];
      return first.sums.data() + first.opened[open.origin].sums_at + open.slot;
    }
    const bool kept = here.bundle.layers > 1;
    open.sums_at = kept ? here.sums_used : 0;
    if (kept) here.sums_used += kMaskWidth;
    const std::size_t room = kept ? here.sums_used + kMaskWidth : open.width <= kMaskWidth ? kMaskWidth : 65536;
    if (here.sums.size() < room) here.sums.resize(room); // vectors are read beyond a subtree's last sums
    float* const z = here.sums.data() + open.sums_at;
    return open.stride > 0 ? add_with_run(here, open, z)
                           : add(here, open, here.rows.at(open.rows.begin), open.rows.size(), z);
  }

private:
  static constexpr std::size_t kShortList = 48, kFewRows = 24, kFewOrigins = 16;
  static constexpr std::uint32_t kRunAhead = 16; // lines

  struct Opened {
    std::uint32_t node = 0;
    Siblings siblings{}; // its children
    // In the first layer of a bundle: its chunk and the query's rows there, how many slots it has, and those that are
    // linked to chunks below.
    CascadeChunk chunk{};
    RowList rows{};
    std::uint32_t run = 0, stride = 0; // where the run of the query's tail begins, words of a record; 0: there is none
    std::uint32_t width = 0, bottom_slot = 0;
    Siblings bottom{};
    std::size_t sums_at = 0;
    // In the others: whose subtree it is in, and the first slot of its children.
    std::uint32_t origin = 0, slot = 0;
  };

  struct Layer {
    std::vector<Opened> opened;
    std::vector<SubtreeSlots> slots;   // of those opened, where several layers are bundled
    std::vector<std::uint64_t> sorted; // node << 32 | number, rising: of the first opened, for many
    RowLists rows;
    std::vector<float> sums; // of the last opened; where several layers are bundled, of all, 32 each
    std::size_t sums_used = 0;
    Bundle bundle;
    bool linked = false; // its chunks, to others below
  };

  bool find_chunk(const TreeLayer& layer, Layer& here, Opened& open) {
    if (!layer.cascade.at(open.node, open.chunk)) return false;
    open.width = open.siblings.width, open.bottom = open.siblings;
    if (here.bundle.layers > 1) {
      SubtreeSlots& slots = here.slots.emplace_back();
      if (!here.bundle.slots(open.node, slots)) return false;
      open.width = slots.width(), open.bottom_slot = slots.bottom_slot(), open.bottom = slots.bottom();
    }
    prefetch_siblings(layer.shape.bias, open.siblings);
    prefetch_siblings(here.bundle.shape[here.bundle.layers - 1]->label, open.bottom);
    return true;
  }

  // Prefetches what stands beside the children: their biases or labels.
  template <class Number>
  static void prefetch_siblings(std::span<const Number> numbers, const Siblings& siblings) noexcept {
    if (numbers.empty()) return;
    __builtin_prefetch(numbers.data() + siblings.begin);
    __builtin_prefetch(numbers.data() + siblings.begin + siblings.width / 2);
  }

  const float* add(Layer& here, const Opened& open, const Placed* rows, std::size_t size, float* z) {
    const auto count = static_cast<std::uint32_t>(size);
    const std::int64_t words = kernels_->accumulate(open.chunk.words, open.chunk.word_count, open.width, here.linked,
                                                    open.chunk.code, rows, count, z);
    if (words < 0) return nullptr;
    work += {1, count, static_cast<std::uint64_t>(words) * 4};
    return z;
  }

  const float* add_with_run(Layer& here, const Opened& open, float* z) {
    const bool goes_on = open.rows.size() > 0;
    if (goes_on && !add(here, open, here.rows.at(open.rows.begin), open.rows.size(), z)) return nullptr;
    const RecordForm form = open.chunk.form(open.width, here.linked);
    const std::uint32_t count = tail_.count();
    const auto head = static_cast<std::uint32_t>(form.weights_at(open.width, here.linked ? open.bottom.width : 0));
    const DenseRun run{open.chunk.words + open.run, open.stride, count, head};
    if (!kernels_->add_run(run, open.width, open.chunk.code, tail_.values(), goes_on, z)) {
      one_by_one_.assign(here.rows.at(open.rows.begin), here.rows.at(open.rows.end));
      each_of_run(open);
      return add(here, open, one_by_one_.data(), one_by_one_.size(), z);
    }
    const std::uint64_t words = head + weight_words(open.chunk.code.kind, open.width);
    work += {!goes_on, count, count * words * 4};
    return z;
  }

  // The rows of a run, one by one, behind those in one_by_one_.
  void each_of_run(const Opened& open) {
    for (std::uint32_t i = 0; i < tail_.count(); ++i)
      one_by_one_.push_back({open.run + i * open.stride, tail_.values()[i]});
  }

  // The words of the longest record that a chunk can have.
  static std::uint32_t longest_record(const Layer& here, const Opened& open) noexcept {
    return static_cast<std::uint32_t>(
        open.chunk.form(open.width, here.linked).words(open.width, here.linked ? open.bottom.width : 0));
  }

  bool from_root(const TreeLayer& top, Layer& here, Opened& open) {
    open.rows = {here.rows.used, here.rows.used};
    open.rows.followed = 1; // most of a beam is among its children: it will be followed often
    if (tail_.count() > 0) root_run(top.cascade.root, here, open);
    const Query listed = tail_.rest();
    open.rows.end += root_rows(top.cascade, listed, open.chunk, here.rows.room(listed.count + 1));
    here.rows.used = open.rows.end;
    return true;
  }

  void root_run(std::span<const std::uint32_t> root, const Layer& here, Opened& open) noexcept {
    const std::uint32_t stride = longest_record(here, open), last = root[tail_.last_feature()];
    if (std::uint64_t{last} + stride > open.chunk.word_count) tail_.drop();
    else tail_.trim(root, stride);
    if (tail_.count() > 0) open.run = last - (tail_.count() - 1) * stride, open.stride = stride;
  }

  // As follow_list, of the run of the node above: it goes on as a run, or its rows are followed one by one.
  void follow_run(const Opened& from, std::uint32_t slot, Layer& here, Opened& open) {
    Pages pages;
    if (!from.chunk.pages(from.width, pages)) return;
    const std::uint32_t end = (tail_.count() - 1) * from.stride;
    const std::uint32_t first = follow(from.chunk, pages, from.run, from.width, slot);
    const std::uint32_t last = follow(from.chunk, pages, from.run + end, from.width, slot);
    const std::uint64_t stride = longest_record(here, open), apart = (tail_.count() - 1) * stride;
    if (first != kNoRow && last != kNoRow && first + apart == last && last + stride <= open.chunk.word_count) {
      open.run = first, open.stride = static_cast<std::uint32_t>(stride);
      for (std::uint32_t line = 0; line < kRunAhead; ++line) __builtin_prefetch(open.chunk.words + first + 16 * line);
      return;
    }
    one_by_one_.clear();
    each_of_run(from);
    open.rows.end += follow_all(from.chunk, from.width, slot, one_by_one_.data(), one_by_one_.size(), open.chunk,
                                here.rows.room(one_by_one_.size() + 1));
    here.rows.used = open.rows.end;
  }

  bool from_above(std::size_t l, std::uint32_t parent, Layer& here, Opened& open) {
    const std::size_t above = l - 1, first = above - tree_->layers[above].step;
    Layer& origins = layers_[first];
    const std::uint32_t origin =
        parent == kUnknown
            ? origin_of(origins, open.node, [](const Layer& in, std::uint32_t o) { return in.opened[o].bottom; })
            : origin_number(above, parent);
    if (origin >= origins.opened.size()) return false;
    Opened& from = origins.opened[origin];
    const std::uint32_t place = open.node - from.bottom.begin;
    if (place >= from.bottom.width) return false;
    open.rows = {here.rows.used, here.rows.used};
    if (open.chunk.word_count == 0) return true;
    open.rows.end += follow_list(*kernels_, from.chunk, from.width, from.bottom_slot + place, from.rows, origins.rows,
                                 open.chunk, here.rows.room(from.rows.size() + 1));
    here.rows.used = open.rows.end;
    if (from.stride > 0) follow_run(from, from.bottom_slot + place, here, open);
    return true;
  }

  bool find_inside(std::size_t l, std::uint32_t node, std::uint32_t parent, Opened& open) {
    const std::size_t step = tree_->layers[l].step;
    Layer& first = layers_[l - step];
    const auto run = [step](const Layer& in, std::uint32_t o) {
      return Siblings{in.slots[o].begin[step - 1], in.slots[o].nodes(step - 1)};
    };
    open.origin = parent == kUnknown ? origin_of(first, node, run) : origin_number(l - 1, parent);
    if (open.origin >= first.slots.size() || node - run(first, open.origin).begin >= run(first, open.origin).width)
      return false;
    return first.slots[open.origin].find(step, open.siblings, open.slot);
  }

  // The number, in the first layer of its bundle, of the node in whose subtree slots an opened one is.
  std::uint32_t origin_number(std::size_t l, std::uint32_t number) const noexcept {
    return tree_->layers[l].step == 0 ? number : layers_[l].opened[number].origin;
  }

  // Which of the opened nodes has a node in its run of nodes; any number when none has.
  template <class Run> static std::uint32_t origin_of(Layer& in, std::uint32_t node, const Run& run) {
    const auto count = static_cast<std::uint32_t>(in.opened.size());
    if (count <= kFewOrigins) { // which one it is cannot be foreseen: all are looked at
      std::uint32_t found = 0;
      for (std::uint32_t o = 0; o < count; ++o) found = node - run(in, o).begin < run(in, o).width ? o : found;
      return found;
    }
    if (in.sorted.size() != count) {
      in.sorted.clear();
      for (std::uint32_t o = 0; o < count; ++o) in.sorted.push_back(std::uint64_t{in.opened[o].node} << 32 | o);
      std::sort(in.sorted.begin(), in.sorted.end());
    }
    const auto after =
        std::upper_bound(in.sorted.begin(), in.sorted.end(), node, [&](std::uint32_t n, std::uint64_t key) {
          return n < run(in, static_cast<std::uint32_t>(key)).begin;
        });
    return after == in.sorted.begin() ? 0 : static_cast<std::uint32_t>(*(after - 1));
  }

  const Tree* tree_ = nullptr;
  const Query* query_ = nullptr;
  const Kernels* kernels_ = nullptr;
  std::vector<Layer> layers_;
  QueryTail tail_;
  std::vector<Placed> one_by_one_;
};

} // namespace beamwood
