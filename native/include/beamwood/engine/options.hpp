// What people ask of a search, as one value.
#pragma once
#include <cstdint>

#include "beamwood/engine/score.hpp"
#include "beamwood/match/match.hpp"
#include "beamwood/parallel.hpp"

namespace beamwood {

struct SearchOptions {
  std::uint32_t k = 10, beam = 10;
  bool choose = true;                // let the engine choose a matcher for each layer
  Matcher matcher = Matcher::binary; // otherwise this one
  Isa isa = Isa::scalar;
  bool sort_blocks = true;               // Algorithm 3's sort; off only to measure what it brings
  bool bound = true;                     // the exact bound; off only to measure what it brings
  std::uint64_t dense_bytes = 64u << 20; // what `auto` may spend on dense lookups
  const StopFlag* stop = nullptr;        // looked at between queries, layers and nodes: `Stopped` ends the search
};

} // namespace beamwood
