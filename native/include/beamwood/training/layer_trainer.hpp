// One layer in: rows, who reaches which parent, who is positive for which child. Out: the weights of every child.
//
// Work is shared out by parents, biggest first. A parent so big that it would keep one worker busy while the others
// wait is gathered once and its groups of siblings are shared out instead: the top layers use every core too.
//
// The law: a node's weights depend on the data, the settings and the seed; how the work is shared out changes nothing.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  SparseView reaching;                       // a line a parent: the rows that reach it
  SparseView positives;                      // a line a child: its positive rows and what each counts
  std::span<const std::int64_t> child_start; // children of parent p: child[child_start[p] .. child_start[p+1]]
  std::span<const std::int64_t> child;
  std::span<const float> row_weight; // may be empty: all 1
};

// Asked now and then with the share of the layer's work that is done, always on the calling thread; true: stop.
using Watch = std::function<bool(double)>;

template <class T> class LayerTrainer {
public:
  LayerTrainer(const LayerProblem& problem, const SolverSettings& settings, unsigned threads, Watch watch)
      : problem_(problem), settings_(settings), watch_(std::move(watch)), desks_(std::max(threads, 1u)),
        nodes_(problem.positives.lines()) {
    workers_.threads = std::max(threads, 1u);
    workers_.interrupted = [this] { return look(); };
  }

  std::vector<NodeWeights> run() {
    const std::vector<std::size_t> order = biggest_first();
    const double fair_share = total_work_ / (4.0 * workers_.threads);
    std::size_t big = 0;
    while (workers_.threads > 1 && big < order.size() && work_of(order[big]) > fair_share) share_groups(order[big++]);
    desks_[0].parent = std::make_unique<ParentRows>(); // the biggest parents' memory is not needed any more
    parallel_for(workers_, order.size() - big, [&](std::size_t task, unsigned worker) {
      Desk& desk = desks_[worker];
      const std::size_t parent = order[big + task];
      gather(parent, desk);
      for (std::size_t group = 0; group < groups_of(parent); ++group) solve_group(parent, group, desk, desk, worker);
      desk.gatherer.forget(desk.parent->rows);
    });
    return std::move(nodes_);
  }

private:
  // What one worker owns.
  struct Desk {
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
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < parents; ++p) {
      if (!children_of(p).empty()) order.push_back(p);
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return work_[a] > work_[b]; });
    return order;
  }

  void gather(std::size_t parent, Desk& desk) {
    std::vector<std::span<const std::int32_t>> positives;
    for (const std::int64_t c : children_of(parent)) {
      positives.push_back(problem_.positives.line(static_cast<std::size_t>(c)));
    }
    desk.gatherer.gather(problem_.x, problem_.features, problem_.reaching.line(parent), positives,
                         mixed(settings_.seed, parent), desk.parent->rows);
    desk.parent->measure(settings_.bias);
  }

  void share_groups(std::size_t parent) {
    Desk& owner = desks_[0];
    gather(parent, owner);
    parallel_for(workers_, groups_of(parent), [&](std::size_t group, unsigned worker) {
      solve_group(parent, group, owner, desks_[worker], worker);
    });
    owner.gatherer.forget(owner.parent->rows);
  }

  // `owner` holds the parent's rows, `desk` the solver that this worker may use.
  void solve_group(std::size_t parent, std::size_t group, const Desk& owner, Desk& desk, unsigned worker) {
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
      desk.solver.solve(*owner.parent, positives, problem_.row_weight, local_row, settings_,
                        mixed(settings_.seed + 1, static_cast<std::uint64_t>(node.front())), pulse);
      std::vector<NodeWeights> learned(node.size());
      desk.solver.take(*owner.parent, learned, settings_);
      for (std::size_t i = 0; i < node.size(); ++i) {
        nodes_[static_cast<std::size_t>(node[i])] = std::move(learned[i]);
      }
    }
    done_work_.fetch_add(work_of(parent) / static_cast<double>(groups_of(parent)), std::memory_order_relaxed);
  }

  Positives positives_of(std::size_t child) const {
    const auto first = static_cast<std::size_t>(problem_.positives.start[child]);
    const std::size_t count = problem_.positives.size_of(child);
    return {problem_.positives.index.subspan(first, count), problem_.positives.value.empty()
                                                                ? std::span<const float>{}
                                                                : problem_.positives.value.subspan(first, count)};
  }

  void check(unsigned worker) {
    if (worker == 0) look();
    if (stop_.load(std::memory_order_relaxed)) throw Interrupted{};
  }

  // Only ever on the calling thread, at most every 50 ms.
  bool look() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look_ > std::chrono::milliseconds(50)) {
      last_look_ = now;
      if (watch_(total_work_ > 0 ? done_work_.load(std::memory_order_relaxed) / total_work_ : 1.0)) stop_ = true;
    }
    return stop_.load(std::memory_order_relaxed);
  }

  const LayerProblem& problem_;
  const SolverSettings settings_;
  Watch watch_;
  Workers workers_;
  std::vector<Desk> desks_;
  std::vector<NodeWeights> nodes_;
  std::vector<double> work_;
  double total_work_ = 0;
  std::atomic<double> done_work_{0};
  std::atomic<bool> stop_{false};
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
};

// Float carries seven digits, which is far more than eps = 0.1 asks of the gradients; finer eps and the logistic
// loss, whose variables crowd at their bounds, are solved in double.
inline std::vector<NodeWeights> train_layer(const LayerProblem& problem, const SolverSettings& settings,
                                            unsigned threads, Watch watch) {
  const bool coarse = settings.eps >= 1e-3 && settings.loss != Loss::logistic;
  if (coarse) return LayerTrainer<float>(problem, settings, threads, std::move(watch)).run();
  return LayerTrainer<double>(problem, settings, threads, std::move(watch)).run();
}

} // namespace beamwood
