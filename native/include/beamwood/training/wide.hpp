// Label vectors and clusters of them in, each cluster split into up to k groups out: spherical k-means without balance,
// for trees that are wide and shallow (Bonsai).
//
// The law: a member goes to the group of highest x·sum/|sum|, ties to the lower group; a cluster of two or more that
// k-means leaves in (almost) one piece is cut into even runs instead, so that splitting always ends.
//
// A cluster of many members finds its centroids on a sample. They are kept as one dense table, features × groups: all
// groups' scores of a member grow together, one contiguous run of the table for each of its non-zeros. The table holds
// sums; the lengths are applied to the k scores at the end, and only members that change groups touch it.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/training/cluster.hpp"
#include "beamwood/training/dice.hpp"
#include "beamwood/training/kernels.hpp"

namespace beamwood {
namespace detail {

constexpr int wide_rounds = 20;
constexpr std::size_t sample_per_group = 32;     // members per group that set the centroids of a larger cluster
constexpr std::size_t settled_share = 100;       // k-means ends when at most one member in 100 changes groups
constexpr std::size_t candidates_per_group = 16; // of those, how many k-means++ looks at
constexpr std::size_t wide_full_rounds = 2;      // rounds of all members after those of the sample
constexpr std::size_t groups_at_once = 256;      // groups whose scores are held at a time
constexpr std::int32_t nowhere = -1;

class WideSplitter {
public:
  explicit WideSplitter(const TrainingKernels& kernels) : kernels_(&kernels) {}

  // Fills group[i] in [0, k) for each row i of rows; for_each(n, f) calls f(i) for i < n in any order.
  template <class ForEach>
  void split(const SparseRows& rows, std::size_t k, Dice dice, std::span<std::int32_t> group, ForEach&& for_each) {
    rows_ = &rows;
    k_ = k;
    stride_ = (k + kLanes - 1) / kLanes * kLanes; // table rows are padded to whole vectors
    table_.assign(rows.features * stride_, 0.0f);
    scale_.assign(stride_, 0.0f);
    square_.assign(stride_, 0.0);
    group_.assign(rows.size(), nowhere);
    next_group_.resize(rows.size());
    std::vector<std::uint32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0u);
    seed(all, dice);
    std::size_t rounds = wide_rounds;
    if (all.size() > 2 * sample_per_group * k) {
      std::vector<std::uint32_t> sample(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sample_per_group * k));
      improve(sample, rounds, for_each);
      rounds = wide_full_rounds;
    }
    improve(all, rounds, for_each);
    std::ranges::copy(group_, group.begin());
  }

private:
  // k-means++ on a sample drawn to the front of `order`: each next centroid is a member drawn with a chance that
  // grows with its distance, 1 - cosine, from the centroids so far.
  void seed(std::vector<std::uint32_t>& order, Dice dice) {
    const std::size_t front = std::min(order.size(), sample_per_group * k_);
    for (std::size_t i = 0; i < front; ++i) std::swap(order[i], order[i + dice.modulo(order.size() - i)]);
    const std::span candidates(order.data(), std::min(front, candidates_per_group * k_));
    std::vector<double> distance(candidates.size(), 1.0);
    std::vector<float> centroid(rows_->features, 0.0f);
    for (std::size_t c = 0; c < k_; ++c) {
      const std::size_t chosen = draw(distance, dice);
      distance[chosen] = 0.0;
      const std::uint32_t member = candidates[chosen];
      move(member, nowhere, static_cast<std::int32_t>(c));
      group_[member] = static_cast<std::int32_t>(c);
      add_scaled(*rows_, member, 1.0f, centroid.data());
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (distance[i] > 0.0)
          distance[i] = std::clamp(1.0 - double{dot(*rows_, candidates[i], centroid.data())}, 1e-6, distance[i]);
      for (std::size_t e = rows_->begin(member); e < rows_->end(member); ++e)
        centroid[static_cast<std::size_t>(rows_->feature[e])] = 0.0f;
    }
    measure();
  }

  // A place drawn with chances proportional to `weight`; places of weight 0 are never drawn.
  static std::size_t draw(std::span<const double> weight, Dice& dice) noexcept {
    double left = std::accumulate(weight.begin(), weight.end(), 0.0) * (double(dice.next() >> 11) * 0x1p-53);
    std::size_t last = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      if (weight[i] <= 0.0) continue;
      last = i;
      if ((left -= weight[i]) < 0.0) break;
    }
    return last;
  }

  template <class ForEach>
  void improve(std::span<const std::uint32_t> members, std::size_t rounds, ForEach&& for_each) {
    for (std::size_t round = 0; round < rounds; ++round) {
      for_each(members.size(), [&](std::size_t i) { next_group_[members[i]] = best(members[i]); });
      std::size_t changed = 0;
      for (const std::uint32_t m : members) {
        if (next_group_[m] == group_[m]) continue;
        move(m, group_[m], next_group_[m]);
        group_[m] = next_group_[m];
        ++changed;
      }
      measure();
      if (changed * settled_share <= members.size()) return;
    }
  }

  std::int32_t best(std::size_t member) const noexcept {
    float top = -1.0f;
    std::int32_t winner = 0;
    float score[groups_at_once];
    const std::size_t begin = rows_->begin(member), entries = rows_->entries(member);
    for (std::size_t from = 0; from < k_; from += groups_at_once) {
      const std::size_t width = std::min(groups_at_once, stride_ - from);
      kernels_->table_product(rows_->feature.data() + begin, rows_->value.data() + begin, entries, table_.data() + from,
                              stride_, score, width);
      for (std::size_t c = 0; c < std::min(width, k_ - from); ++c) {
        const float s = score[c] * scale_[from + c];
        if (s > top) top = s, winner = static_cast<std::int32_t>(from + c);
      }
    }
    return winner;
  }

  // Takes a member from one group's sum to another's; the squared lengths follow entry by entry.
  void move(std::size_t member, std::int32_t from, std::int32_t to) noexcept {
    if (from != nowhere) add(member, -1.0f, static_cast<std::size_t>(from));
    add(member, 1.0f, static_cast<std::size_t>(to));
  }

  void add(std::size_t member, float sign, std::size_t group) noexcept {
    double more = 0.0;
    for (std::size_t e = rows_->begin(member); e < rows_->end(member); ++e) {
      float& sum = table_[static_cast<std::size_t>(rows_->feature[e]) * stride_ + group];
      const float next = sum + sign * rows_->value[e];
      more += double{next} * double{next} - double{sum} * double{sum};
      sum = next;
    }
    square_[group] += more;
  }

  void measure() noexcept {
    for (std::size_t c = 0; c < k_; ++c)
      scale_[c] = square_[c] > 1e-9 ? static_cast<float>(1.0 / std::sqrt(square_[c])) : 0.0f;
  }

  const TrainingKernels* kernels_;
  const SparseRows* rows_ = nullptr;
  std::size_t k_ = 0, stride_ = 0;
  std::vector<float> table_, scale_;
  std::vector<double> square_;
  std::vector<std::int32_t> group_, next_group_;
};

