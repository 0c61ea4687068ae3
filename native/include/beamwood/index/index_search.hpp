// A query and inverted lists in, the exact best k of x · w + b over all labels out.
//
// The law: an answer's score is the one sum of law 1: from +0, x_j * w_j for rising feature j, the bias last. Bounds only
// skip what cannot win: they are sums of the same rounded products in another order, and a sum of n numbers that are not
// negative differs between two orders by less than the factors `grow_` and `shrink_` allow for. With one or two lists
// every order gives the same bits, and the factors are 1.
//
// Labels are searched tile by tile (postings.hpp), so that the sums of a tile stay in the cache. Where nothing is
// negative, lists are added in falling order of what they can bring (MaxScore: Turtle and Flood, 1995): as soon as the
// rest of them together cannot lift a new label to the k-th best, only labels already met are looked up in the rest. The
// k-th best is guessed from below: the best k sums so far are completed, and k labels that reach a score make it a bar; or
// the caller gives one. Where lists are long, bounds of all labels are added up instead, many at once (dense_sums.hpp).
// Whatever has negative numbers or a bias is added up whole.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "beamwood/engine/csr.hpp"
#include "beamwood/engine/filter.hpp"
#include "beamwood/index/dense_sums.hpp"
#include "beamwood/index/known_sums.hpp"
#include "beamwood/index/met_labels.hpp"
#include "beamwood/index/products.hpp"
#include "beamwood/index/query_lists.hpp"
#include "beamwood/sink/topk.hpp"

namespace beamwood {

// Scratch memory of one worker: nothing is allocated once it has grown.
class alignas(kApart) IndexSearch {
public:
  static constexpr float kAnySum = std::numeric_limits<float>::denorm_min(); // every label that is met is above 0

  Work work;

  // The lists of a query, which run and score take. False: the arrays are damaged.
  bool open(const Postings& index, const Query& query) {
    index_ = &index;
    return lists_.open(index, query);
  }
  const QueryLists& lists() const noexcept { return lists_; }

  // The exact scores of given labels, which are below index.labels; fastest when they rise.
  bool score(std::span<const std::uint32_t> labels, float* scores) { return lists_.score(labels, scores); }
  bool score(const Postings& index, const Query& query, std::span<const std::uint32_t> labels, float* scores) {
    return open(index, query) && score(labels, scores);
  }

  // The best k labels in rank order, as keys (order.hpp) in best(). matched_only: only labels whose sum is above 0;
  // otherwise every allowed label is a candidate, also one that has nothing in common with the query.
  // False: the arrays are damaged.
  bool run(const Postings& index, const Query& query, std::uint32_t k, const Filter* filter, bool matched_only) {
    return open(index, query) && run(k, filter, matched_only);
  }

  // least: of labels below it some may be missing, and others may stand in their place; above 0, and only where
  // matched_only. So is `known`: allowed labels, which are not looked for.
  bool run(std::uint32_t k, const Filter* filter, bool matched_only, float least = kAnySum, KnownSums known = {}) {
    const Postings& index = *index_;
    filter_ = filter, k_ = std::min(k, index.labels), matched_only_ = matched_only;
    best_.reset(std::max(1u, k_));
    if (k_ == 0) return true;
    const bool whole = lists_.negative() || !index.bias.empty() || lists_.all().size() > kMostLists;
    if (sums_.empty()) sums_.assign(kTile, 0.0f);
    least_ = least, given_ = least > kAnySum, known_ = whole ? KnownSums{} : known;
    known_.offer_to(best_);
    for (std::uint32_t tile = 0; static_cast<std::uint64_t>(tile) * kTile < index.labels; ++tile) {
      std::uint32_t next = tile;
      if (!lists_.come_to(tile, active_, next)) return false;
      if (whole && (!matched_only_ || !index.bias.empty())) next = tile; // labels without a match are candidates
      if (next == QueryLists::kNoTile) break;
      if (next != tile) {
        tile = next - 1;
        continue;
      }
      first_label_ = tile * kTile;
      if (!(whole ? add_up(tile) : search_tile())) { // damaged: sums must be zeros again
        std::fill(sums_.begin(), sums_.end(), 0.0f);
        return false;
      }
    }
    if (!whole && !matched_only_) fill_up();
    return true;
  }

  TopK& best() noexcept { return best_; }

private:
  static constexpr std::size_t kMostLists = 1u << 18; // above it the factors would not be small
  static constexpr std::uint32_t kRun = 64;           // labels that are compared with the bar at once
  static constexpr std::uint32_t kMany = 64;          // labels met for each asked for: a bar that was given is too low
  static constexpr std::uint32_t kLookUp = 16;        // what a look-up costs, in postings that are added up

