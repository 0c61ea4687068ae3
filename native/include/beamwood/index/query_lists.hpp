// A query in, its inverted lists out, tile by tile; and the exact scores of given labels.
//
// The law: a label's score is law 1's sum, whatever the order labels are given in: from +0, x_j * w_j for rising feature
// j, the bias last.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/engine/csr.hpp"
#include "beamwood/index/products.hpp"

namespace beamwood {

class QueryLists {
public:
  static constexpr std::uint32_t kNoTile = std::numeric_limits<std::uint32_t>::max();

  std::span<const PostingList> all() const noexcept { return lists_; } // by rising feature
  bool negative() const noexcept { return negative_; }                 // whether some product may be

  // False: the arrays are damaged, here as below.
  bool open(const Postings& index, const Query& query) {
    index_ = &index;
    lists_.clear();
    negative_ = false;
    for (std::uint32_t i = 0; i < query.count; ++i) {
      __builtin_prefetch(&index.start[query.feature[i]]);
      __builtin_prefetch(&index.top[query.feature[i]]);
    }
    for (std::uint32_t i = 0; i < query.count; ++i) {
      if (query.value[i] == 0) continue;
      PostingList list;
      if (!open_list(index, query.feature[i], query.value[i], list)) return false;
      if (list.first == list.end) continue;
      __builtin_prefetch(list.first);
      negative_ |= query.value[i] < 0 || std::signbit(index.top[query.feature[i]]);
      lists_.push_back(list);
    }
    falling_.resize(lists_.size());
    for (std::uint32_t i = 0; i < falling_.size(); ++i) falling_[i] = i;
    std::sort(falling_.begin(), falling_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return lists_[a].most != lists_[b].most ? lists_[a].most > lists_[b].most : a < b;
    });
    return true;
  }

  // Brings every list to its first piece from `tile` on. active: those with a piece in it, by what they can bring; next:
  // the first tile that one of them has a piece in.
  bool come_to(std::uint32_t tile, std::vector<const PostingList*>& active, std::uint32_t& next) {
    next = kNoTile;
    for (PostingList& list : lists_) {
      if (!list.seek(*index_, tile)) return false;
      if (!list.over) next = std::min(next, list.piece.tile);
    }
    active.clear();
    for (const std::uint32_t i : falling_)
      if (!lists_[i].over && lists_[i].piece.tile == tile) active.push_back(&lists_[i]);
    return true;
  }

  // Labels are below index.labels; fastest when they rise.
  bool score(std::span<const std::uint32_t> labels, float* scores) {
    std::fill(scores, scores + labels.size(), 0.0f);
    places_.clear();
    for (const std::uint32_t label : labels) places_.push_back(static_cast<std::uint16_t>(label % kTile));
    for (std::size_t from = 0, to = 0; from < labels.size(); from = to) {
      const std::uint32_t tile = labels[from] / kTile;
      while (to < labels.size() && labels[to] / kTile == tile) ++to;
      const auto places = std::span(places_).subspan(from, to - from);
      for (PostingList& list : lists_) {
        if (!list.seek(*index_, tile)) return false;
        if (!list.over && list.piece.tile == tile) list.piece.prefetch(places);
      }
      for (const PostingList& list : lists_) {
        if (!list.over && list.piece.tile == tile)
          products_at(*index_, list, places, [&](std::size_t i, float product) { scores[from + i] += product; });
      }
    }
    if (!index_->bias.empty())
      for (std::size_t i = 0; i < labels.size(); ++i) scores[i] += index_->bias[labels[i]];
    return true;
  }

  // Above what any sum comes to, where nothing is negative.
  double most() const noexcept {
    double sum = 0;
    for (const PostingList& list : lists_) sum += static_cast<double>(list.most);
    return sum * (1 + static_cast<double>(lists_.size()) * 0x1p-22);
  }

private:
  const Postings* index_ = nullptr;
  bool negative_ = false;
  std::vector<PostingList> lists_;     // by rising feature
  std::vector<std::uint32_t> falling_; // their numbers by what they can bring
  std::vector<std::uint16_t> places_;  // of labels whose scores are asked for
};

} // namespace beamwood