// A cluster left with more than nine tenths in one group is cut into k even runs of its members, taken group by group.
inline void cut_if_lumped(std::span<std::int32_t> group, std::size_t k) {
  std::vector<std::size_t> size(k, 0);
  for (const std::int32_t g : group) ++size[static_cast<std::size_t>(g)];
  if (*std::ranges::max_element(size) * 10 <= group.size() * 9) return;
  std::vector<std::uint32_t> order(group.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return group[a] < group[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) group[order[i]] = static_cast<std::int32_t>(i * k / order.size());
}

} // namespace detail

// Clusters of label vectors, all at one level of a tree: cluster c is members[bounds[c] .. bounds[c+1]).
struct Clusters {
  std::span<const std::uint32_t> members;
  std::span<const std::int64_t> bounds;

  std::size_t count() const noexcept { return bounds.size() - 1; }
  std::size_t begin(std::size_t c) const noexcept { return static_cast<std::size_t>(bounds[c]); }
  std::size_t size(std::size_t c) const noexcept { return begin(c + 1) - begin(c); }
};

class WideClustering {
public:
  WideClustering(const SparseRows& rows, std::size_t branching, std::uint64_t seed, const Workers& workers,
                 Isa isa = best_isa())
      : rows_(rows), branching_(branching), seed_(seed), workers_(workers),
        splitter_(workers.threads, detail::WideSplitter(*kTrainingKernels.on(isa))), compact_(workers.threads),
        number_(workers.threads) {}

  // Splits every cluster into min(branching, its size) groups: group[i] is that of members[i].
  void split(const Clusters& clusters, std::uint64_t level, std::span<std::int32_t> group) {
    std::vector<std::size_t> order(clusters.count());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](auto a, auto b) { return clusters.size(a) > clusters.size(b); });
    const auto small = std::ranges::find_if(order, [&](auto c) { return clusters.size(c) <= large_; });
    const auto in_turn = [](std::size_t n, auto&& f) {
      for (std::size_t i = 0; i < n; ++i) f(i);
    };
    const auto shared = [&](std::size_t n, auto&& f) {
      constexpr std::size_t piece = 128;
      parallel_for(workers_, (n + piece - 1) / piece, [&](std::size_t task, unsigned) {
        for (std::size_t i = task * piece; i < std::min(n, (task + 1) * piece); ++i) f(i);
      });
    };
    for (auto c = order.begin(); c != small; ++c) split_one(clusters, *c, level, 0, group, shared);
    const std::span rest(small, order.end());
    parallel_for(workers_, rest.size(), [&](std::size_t task, unsigned worker) {
      split_one(clusters, rest[task], level, worker, group, in_turn);
    });
  }

private:
  static constexpr std::size_t large_ = 2048; // members whose passes are shared among the workers

  template <class ForEach>
  void split_one(const Clusters& clusters, std::size_t c, std::uint64_t level, unsigned worker,
                 std::span<std::int32_t> group, ForEach&& for_each) {
    const auto members = clusters.members.subspan(clusters.begin(c), clusters.size(c));
    const auto out = group.subspan(clusters.begin(c), clusters.size(c));
    const std::size_t k = std::min(branching_, members.size());
    if (k < 2) {
      std::ranges::fill(out, 0);
      return;
    }
    const Dice dice = Dice::keyed(seed_, clusters.begin(c) * 64 + level % 64);
    if (members.size() == rows_.size() && std::ranges::is_sorted(members)) { // all rows as they are: no copy
      splitter_[worker].split(rows_, k, dice, out, for_each);
    } else {
      if (number_[worker].empty()) number_[worker].assign(rows_.features, -1);
      compact_[worker].copy(rows_, members, number_[worker]);
      splitter_[worker].split(compact_[worker].view(), k, dice, out, for_each);
    }
    detail::cut_if_lumped(out, k);
  }

  const SparseRows rows_;
  const std::size_t branching_;
  const std::uint64_t seed_;
  const Workers& workers_;
  std::vector<detail::WideSplitter> splitter_;
  std::vector<CompactRows> compact_;
  std::vector<std::vector<std::int32_t>> number_;
};

} // namespace beamwood