  // The sum of a place of the tile in law 1's order.
  float exact_sum(std::uint32_t place) const noexcept {
    float sum = 0;
    for (const PostingList& list : lists_.all())
      if (!list.over && list.piece.tile == active_[0]->piece.tile) sum += product_at(*index_, list, place);
    return sum;
  }

  bool allowed(std::uint32_t place) const noexcept { return !filter_ || filter_->allows(first_label_ + place); }
  bool wanted(std::uint32_t place) const noexcept { return allowed(place) && !known_.has(first_label_ + place); }

  // What a label of this tile must come to; at equal scores the smaller label wins, and those of the answer so far may
  // all be smaller.
  float bar() const noexcept {
    const Key key = best_.bar();
    if (key == kWorstKey) return least_;
    float score = score_of(key);
    if (id_of(key) < first_label_) score = std::nextafter(score, std::numeric_limits<float>::infinity());
    return std::max(score, least_);
  }

  // Nothing is negative.
  bool search_tile() {
    const std::size_t m = active_.size();
    met_.clear();
    const float slack = m <= 2 ? 0.0f : static_cast<float>(4 * m + 8) * 0x1p-24f;
    grow_ = 1.0f + slack, shrink_ = 1.0f - slack;
    rest_.assign(m + 1, 0.0f);
    postings_.assign(m + 1, 0);
    for (std::size_t i = m; i-- > 0;) {
      rest_[i] = rest_[i + 1] + active_[i]->most;
      postings_[i] = postings_[i + 1] + active_[i]->piece.count;
    }
    bool done = false;
    if (brings_many() && !search_dense(done)) return false;
    if (done) return true;
    std::size_t added = 0, completed = 0;
    for (; added < m && rest_[added] * grow_ >= bar(); ++added) {
      if (added == 0 && !(rest_[1] * grow_ >= bar())) // only this list brings new labels: no sums are needed
        return m == 1 ? offer_one() : take_from_one() && finish(1);
      if (added > 0 && worth_completing(added)) {
        complete_best(added);
        completed = added;
        if (!(rest_[added] * grow_ >= bar())) break;
      }
      if (!add(*active_[added])) return false;
    }
    if (completed != added && met_.count() > (given_ ? kMany : 1) * k_) complete_best(added);
    met_.take(sums_.data(), bar_with(rest_[added]));
    return finish(added);
  }

  // Whether the lists that bring in labels are so long that bounds for all labels cost less.
  bool brings_many() const noexcept {
    const std::uint32_t width = index_->width(active_[0]->piece.tile);
    if (!DenseSums::pays(active_, width)) return false;
    const float need = bar();
    std::uint64_t brought = 0, bounds = width / 16;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (rest_[i] * grow_ >= need) brought += active_[i]->piece.count;
      bounds += active_[i]->codes ? width / 32 : active_[i]->piece.count;
    }
    return brought > bounds;
  }

  // Lists that most labels have: bounds of all labels first, then the exact sums of those that may still win. done: false
  // where there is no bar to hold against the bounds. False: damaged.
  bool search_dense(bool& done) {
    const std::uint64_t a_look = std::uint64_t{kLookUp} * active_.size();
    if (2 * a_look * k_ > postings_[0]) return true;
    if (!dense_.add(*index_, active_, active_[0]->piece.tile, work)) return false;
    if (best_.bar() == kWorstKey) { // k labels that reach a score make it a bar
      const auto leaders = dense_.best(k_, [this](std::uint32_t place) { return allowed(place); });
      float least = leaders.size() < k_ ? 0.0f : std::numeric_limits<float>::infinity();
      for (const std::uint16_t place : leaders) least = std::min(least, exact_sum(place));
      least_ = std::max(least_, least);
    }
    std::span<const std::uint16_t> places;
    if (!dense_.reaching(bar(), grow_, places)) return true;
    done = true;
    if (a_look * places.size() > postings_[0]) return add_in_order();
    float need = bar();
    for (const std::uint16_t place : places) {
      if (!(dense_.bound(place) * static_cast<double>(grow_) >= static_cast<double>(need)) || !wanted(place)) continue;
      if (first_label_ + place >= index_->labels) return false;
      const float sum = exact_sum(place);
      if (!(sum > 0)) continue;
      best_.offer(key_of(sum, first_label_ + place));
      need = bar();
    }
    return true;
  }

