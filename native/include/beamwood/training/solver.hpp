// Up to eight siblings in (their parent's gathered rows, and who is positive for whom). Out: their weights.
//
// Drives the passes of descent.hpp. A lane that has converged on its active rows rests until all lanes have; then it
// gets all its rows back, and it is done when it has converged on those too, or after max_iter passes.
//
// Converged means, for the hinge losses: the duality gap is at most eps² of the objective, or no two projected gradients
// differ by more than eps (liblinear's rule; the largest of n gradients grows with n, so that this rule by itself
// would ask for more passes the more rows there are). For the logistic loss: no violation is above eps.
//
// The law: the order of visits is drawn from (seed, node) only, never from a thread or a clock.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "beamwood/training/descent.hpp"
#include "beamwood/training/gather.hpp"
#include "beamwood/training/kernels.hpp"

namespace beamwood {

struct SolverSettings {
  Loss loss = Loss::squared_hinge;
  double C = 1;
  double rare_weight = 0; // extra cost of mistakes on a node's positive rows, divided evenly among them
  double eps = 0.1;
  unsigned max_iter = 100;
  double bias = 1;    // value of the constant feature; 0: there is none
  double prune = 0.1; // weights nearer to zero than this are dropped
  std::uint32_t dense_from = std::numeric_limits<std::uint32_t>::max(); // from this feature on only zeros are dropped
  std::uint32_t top_weights = 0; // keep at most this many weights per node; 0: all
  std::uint64_t seed = 0;
  Isa isa = best_isa(); // which kernels run; the weights do not depend on it
};

// The rows that are positive for one child, and the weight of each (empty: all 1).
struct Positives {
  std::span<const std::int32_t> row;
  std::span<const float> relevance;
};

// What a node learned: weights by rising feature id, and the addend that its bias weight amounts to.
struct LearnedNode {
  std::vector<Entry> weight;
  float bias = 0;
};

// A parent's rows with what all its groups of siblings share.
struct ParentRows {
  Gathered rows;
  std::vector<double> norm; // of each row: x·x + bias²
  std::vector<double> own;  // of each row: the part of x·x that comes from features no other row has

