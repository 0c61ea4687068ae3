// tally.hpp — answers as they are given in, sums that tell whether queries are still like those of training out.
//
// The law: counting changes no answer. Sums are read and cleared at once; threads add to them without waiting for each
// other, a few nanoseconds for each answer.
#pragma once
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "beamwood/life/curves.hpp"

namespace beamwood {

// Terms of queries that the vocabulary has and lacks, each as often as it was met.
struct TermTally {
  std::atomic<std::uint64_t> known{0}, unknown{0};

  void add(std::uint64_t had, std::uint64_t lacked) noexcept {
    if (had) known.fetch_add(had, std::memory_order_relaxed);
    if (lacked) unknown.fetch_add(lacked, std::memory_order_relaxed);
  }
};

struct AnswerTally {
  std::atomic<std::uint64_t> queries{0}, empty{0};   // empty: without a known term
  std::atomic<std::uint64_t> answered{0}, labels{0}; // answers that have a first label; labels above the cut
  std::atomic<double> top{0.0}; // of first labels: probabilities of a model that knows them, else scores

  // One answer in rank order; its labels end at the first that is negative. least: what a label must reach, a probability
  // where there are curves; NaN: there is no cut.
  void add(const std::int64_t* found, const float* scores, std::size_t count, bool has_terms, const Curves& curves,
           float least) noexcept {
    queries.fetch_add(1, std::memory_order_relaxed);
    if (!has_terms) return void(empty.fetch_add(1, std::memory_order_relaxed));
    if (!count || found[0] < 0 || !std::isfinite(scores[0])) return;
    answered.fetch_add(1, std::memory_order_relaxed);
    top.fetch_add(curves.empty() ? scores[0] : curves.at(0, scores[0]), std::memory_order_relaxed);
    std::size_t above = 0; // values fall along an answer
    while (above < count && found[above] >= 0 &&
           (curves.empty() ? scores[above] : curves.at(above, scores[above])) >= least)
      ++above;
    if (above) labels.fetch_add(above, std::memory_order_relaxed);
  }
};

} // namespace beamwood