  // Every entry may be a label that was not met before.
  bool add(const PostingList& list) {
    float* const sums = sums_.data();
    std::uint16_t* const met = met_.room(list.piece.count);
    std::uint32_t n = met_.count();
    const bool whole = each_product(*index_, list, work, [&](std::uint32_t place, float product) {
      const float before = sums[place], now = before + product;
      sums[place] = now;
      met[n] = static_cast<std::uint16_t>(place);
      n += static_cast<std::uint32_t>((before == 0) & (now != 0));
    });
    met_.set_count(n);
    return whole;
  }

  MetLabels::Bar bar_with(float rest) const noexcept { return {rest, grow_, bar()}; }

  bool worth_completing(std::size_t added) const noexcept {
    return !given_ && met_.count() >= k_ &&
           postings_[added] > met_.count() + std::size_t{kLookUp} * k_ * (active_.size() - added);
  }

  // Completes the k best sums so far by look-ups: k labels then reach the least of them.
  void complete_best(std::size_t added) {
    leaders_.reset(k_);
    float bar = 0;
    for (const std::uint16_t place : met_.places()) {
      const float sum = sums_[place];
      if (sum <= bar || !allowed(place)) continue;
      leaders_.offer(key_of(sum, place));
      if (leaders_.bar() != kWorstKey) bar = score_of(leaders_.bar());
    }
    const auto& best = leaders_.ranked();
    if (best.size() < k_) return;
    float least = std::numeric_limits<float>::infinity();
    for (const Key key : best) {
      float sum = score_of(key);
      for (std::size_t i = added; i < active_.size(); ++i) sum += product_at(*index_, *active_[i], id_of(key));
      least = std::min(least, sum);
    }
    least_ = std::max(least_, least * shrink_);
  }

  // The only list of the tile: its products are the scores.
  bool offer_one() {
    float need = bar();
    bool inside = true;
    const bool whole = each_product(*index_, *active_[0], work, [&](std::uint32_t place, float product) {
      if (!(product >= need) || !wanted(place)) return;
      inside &= first_label_ + place < index_->labels;
      best_.offer(key_of(product, first_label_ + place));
      need = bar();
    });
    return whole && inside;
  }

  bool take_from_one() {
    std::uint16_t* const places = met_.room(active_[0]->piece.count);
    float* const sums = met_.sums();
    const MetLabels::Bar bar = bar_with(rest_[1]);
    std::uint32_t n = 0;
    const bool whole = each_product(*index_, *active_[0], work, [&](std::uint32_t place, float product) {
      places[n] = static_cast<std::uint16_t>(place), sums[n] = product;
      n += static_cast<std::uint32_t>(bar.reached(product));
    });
    met_.set_count(n);
    return whole;
  }

  // Looks the labels met up in the other lists, and offers those that are left with their exact scores.
  bool finish(std::size_t added) {
    const std::size_t m = active_.size();
    bool exact = m <= 2;
    for (std::size_t i = added; i < m && met_.count() > 0; ++i) {
      if (!look_up(*active_[i], bar_with(rest_[i + 1]))) return false;
      exact &= !DenseSums::bounds(*active_[i]);
    }
    if (m > 2 && std::uint64_t{kLookUp} * met_.count() * m > postings_[0]) return add_in_order();
    for (std::uint32_t c = 0; c < met_.count();) {
      const float need = bar();
      std::uint32_t n = 0;
      for (; c < met_.count() && n < kRun; ++c) {
        if (!(met_.sum(c) * grow_ >= need) || !wanted(met_.place(c))) continue;
        if (first_label_ + met_.place(c) >= index_->labels) return false;
        run_places_[n] = met_.place(c), run_sums_[n] = met_.sum(c), ++n;
      }
      if (!exact) sum_exactly(n);
      for (std::uint32_t i = 0; i < n; ++i)
        if (run_sums_[i] > 0) best_.offer(key_of(run_sums_[i], first_label_ + run_places_[i]));
    }
    return true;
  }

  // Adds what a list brings to the labels met, or what it brings at most, and keeps those that may still win.
  bool look_up(const PostingList& list, MetLabels::Bar bar) {
    if (DenseSums::bounds(list)) {
      const float step = DenseSums::step(list);
      const std::uint32_t last = index_->width(list.piece.tile) - 1;
      const std::uint8_t* const own = list.codes + first_label_;
      met_.add(bar, [&](std::uint32_t c, std::uint32_t place) {
        __builtin_prefetch(own + met_.ahead_of(c));
        return static_cast<float>(own[std::min(place, last)]) * step;
      });
    } else if (list.piece.count < std::uint64_t{kLookUp} * met_.count()) {
      float* const sums = sums_.data();
      met_.put(sums);
      const auto add = [sums](std::uint32_t at, float product) { sums[at] += product_if(sums[at] != 0, product); };
      if (!each_product(*index_, list, work, add)) return false;
      met_.take(sums, bar);
    } else {
      products_.resize(met_.count());
      products_at(*index_, list, met_.places(), [this](std::size_t c, float product) { products_[c] = product; });
      met_.add(bar, [this](std::uint32_t c, std::uint32_t) { return products_[c]; });
    }
    return true;
  }

