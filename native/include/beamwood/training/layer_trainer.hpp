// One layer in: rows, which rows reach which parent, which are positive for which child. Out: the weights of every child.
//
// A task is a parent, the biggest first. A parent so big that it would keep one worker busy while the others wait is
// gathered once, and its groups of siblings are the tasks instead: so the top layers use every core too.
//
// The law: a node's weights depend on the data, the settings and the seed, and not on which worker learns them. A piece
// of a layer (some of its parents, with the rows that they need, in the same order) that says which parents and nodes of
// the whole layer it has gives them the same bits.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/training/gather.hpp"
#include "beamwood/training/solver.hpp"

namespace beamwood {

struct LayerProblem {
  SparseView x; // rows of X, values given
  std::size_t features = 0;
  SparseView reaching;                       // one line per parent: the rows that reach it
  SparseView positives;                      // one line per child: its positive rows and the weight of each
  std::span<const std::int64_t> child_start; // children of parent p: child[child_start[p] .. child_start[p+1]]
  std::span<const std::int64_t> child;
  std::span<const float> row_weight;         // may be empty: all 1
  std::span<const std::int64_t> parent_id{}; // numbers in the whole layer, where this is a piece of one; empty: as here
  std::span<const std::int64_t> node_id{};   // the same of the children
};

// How much of a layer's work is done; may be read from any thread while it is.
class Progress {
public:
  double share() const noexcept {
    const double total = total_.load(std::memory_order_relaxed);
    return total > 0 ? done_.load(std::memory_order_relaxed) / total : 0.0;
  }
  void expect(double total) noexcept { total_.store(total, std::memory_order_relaxed); }
  void add(double work) noexcept { done_.fetch_add(work, std::memory_order_relaxed); }

private:
  std::atomic<double> total_{0}, done_{0};
};

template <class T> class LayerTrainer {
public:
  LayerTrainer(const LayerProblem& problem, const SolverSettings& settings, const Workers& workers, Progress& progress)
      : problem_(problem), settings_(settings), progress_(progress), scratch_(std::max(workers.threads, 1u)),
        nodes_(problem.positives.lines()) {
    workers_.threads = std::max(workers.threads, 1u);
    workers_.interrupted = [this, &workers] { return stop_ = stop_ || workers.interrupted(); };
  }

  std::vector<LearnedNode> run() {
    const std::vector<std::size_t> order = biggest_first();
    const double fair_share = total_work_ / (4.0 * workers_.threads);
    std::size_t big = 0;
    while (workers_.threads > 1 && big < order.size() && work_of(order[big]) > fair_share) share_groups(order[big++]);
    scratch_[0].parent = std::make_unique<ParentRows>(); // frees the memory of the biggest parents
    parallel_for(workers_, order.size() - big, [&](std::size_t task, unsigned worker) {
      Scratch& scratch = scratch_[worker];
      const std::size_t parent = order[big + task];
      gather(parent, scratch);
      for (std::size_t group = 0; group < groups_of(parent); ++group)
        solve_group(parent, group, scratch, scratch, worker);
      scratch.gatherer.forget(scratch.parent->rows);
    });
    return std::move(nodes_);
  }

private:
  // What one worker owns.
  struct Scratch {
    Gatherer gatherer;
    std::unique_ptr<ParentRows> parent = std::make_unique<ParentRows>();
    SiblingSolver<T> solver;
  };

  std::span<const std::int64_t> children_of(std::size_t parent) const {
    const auto first = static_cast<std::size_t>(problem_.child_start[parent]);
    return problem_.child.subspan(first, static_cast<std::size_t>(problem_.child_start[parent + 1]) - first);
  }
  std::size_t groups_of(std::size_t parent) const { return (children_of(parent).size() + kLanes - 1) / kLanes; }
  double work_of(std::size_t parent) const { return work_[parent]; }
  static std::uint64_t number(std::span<const std::int64_t> ids, std::size_t here) {
    return ids.empty() ? here : static_cast<std::uint64_t>(ids[here]);
  }

  std::vector<std::size_t> biggest_first() {
    const std::size_t parents = problem_.child_start.size() - 1;
    work_.assign(parents, 0);
    for (std::size_t p = 0; p < parents; ++p) {
      double entries = 0;
      for (const std::int32_t r : problem_.reaching.line(p)) {
        entries += 1.0 + static_cast<double>(problem_.x.size_of(static_cast<std::size_t>(r)));
      }
      work_[p] = entries * static_cast<double>(groups_of(p));
      total_work_ += work_[p];
    }
    progress_.expect(total_work_);
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < parents; ++p) {
      if (!children_of(p).empty()) order.push_back(p);
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return work_[a] > work_[b]; });
    return order;
  }

  void gather(std::size_t parent, Scratch& scratch) {
    std::vector<std::span<const std::int32_t>> positives;
    for (const std::int64_t c : children_of(parent)) {
      positives.push_back(problem_.positives.line(static_cast<std::size_t>(c)));
    }
    scratch.gatherer.gather(problem_.x, problem_.features, problem_.reaching.line(parent), positives,
                            mixed(settings_.seed, number(problem_.parent_id, parent)), scratch.parent->rows);
    scratch.parent->measure(settings_.bias);
  }

  void share_groups(std::size_t parent) {
    Scratch& owner = scratch_[0];
    gather(parent, owner);
    parallel_for(workers_, groups_of(parent), [&](std::size_t group, unsigned worker) {
      solve_group(parent, group, owner, scratch_[worker], worker);
    });
    owner.gatherer.forget(owner.parent->rows);
  }

  // `owner` holds the parent's rows, `scratch` the solver that this worker may use.
  void solve_group(std::size_t parent, std::size_t group, const Scratch& owner, Scratch& scratch, unsigned worker) {
    std::vector<std::int64_t> node;
    std::vector<Positives> positives;
    const auto siblings = children_of(parent).subspan(group * kLanes);
    for (const std::int64_t c : siblings.first(std::min(kLanes, siblings.size()))) {
      const Positives p = positives_of(static_cast<std::size_t>(c));
      if (p.row.empty()) {
        nodes_[static_cast<std::size_t>(c)].bias = -std::numeric_limits<float>::infinity(); // nothing to learn from
        continue;
      }
      node.push_back(c);
      positives.push_back(p);
    }
    if (!node.empty()) {
      const auto local_row = [&](std::int32_t r) { return owner.gatherer.local_row(r); };
      const auto pulse = [&] { check(worker); };
      const std::uint64_t first = number(problem_.node_id, static_cast<std::size_t>(node.front()));
      scratch.solver.solve(*owner.parent, positives, problem_.row_weight, local_row, settings_,
                           mixed(settings_.seed + 1, first), pulse);
      std::vector<LearnedNode> learned(node.size());
      scratch.solver.take(*owner.parent, learned, settings_);
      for (std::size_t i = 0; i < node.size(); ++i) {
        nodes_[static_cast<std::size_t>(node[i])] = std::move(learned[i]);
      }
    }
    progress_.add(work_of(parent) / static_cast<double>(groups_of(parent)));
  }

  Positives positives_of(std::size_t child) const {
    const auto first = static_cast<std::size_t>(problem_.positives.start[child]);
    const std::size_t count = problem_.positives.size_of(child);
    return {problem_.positives.index.subspan(first, count), problem_.positives.value.empty()
                                                                ? std::span<const float>{}
                                                                : problem_.positives.value.subspan(first, count)};
  }

  void check(unsigned worker) {
    if (worker == 0) workers_.interrupted(); // worker 0 is the calling thread
    if (stop_.load(std::memory_order_relaxed)) throw Interrupted{};
  }

  const LayerProblem& problem_;
  const SolverSettings settings_;
  Progress& progress_;
  Workers workers_;
  std::vector<Scratch> scratch_;
  std::vector<LearnedNode> nodes_;
  std::vector<double> work_;
  double total_work_ = 0;
  std::atomic<bool> stop_{false};
};

// Float carries seven digits, which is far more than eps = 0.1 asks of the gradients; finer eps and the logistic
// loss, whose variables crowd at their bounds, are solved in double.
inline std::vector<LearnedNode> train_layer(const LayerProblem& problem, const SolverSettings& settings,
                                            const Workers& workers, Progress& progress) {
  const bool coarse = settings.eps >= 1e-3 && settings.loss != Loss::logistic;
  if (coarse) return LayerTrainer<float>(problem, settings, workers, progress).run();
  return LayerTrainer<double>(problem, settings, workers, progress).run();
}

} // namespace beamwood
