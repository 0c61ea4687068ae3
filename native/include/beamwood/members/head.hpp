// The members' scores of one label in, its final score out: the learnt head of a model that has trees and words.
//
//   z     = bias + trees · max(e, unlisted) + words · c          score = 1 / (1 + exp(-z))
//   e       what the trees say: the log of their score (of log kinds and identity, the score itself)
//   c       the label's sum over the inverted lists, divided by that of the best label with rows, filtered out or not
//
// A label that the trees do not list among their candidates counts as `unlisted`, and none counts less. Of a label that
// had no row to learn from the trees know nothing, whatever they say; its words may be better than those of all labels
// with rows, so its c may be above 1:
//
//   z     = rowless + rowless_words · min(c, 2)
//
// The law: the numbers trees, words and rowless_words are not negative, so the score never falls when one of the members' scores rises.
// Steps are plain IEEE operations in double, in a fixed order, rounded to float32 once; exp and log are ours, not the C
// library's: the same bits everywhere.
#pragma once
#include <bit>
#include <cstdint>
#include <span>

#include "beamwood/engine/activation.hpp"

namespace beamwood {

struct Head {
  double bias = 0, trees = 0, words = 0, unlisted = 0, rowless = 0, rowless_words = 0;
  std::uint32_t candidates = 0;        // that each member gives at least; 0: there is no head
  std::span<const std::uint32_t> rows; // that each label had in training; empty: all had some

  explicit operator bool() const noexcept { return candidates != 0; }
  bool has_rows(std::uint32_t label) const noexcept { return rows.empty() || rows[label] != 0; }
};

// ln x of a positive normal x: exponent and mantissa, the latter by the series of log1p_of.
inline double log_of(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  return exponent * 0.69314718055994531 + log1p_of(mantissa - 1.0);
}

// What the trees say of a label with this score. A score of 0, and NaN, say as little as can be said.
inline double evidence_of(const Head& head, Path path, float score) noexcept {
  const bool probable = path == Path::product || path == Path::log_exp;
  if (probable && !(score > 0.0f)) return head.unlisted;
  const double e = probable ? log_of(static_cast<double>(score)) : static_cast<double>(score);
  return e > head.unlisted ? e : head.unlisted;
}

inline float probability_of(double z) noexcept { return static_cast<float>(1.0 / (1.0 + exp_of(-z))); }

// evidence: max(e, unlisted); share: c.
inline float head_score(const Head& head, double evidence, double share) noexcept {
  return probability_of((head.bias + head.trees * evidence) + head.words * share);
}

// Of a label without rows.
inline float rowless_score(const Head& head, double share) noexcept {
  return probability_of(head.rowless + head.rowless_words * share);
}

// c: a label's sum as a share of the best one's with rows, at most 2; that too where no label with rows has a sum.
inline double share_of(float sum, float best) noexcept {
  if (!(best > 0.0f)) return sum > 0.0f ? 2.0 : 0.0;
  const double share = static_cast<double>(sum) / static_cast<double>(best);
  return share < 2.0 ? share : 2.0;
}

// The final score of a label. evidence: max(e, unlisted); sum: of its words; best: the best sum of labels with rows.
inline float head_score(const Head& head, std::uint32_t label, double evidence, float sum, float best) noexcept {
  const double share = share_of(sum, best);
  return head.has_rows(label) ? head_score(head, evidence, share) : rowless_score(head, share);
}

} // namespace beamwood