  // The sums of the first n places of the run in law 1's order.
  void sum_exactly(std::uint32_t n) noexcept {
    std::fill(run_sums_, run_sums_ + n, 0.0f);
    for (const PostingList& list : lists_.all())
      if (!list.over && list.piece.tile == active_[0]->piece.tile)
        products_at(*index_, list, std::span<const std::uint16_t>(run_places_, n),
                    [this](std::size_t i, float product) { run_sums_[i] += product; });
  }

  // Many labels are left, of nearly the same score: all sums of the tile in law 1's order cost less than look-ups.
  bool add_in_order() {
    met_.clear();
    for (const PostingList& list : lists_.all())
      if (!list.over && list.piece.tile == active_[0]->piece.tile && !add(list)) return false;
    for (const std::uint16_t place : met_.places()) {
      const float sum = std::exchange(sums_[place], 0.0f);
      const Key key = key_of(sum, first_label_ + place);
      if (key >= best_.bar() || !wanted(place)) continue;
      if (first_label_ + place >= index_->labels) return false;
      best_.offer(key);
    }
    return true;
  }

  // Labels without a match, or with a sum of 0, follow by their numbers.
  void fill_up() {
    found_.clear();
    for (const Key key : best_.ranked()) found_.push_back(id_of(key));
    if (found_.size() >= k_) return;
    std::sort(found_.begin(), found_.end());
    std::size_t left = k_ - found_.size();
    auto at = found_.begin();
    for (std::uint32_t label = 0; label < index_->labels && left > 0; ++label) {
      if (at != found_.end() && *at == label) {
        ++at;
      } else if (!filter_ || filter_->allows(label)) {
        best_.offer(key_of(0.0f, label));
        --left;
      }
    }
  }

  // All sums of a tile in law 1's order, and every label of it as a candidate.
  bool add_up(std::uint32_t tile) {
    bool whole = true;
    for (const PostingList& list : lists_.all())
      if (!list.over && list.piece.tile == tile)
        whole = whole &&
                each_product(*index_, list, work, [&](std::uint32_t place, float product) { sums_[place] += product; });
    const std::uint32_t width = index_->width(tile);
    const float* const bias = index_->bias.empty() ? nullptr : index_->bias.data() + first_label_;
    for (std::uint32_t from = 0; whole && from < width; from += kRun)
      offer_run(from, std::min(width, from + kRun), bias);
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    return whole;
  }

  void offer_run(std::uint32_t from, std::uint32_t to, const float* bias) {
    if (bias)
      for (std::uint32_t i = from; i < to; ++i) sums_[i] += bias[i];
    const Key bar = best_.bar();
    const float least = bar == kWorstKey ? std::numeric_limits<float>::quiet_NaN() : score_of(bar);
    bool any = !(least == least); // not full yet, or full of what is no number
    for (std::uint32_t i = from; i < to; ++i) any |= sums_[i] >= least;
    if (!any) return;
    for (std::uint32_t i = from; i < to; ++i) {
      const Key key = key_of(sums_[i], first_label_ + i);
      if (key < best_.bar() && (!matched_only_ || sums_[i] > 0) && allowed(i)) best_.offer(key);
    }
  }

  const Postings* index_ = nullptr;
  const Filter* filter_ = nullptr;
  std::uint32_t k_ = 0, first_label_ = 0;
  bool matched_only_ = false, given_ = false; // given_: least_ by the caller
  float least_ = 0, grow_ = 1, shrink_ = 1;
  KnownSums known_;
  QueryLists lists_;
  std::vector<std::uint32_t> found_;       // the labels of an answer
  std::vector<const PostingList*> active_; // those with a piece in the tile, by what they can bring
  std::vector<float> rest_;                // what the lists from each on can bring together
  std::vector<std::uint64_t> postings_;    // and how many entries they have
  std::vector<float> sums_;                // of a tile; zeros between tiles
  MetLabels met_;
  std::vector<float> products_;      // of the labels met in one list
  std::uint16_t run_places_[kRun]{}; // labels that are scored together
  float run_sums_[kRun]{};
  DenseSums dense_;
  TopK best_, leaders_;
};

} // namespace beamwood
