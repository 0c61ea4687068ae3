// What is known of a layer's blocks in, the matcher expected to be quickest out: the engine's `auto`.
//
// The paper's rule of thumb (dense for large batches, hash for sparse queries, binary where memory is short, march
// never) as a small sum of costs. Costs are nanoseconds per block, as `beamwood bench` found them; they decide
// only speed, never bits.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "beamwood/match/match.hpp"

namespace beamwood {

struct BlockStatistics {
  double blocks = 1; // in this layer of this batch
  double chunks = 1; // or columns: supports in this layer
  double rows = 1;   // of a support, on average
  double query_nonzeros = 1;
  bool has_index = false;
  bool dense_fits = true; // d numbers for each worker are within the memory the engine allows itself
};

inline double cost_of(Matcher matcher, const BlockStatistics& s) noexcept {
  const double small = std::min(s.rows, s.query_nonzeros), large = std::max(s.rows, s.query_nonzeros);
  const double shared = std::max(1.0, s.blocks / std::max(1.0, s.chunks)); // blocks that meet the same support
  constexpr double kCold = 4 << 20; // rows of a layer beyond which searched lines come from memory, not from a cache
  switch (matcher) {
  case Matcher::march: return std::min(1.5 * (s.rows + s.query_nonzeros), 15.0 * small + 0.15 * large);
  case Matcher::binary: return (s.rows * s.chunks > kCold ? 1.3 : 0.9) * small * std::log2(large + 1.0);
  case Matcher::hash: return 11.0 * s.query_nonzeros;
  case Matcher::dense: return 1.2 * s.query_nonzeros + 2.0 * s.rows / shared;
  }
  return 0;
}

inline Matcher choose_matcher(const BlockStatistics& s) noexcept {
  Matcher best = Matcher::binary;
  if (s.has_index && cost_of(Matcher::hash, s) < cost_of(best, s)) best = Matcher::hash;
  if (s.dense_fits && cost_of(Matcher::dense, s) < cost_of(best, s)) best = Matcher::dense;
  if (cost_of(Matcher::march, s) < cost_of(best, s)) best = Matcher::march;
  return best;
}

} // namespace beamwood
