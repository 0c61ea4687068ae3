// Label vectors in, an order of the labels out whose consecutive runs are the leaf clusters: balanced 2-means, which
// halves each cluster until the leaf clusters are left.
//
// The law: leaf cluster c holds the labels at places [c·L/K, (c+1)·L/K) of the order, so sizes differ by at most one;
// inside a leaf cluster ids rise. A halving keeps, of its members ranked by x·(left/|left| - right/|right|) falling,
// then id rising, as many on the left as the left leaf clusters hold.
//
// One round costs one pass over the members' non-zeros: only members that changed sides touch the sums. Large clusters
// find their direction on a sample, and workers share their passes; a small one is one task, copied compactly and
// halved depth first, so that the last rounds, which are most of the work, run inside the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/training/cluster.hpp"
#include "beamwood/training/dice.hpp"

namespace beamwood {

// A part [begin, end) of the order, to be split into leaf clusters first .. last-1.
struct Stretch {
  std::size_t begin, end, first, last;
  std::size_t size() const noexcept { return end - begin; }
};

namespace detail {

constexpr int most_rounds = 20;
constexpr std::size_t small_entries = std::size_t{1} << 20; // a whole task for one worker: about 8 MB
constexpr std::size_t sample_size = 4096;                   // members that set the direction of a larger cluster
constexpr int full_rounds = 3;                              // rounds of all members after those of the sample
constexpr std::size_t copy_at = 4; // copy compactly when this many times fewer members are left

class Halver {
public:
  // Reorders members (ids rising) so that the left_size that belong left come first; ids rise on each side.
  // for_each(n, f) calls f(i) for all i < n, in any order and on any thread.
  template <class ForEach>
  void halve(const SparseRows& rows, std::span<std::uint32_t> members, std::size_t left_size, Dice dice,
             ForEach&& for_each) {
    seed(rows, members, dice);
    int rounds = most_rounds;
    if (members.size() > 2 * sample_size) {
      draw_sample(members, dice);
      improve(rows, sample_, sample_.size() / 2, rounds, for_each);
      rounds = full_rounds;
    }
    improve(rows, members, left_size, rounds, for_each);
    part(members);
  }

private:
  template <class ForEach>
  void improve(const SparseRows& rows, std::span<const std::uint32_t> members, std::size_t left_size, int rounds,
               ForEach&& for_each) {
    start(rows, members);
    for (int round = 0; round < rounds; ++round) {
      for_each(members.size(), [&](std::size_t i) {
        const float score = dot(rows, members[i], direction_.data());
        ranked_[i] = {score == score ? score : 0.0f, static_cast<std::uint32_t>(i)};
      });
      if (!assign(rows, members, left_size)) break;
      point();
    }
  }

  void draw_sample(std::span<const std::uint32_t> members, Dice dice) {
    sample_.resize(sample_size);
    for (std::size_t i = 0; i < sample_size; ++i) {
      const std::size_t from = i * members.size() / sample_size, to = (i + 1) * members.size() / sample_size;
      sample_[i] = members[from + dice.modulo(to - from)];
    }
  }

  void seed(const SparseRows& rows, std::span<const std::uint32_t> members, Dice dice) {
    direction_.assign(rows.features, 0.0f);
    const std::size_t one = members[dice.modulo(members.size())];
    add_scaled(rows, one, 1.0f, direction_.data());
    add_scaled(rows, far_from(rows, members, dice), -1.0f, direction_.data());
  }

  void start(const SparseRows& rows, std::span<const std::uint32_t> members) {
    total_.assign(rows.features, 0.0f);
    left_.assign(rows.features, 0.0f);
    on_left_.assign(members.size(), 0);
    ranked_.resize(members.size());
    for (const std::uint32_t m : members) add_scaled(rows, m, 1.0f, total_.data());
  }

  // The least similar to the first seed of a few members drawn at random.
  std::size_t far_from(const SparseRows& rows, std::span<const std::uint32_t> members, Dice dice) const {
    std::size_t best = members[dice.modulo(members.size())];
    float least = dot(rows, best, direction_.data());
    for (int draw = 1; draw < 8; ++draw) {
      const std::size_t other = members[dice.modulo(members.size())];
      const float similar = dot(rows, other, direction_.data());
      if (similar < least) least = similar, best = other;
    }
    return best;
  }

  // Takes the best left_size of the ranking to the left; true if any member changed sides.
  bool assign(const SparseRows& rows, std::span<const std::uint32_t> members, std::size_t left_size) {
    std::ranges::nth_element(
        ranked_, ranked_.begin() + static_cast<std::ptrdiff_t>(left_size),
        [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    was_left_.swap(on_left_);
    on_left_.assign(members.size(), 0);
    for (std::size_t r = 0; r < left_size; ++r) on_left_[ranked_[r].second] = 1;
    bool changed = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (on_left_[i] == was_left_[i]) continue;
      add_scaled(rows, members[i], on_left_[i] ? 1.0f : -1.0f, left_.data());
      changed = true;
    }
    return changed;
  }

  // The direction from the right centroid to the left one, both of length one.
  void point() noexcept {
    double left_square = 0.0, right_square = 0.0;
    for (std::size_t f = 0; f < total_.size(); ++f) {
      const float right = total_[f] - left_[f];
      left_square += double{left_[f]} * double{left_[f]};
      right_square += double{right} * double{right};
    }
    const float left_scale = left_square > 0.0 ? static_cast<float>(1.0 / std::sqrt(left_square)) : 0.0f;
    const float right_scale = right_square > 0.0 ? static_cast<float>(1.0 / std::sqrt(right_square)) : 0.0f;
    for (std::size_t f = 0; f < total_.size(); ++f)
      direction_[f] = left_[f] * left_scale - (total_[f] - left_[f]) * right_scale;
  }

  void part(std::span<std::uint32_t> members) {
    right_members_.clear();
    std::size_t at = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (on_left_[i]) members[at++] = members[i];
      else right_members_.push_back(members[i]);
    }
    std::ranges::copy(right_members_, members.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<float> total_, left_, direction_;
  std::vector<std::uint8_t> on_left_, was_left_;
  std::vector<std::pair<float, std::uint32_t>> ranked_;
  std::vector<std::uint32_t> right_members_, sample_;
};

} // namespace detail

class BalancedClustering {
public:
  BalancedClustering(const SparseRows& rows, std::size_t clusters, std::uint64_t seed, const Workers& workers)
      : rows_(rows), clusters_(clusters), seed_(seed), workers_(workers), order_(rows.size()),
        halvers_(workers.threads), number_(workers.threads) {
    std::iota(order_.begin(), order_.end(), 0u);
  }

