// The members' scores of one label in, its final score out: the learnt head of a model that has trees and words.
//
//   z     = bias + trees · max(e, unlisted) + words · c          score = 1 / (1 + exp(-z))
//   e       what the trees say: the log of their score (of log kinds and identity, the score itself)
//   c       the label's sum over the inverted lists, divided by that of the best label of all, filtered out or not
//
// A label that the trees do not list among their candidates counts as `unlisted`, and none counts less. A label that had
// no row to learn from counts as `rowless` if it has a word of the query, whatever the trees say, and else as `unlisted`.
//
// The law: the numbers trees and words are not negative, so the score never falls when one of the members' scores rises.
// Steps are plain IEEE operations in double, in a fixed order, rounded to float32 once; exp and log are ours, not the C
// library's: the same bits everywhere.
#pragma once
#include <bit>
#include <cstdint>
#include <span>

#include "beamwood/engine/activation.hpp"

namespace beamwood {

struct Head {
  double bias = 0, trees = 0, words = 0, unlisted = 0, rowless = 0;
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

// evidence: max(e, unlisted); share: c.
inline float head_score(const Head& head, double evidence, double share) noexcept {
  const double z = (head.bias + head.trees * evidence) + head.words * share;
  return static_cast<float>(1.0 / (1.0 + exp_of(-z)));
}

// c: a label's sum as a share of the best one's, which is above 0 or there is none.
inline double share_of(float sum, float best) noexcept {
  return best > 0.0f ? static_cast<double>(sum) / static_cast<double>(best) : 0.0;
}

// The final score of a label. listed: whether the trees have a score for it; sum, best: of the words.
inline float head_score(const Head& head, Path path, std::uint32_t label, bool listed, float tree, float sum,
                        float best) noexcept {
  const bool has_rows = head.has_rows(label);
  const double e = has_rows     ? listed ? evidence_of(head, path, tree) : head.unlisted
                   : sum > 0.0f ? head.rowless
                                : head.unlisted;
  return head_score(head, e, share_of(sum, best));
}

} // namespace beamwood