  void measure(double bias) {
    norm.resize(rows.rows());
    own.assign(rows.rows(), 0);
    for (const Gathered::Lone& l : rows.lone) own[l.row] += static_cast<double>(l.value) * l.value;
    for (std::size_t i = 0; i < norm.size(); ++i) {
      double sum = 0;
      for (std::uint64_t e = rows.start[i]; e < rows.start[i + 1]; ++e) {
        sum += static_cast<double>(rows.entry[e].value) * rows.entry[e].value;
      }
      norm[i] = sum + own[i] + bias * bias;
    }
  }
};

// Lanes lie on whole cache lines.
template <class T> struct LaneAllocator {
  using value_type = T;
  LaneAllocator() = default;
  template <class U> LaneAllocator(const LaneAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const LaneAllocator&) const = default;
};

// The memory of one worker, reused for each group of siblings.
template <class T> class SiblingSolver {
public:
  // `local_row` maps a row of X to its place among the parent's rows; `row_weight` may be empty. `pulse` is called
  // now and then and throws to stop.
  template <class LocalRow, class Pulse>
  void solve(const ParentRows& parent, std::span<const Positives> children, std::span<const float> row_weight,
             const LocalRow& local_row, const SolverSettings& settings, std::uint64_t seed, const Pulse& pulse) {
    start(parent, children.size(), settings);
    lay_out_rows(parent, children, local_row);
    set_costs(parent, children, row_weight, local_row, settings);
    if (logistic_) start_inside(parent.rows);
    Dice dice(seed);
    for (unsigned iter = 0; iter < settings.max_iter && pass_.running; ++iter) {
      run_pass(dice, pulse);
      logistic_ ? end_logistic_pass(settings) : end_hinge_pass(settings);
    }
  }

  // Copies the weights that are not pruned, by rising feature id.
  void take(const ParentRows& parent, std::span<LearnedNode> children, const SolverSettings& settings) const {
    const Gathered& rows = parent.rows;
    // Compared as bits, which rise with the size of a number: eight at once, and never true for zero.
    const std::uint32_t usual = std::max(1u, std::bit_cast<std::uint32_t>(static_cast<float>(settings.prune)));
    std::uint32_t least = usual;
    const auto matters = [&](float w) { return (std::bit_cast<std::uint32_t>(w) & 0x7fffffffu) >= least; };
    for (std::size_t f = 0; f < rows.feature.size(); ++f) {
      least = rows.feature[f] < settings.dense_from ? usual : 1u;
      const std::size_t number = rows.number[f];
      const Gathered::Lone* const lone = number < rows.shared ? nullptr : &rows.lone[number - rows.shared];
      const T* const base = lone ? row_[lone->row].alpha : weight_.data() + number * kLanes;
      const T factor = lone ? static_cast<T>(lone->value) : T(1);
      float w[kLanes];
      unsigned any = 0;
      for (std::size_t l = 0; l < kLanes; ++l) {
        w[l] = static_cast<float>(base[l] * factor);
        any |= matters(w[l]);
      }
      if (!any) continue;
      for (std::size_t l = 0; l < children.size(); ++l) {
        if (matters(w[l]))
          children[l].weight.push_back({rows.feature[f], lone ? towards_positive(*lone, l, w[l]) : w[l]});
      }
    }
    least = usual;
    for (std::size_t l = 0; l < children.size(); ++l) {
      const auto b = static_cast<float>(pass_.bias_weight[l]);
      children[l].bias = matters(b) ? static_cast<float>(settings.bias) * b : 0.0f;
      if (settings.top_weights) keep_largest(children[l].weight, settings.top_weights);
      children[l].weight.shrink_to_fit();
    }
  }

private:
  static constexpr std::size_t kRun = 16;         // rows visited side by side in a big parent
  static constexpr std::size_t kPiece = 1u << 15; // rows visited between two calls of `pulse`
  static constexpr double kGoal = 0.1;            // share of the gap at which all rows are visited again

  void start(const ParentRows& parent, std::size_t lanes, const SolverSettings& settings) {
    kernels_ = kTrainingKernels.on(settings.isa);
    const std::size_t n = parent.rows.rows();
    logistic_ = settings.loss == Loss::logistic;
    weight_.assign(parent.rows.shared * kLanes, T(0));
    rest_.assign(logistic_ ? n * kLanes : 0, T(0));
    list_.resize(n);
    kept_.resize(n);
    all_lanes_ = static_cast<std::uint8_t>((1u << lanes) - 1);
    whole_ = all_lanes_;
    resting_ = 0;
    std::fill_n(alpha_sum_, kLanes, 0.0);
    pass_ = {};
    pass_.entry = parent.rows.entry.data();
    pass_.weight = weight_.data();
    pass_.rest = rest_.data();
    pass_.running = all_lanes_;
    pass_.bias = static_cast<T>(settings.bias);
    pass_.C = static_cast<T>(settings.C);
    pass_.far = weight_.size() * sizeof(T) > (1u << 18);
    pass_.bounded = settings.loss == Loss::hinge;
    pass_.inner_eps = static_cast<T>(1e-2);
    // A parent whose rows fit the cache is visited in a new random order in each pass. The rows of a bigger one lie
    // in a random order already, so short runs of them are shuffled instead, and memory is read sequentially.
    run_ = parent.rows.entry.size() * sizeof(Entry) > (1u << 19) ? kRun : 1;
  }

  template <class LocalRow>
  void lay_out_rows(const ParentRows& parent, std::span<const Positives> children, const LocalRow& local_row) {
    const Gathered& rows = parent.rows;
    row_.assign(rows.rows(), {});
    for (std::size_t l = 0; l < children.size(); ++l) {
      for (const std::int32_t r : children[l].row) {
        row_[local_row(r)].positive |= static_cast<std::uint8_t>(1u << l);
      }
    }
    for (std::size_t i = 0; i < row_.size(); ++i) {
      Visited<T>& row = row_[i];
      row.first = rows.start[i];
      row.entries = static_cast<std::uint32_t>(rows.start[i + 1] - rows.start[i]);
      row.norm = static_cast<T>(parent.norm[i]);
      row.own = static_cast<T>(parent.own[i]);
      row.member = rows.reaches[i] ? all_lanes_ : row.positive;
      row.active = row.member;
    }
    pass_.row = row_.data();
    list_all();
  }

  template <class LocalRow>
  void set_costs(const ParentRows& parent, std::span<const Positives> children, std::span<const float> row_weight,
                 const LocalRow& local_row, const SolverSettings& settings) {
    for (std::size_t l = 0; l < children.size(); ++l) {
      pass_.C_positive[l] = static_cast<T>(settings.C * positive_weight(children[l], settings));
    }
    const bool relevant = std::ranges::any_of(children, [](const Positives& p) { return !p.relevance.empty(); });
    if (row_weight.empty() && !relevant) return;
    const std::size_t n = parent.rows.rows();
    cost_.resize(n * kLanes);
    for (std::size_t i = 0; i < n; ++i) {
      const double w = row_weight.empty() ? 1.0 : row_weight[static_cast<std::size_t>(parent.rows.row[i])];
      std::fill_n(cost_.begin() + static_cast<std::ptrdiff_t>(i * kLanes), kLanes, static_cast<T>(settings.C * w));
    }
    for (std::size_t l = 0; l < children.size(); ++l) {
      for (std::size_t e = 0; e < children[l].row.size(); ++e) {
        const double relevance = children[l].relevance.empty() ? 1.0 : children[l].relevance[e];
        cost_[local_row(children[l].row[e]) * kLanes + l] *=
            static_cast<T>(positive_weight(children[l], settings) * relevance);
      }
    }
    pass_.cost = cost_.data();
  }

  static double positive_weight(const Positives& child, const SolverSettings& settings) {
    return 1 + settings.rare_weight / static_cast<double>(child.row.size());
  }

  // The logistic dual lives strictly between its bounds: start near the lower one, with the weights to match.
  void start_inside(const Gathered& rows) {
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      Visited<T>& row = row_[i];
      for (std::size_t l = 0; l < kLanes; ++l) {
        if (!((row.member >> l) & 1)) continue;
        const bool positive = (row.positive >> l) & 1;
        const T C = pass_.cost ? cost_[i * kLanes + l] : positive ? pass_.C_positive[l] : pass_.C;
        const T alpha = std::min(T(0.001) * C, T(1e-8));
        row.alpha[l] = alpha;
        rest_[i * kLanes + l] = C - alpha;
        const T step = positive ? alpha : -alpha;
        for (std::uint64_t e = rows.start[i]; e < rows.start[i + 1]; ++e) {
          weight_[rows.entry[e].feature * kLanes + l] += step * static_cast<T>(rows.entry[e].value);
        }
        pass_.bias_weight[l] += step * pass_.bias;
      }
    }
  }