  const std::vector<std::uint32_t>& run() {
    std::vector<Stretch> large, small;
    sort_by_size({0, rows_.size(), 0, clusters_}, large, small);
    while (!large.empty()) {
      std::vector<Stretch> next;
      halve_large(large);
      for (const Stretch& s : large) {
        const auto [left, right] = halves(s);
        sort_by_size(left, next, small);
        sort_by_size(right, next, small);
      }
      large.swap(next);
    }
    std::ranges::stable_sort(small, [](const Stretch& a, const Stretch& b) { return a.size() > b.size(); });
    parallel_for(workers_, small.size(), [&](std::size_t task, unsigned worker) {
      const Stretch& s = small[task];
      finish(rows_, std::span(order_).subspan(s.begin, s.size()), s, worker);
    });
    return order_;
  }

private:
  // Where leaf cluster c begins.
  std::size_t place(std::size_t c) const noexcept {
    const std::size_t each = rows_.size() / clusters_, more = rows_.size() % clusters_;
    return c * each + c * more / clusters_;
  }

  std::pair<Stretch, Stretch> halves(const Stretch& s) const noexcept {
    const std::size_t middle = (s.first + s.last + 1) / 2, at = place(middle);
    return {{s.begin, at, s.first, middle}, {at, s.end, middle, s.last}};
  }

  // Unique for every stretch that can arise, whatever the order in which they are halved.
  Dice dice(const Stretch& s) const noexcept { return Dice::keyed(seed_, s.first * (2 * clusters_ + 1) + s.last); }

  void sort_by_size(const Stretch& s, std::vector<Stretch>& large, std::vector<Stretch>& small) const {
    if (s.last - s.first < 2) return;
    std::size_t entries = 0;
    for (std::size_t i = s.begin; i < s.end; ++i) entries += rows_.entries(order_[i]);
    (entries > detail::small_entries ? large : small).push_back(s);
  }

  // Shares each cluster's passes among the workers, or whole clusters when there are enough of them.
  void halve_large(std::span<const Stretch> large) {
    const auto members = [&](const Stretch& s) { return std::span(order_).subspan(s.begin, s.size()); };
    const auto left_size = [&](const Stretch& s) { return halves(s).first.size(); };
    if (large.size() >= std::size_t{2} * workers_.threads) {
      parallel_for(workers_, large.size(), [&](std::size_t task, unsigned worker) {
        const Stretch& s = large[task];
        halvers_[worker].halve(rows_, members(s), left_size(s), dice(s), [](std::size_t n, auto&& f) {
          for (std::size_t i = 0; i < n; ++i) f(i);
        });
      });
      return;
    }
    for (const Stretch& s : large)
      halvers_[0].halve(rows_, members(s), left_size(s), dice(s), [&](std::size_t n, auto&& f) {
        constexpr std::size_t piece = 512;
        parallel_for(workers_, (n + piece - 1) / piece, [&](std::size_t task, unsigned) {
          for (std::size_t i = task * piece; i < std::min(n, (task + 1) * piece); ++i) f(i);
        });
      });
  }

  // Halves a small stretch down to its leaf clusters. `members` are row numbers of `rows`.
  void finish(const SparseRows& rows, std::span<std::uint32_t> members, const Stretch& s, unsigned worker) {
    if (s.last - s.first < 2) return;
    if (members.size() * detail::copy_at <= rows.size() || &rows == &rows_) {
      finish_compact(rows, members, s, worker);
      return;
    }
    const auto [left, right] = halves(s);
    halvers_[worker].halve(rows, members, left.size(), dice(s), [](std::size_t n, auto&& f) {
      for (std::size_t i = 0; i < n; ++i) f(i);
    });
    finish(rows, members.first(left.size()), left, worker);
    finish(rows, members.subspan(left.size()), right, worker);
  }

  void finish_compact(const SparseRows& rows, std::span<std::uint32_t> members, const Stretch& s, unsigned worker) {
    CompactRows compact;
    if (number_[worker].size() < rows.features) number_[worker].resize(rows.features, -1);
    compact.copy(rows, members, number_[worker]);
    std::vector<std::uint32_t> local(members.size());
    std::iota(local.begin(), local.end(), 0u);
    const SparseRows view = compact.view();
    finish(view, local, s, worker);
    for (std::uint32_t& m : local) m = members[m];
    std::ranges::copy(local, members.begin());
  }

  const SparseRows rows_;
  const std::size_t clusters_;
  const std::uint64_t seed_;
  const Workers& workers_;
  std::vector<std::uint32_t> order_;
  std::vector<detail::Halver> halvers_;
  std::vector<std::vector<std::int32_t>> number_;
};

} // namespace beamwood
