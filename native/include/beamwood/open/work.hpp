// What a call did, for people who ask: blocks evaluated, rows and bytes read.
#pragma once
#include <cstdint>

namespace beamwood {

struct Work {
  std::uint64_t blocks = 0, rows = 0, bytes = 0;

  void operator+=(const Work& other) noexcept {
    blocks += other.blocks;
    rows += other.rows;
    bytes += other.bytes;
  }
};

} // namespace beamwood
