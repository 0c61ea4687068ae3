// xxh3.hpp — bytes in, their 64-bit XXH3 checksum out (seed 0), at once or piece by piece, as any xxHash library computes it.
//
// The work is done by the maintained xxhash.h (native/third_party), which src/xxh3.cpp compiles once for the baseline of
// the target: SSE2 there. A wider instruction set is faster only on bytes that are in the cache already (64 KB: 27 GB/s
// with SSE2, 45 with AVX2; 400 MB: 22 and 21); files come from memory, so there is no dispatch at run time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace beamwood {

std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;

// The same checksum of bytes that come in pieces, however they are cut.
class Xxh3 {
public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(const void* data, std::size_t size) noexcept;
  std::uint64_t value() const noexcept;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace beamwood