  // The signed weight of a feature that only one row has; `size` is alpha · x.
  float towards_positive(const Gathered::Lone& lone, std::size_t lane, float size) const {
    return (row_[lone.row].positive >> lane) & 1 ? size : -size;
  }

  template <class Pulse> void run_pass(Dice& dice, const Pulse& pulse) {
    shuffle(dice);
    const T none = std::numeric_limits<T>::infinity();
    std::fill_n(pass_.largest, kLanes, logistic_ ? T(0) : -none);
    std::fill_n(pass_.smallest, kLanes, logistic_ ? T(0) : none);
    std::fill_n(gap_, kLanes, 0.0);
    pass_.shrunk = 0;
    pass_.newton_steps = 0;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < running_rows_; at += kPiece) {
      pulse();
      pass_.list = list_.data() + at;
      pass_.kept = kept_.data() + kept;
      pass_.count = std::min(kPiece, running_rows_ - at);
      if constexpr (std::is_same_v<T, float>) {
        kernels_->hinge_float(pass_);
      } else {
        logistic_ ? kernels_->logistic(pass_) : kernels_->hinge_double(pass_);
      }
      kept += pass_.kept_count;
      for (std::size_t l = 0; l < kLanes; ++l) {
        gap_[l] += static_cast<double>(pass_.gap[l]);
        alpha_sum_[l] += static_cast<double>(pass_.gain[l]);
      }
    }
    running_rows_ = kept;
    list_.swap(kept_);
  }

  // A lane that visited all its rows in this pass may be done; if not, the gap sets how near to the optimum of its
  // active rows it must come before all rows are visited again. A lane that is there rests.
  void end_hinge_pass(const SolverSettings& settings) {
    const double eps = settings.eps;
    for (std::size_t l = 0; l < kLanes; ++l) {
      const auto bit = static_cast<std::uint8_t>(1u << l);
      if (!(pass_.running & bit)) continue;
      const double gap = gap_[l] / (0.5 * alpha_sum_[l]); // half the sum of alphas: the objective, or less (hinge)
      const bool even = static_cast<double>(pass_.largest[l] - pass_.smallest[l]) <= eps;
      if (whole_ & bit) goal_[l] = std::max(eps * eps, kGoal * gap);
      if (!even && gap > ((whole_ & bit) ? eps * eps : goal_[l])) continue;
      pass_.running &= static_cast<std::uint8_t>(~bit);
      if (!(whole_ & bit)) resting_ |= bit;
    }
    whole_ &= static_cast<std::uint8_t>(~pass_.shrunk);
    if (pass_.running == 0 && resting_ != 0) reopen();
  }

  // The lanes that rest get all their rows back.
  void reopen() {
    for (Visited<T>& row : row_) {
      row.active = static_cast<std::uint8_t>(row.active | (row.member & resting_));
      row.held = 0;
    }
    pass_.running = resting_;
    whole_ = resting_;
    resting_ = 0;
    list_all();
  }

  void end_logistic_pass(const SolverSettings& settings) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      if (pass_.largest[l] < settings.eps) pass_.running &= static_cast<std::uint8_t>(~(1u << l));
    }
    const T finest = static_cast<T>(std::min(1e-8, settings.eps));
    if (pass_.newton_steps <= row_.size() / 10) pass_.inner_eps = std::max(finest, T(0.1) * pass_.inner_eps);
  }

  void list_all() {
    running_rows_ = list_.size();
    for (std::size_t i = 0; i < list_.size(); ++i) list_[i] = static_cast<std::uint32_t>(i);
  }

  void shuffle(Dice& dice) {
    if (run_ == 1) return dice.shuffle(std::span(list_).first(running_rows_));
    const std::size_t runs = (running_rows_ + run_ - 1) / run_;
    runs_.resize(runs);
    for (std::size_t r = 0; r < runs; ++r) runs_[r] = static_cast<std::uint32_t>(r);
    dice.shuffle(std::span(runs_));
    auto to = kept_.begin();
    for (const std::uint32_t r : runs_) {
      const auto first = list_.begin() + static_cast<std::ptrdiff_t>(r * run_);
      const auto last = list_.begin() + static_cast<std::ptrdiff_t>(std::min((r + 1) * run_, running_rows_));
      to = std::copy(first, last, to);
    }
    list_.swap(kept_);
  }

  static void keep_largest(std::vector<Entry>& weight, std::uint32_t count) {
    if (weight.size() <= count) return;
    const auto larger = [](const Entry& a, const Entry& b) {
      const float x = std::fabs(a.value), y = std::fabs(b.value);
      return x != y ? x > y : a.feature < b.feature;
    };
    std::nth_element(weight.begin(), weight.begin() + count, weight.end(), larger);
    weight.resize(count);
    std::ranges::sort(weight, {}, &Entry::feature);
  }

  const TrainingKernels* kernels_ = nullptr;
  Pass<T> pass_{};
  std::vector<T, LaneAllocator<T>> weight_, rest_, cost_;
  std::vector<Visited<T>> row_;
  std::vector<std::uint32_t> list_, kept_, runs_;
  std::size_t running_rows_ = 0, run_ = 1;
  std::uint8_t all_lanes_ = 0;
  std::uint8_t whole_ = 0;   // lanes that have lost no row since they were opened
  std::uint8_t resting_ = 0; // lanes that have converged on their active rows
  double gap_[kLanes] = {}, alpha_sum_[kLanes] = {}, goal_[kLanes] = {};
  bool logistic_ = false;
};

} // namespace beamwood
