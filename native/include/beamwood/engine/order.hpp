// A score and an id in, one 64-bit key out; and back.
//
// The law of one order: score falling, then id rising, NaN last. It lives here and nowhere else: beams, answers,
// merges of trees and best-first search all compare these keys as plain integers, smaller is better.
// Scores are never -0 (sums start at +0 and activations give +0), so a key holds its score without loss.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace beamwood {

using Key = std::uint64_t;

inline constexpr Key kWorstKey = std::numeric_limits<Key>::max();
inline constexpr Key kNoKeyPasses = 0; // as a bar: no score has so small a key

// A number that rises as scores fall: positive scores have all bits but the sign's flipped, negative ones keep theirs.
[[gnu::always_inline]] inline std::uint32_t falling_of(float score) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score);
  const std::uint32_t falling = (bits & 0x80000000u) ? bits : ~bits & 0x7fffffffu;
  return score != score ? 0xffffffffu : falling;
}

inline Key key_of(float score, std::uint32_t id) noexcept { return static_cast<Key>(falling_of(score)) << 32 | id; }

inline std::uint32_t id_of(Key key) noexcept { return static_cast<std::uint32_t>(key); }

inline float score_of(Key key) noexcept {
  const auto falling = static_cast<std::uint32_t>(key >> 32);
  if (falling == 0xffffffffu) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>((falling & 0x80000000u) ? falling : ~falling & 0x7fffffffu);
}

// Whether a candidate's score is worse than that of a bar; at equal scores ids decide, so it may still win.
inline bool worse(Key key, Key bar) noexcept { return key >> 32 > bar >> 32; }

// Whether no id can bring a candidate of this score past a bar.
inline bool worse_or_same(Key best_key_of_score, Key bar) noexcept { return best_key_of_score >= bar; }

} // namespace beamwood
