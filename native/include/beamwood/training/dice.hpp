// A seed in, numbers that look random out (SplitMix64): the same on every machine.
//
// The law: a draw depends on the seed, and on a key made of it, only: never on a thread, a clock or an address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace beamwood {

class Dice {
public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}

  // Dice for one place (a cluster of a tree): no two places share a stream.
  static Dice keyed(std::uint64_t seed, std::uint64_t place) noexcept {
    return Dice(Dice(seed).next() ^ (place * 0xd1342543de82ef95u));
  }

  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t end) noexcept { return static_cast<std::uint32_t>(((next() >> 32) * end) >> 32); }
  // Also below `end`, by remainder: the clusterings draw their members so.
  std::size_t modulo(std::size_t end) noexcept { return static_cast<std::size_t>(next() % end); }

  template <class T> void shuffle(std::span<T> items) noexcept {
    for (auto left = static_cast<std::uint32_t>(items.size()); left > 1; --left) {
      std::swap(items[left - 1], items[below(left)]);
    }
  }

private:
  std::uint64_t state_;
};

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept { return Dice(Dice(a).next() ^ b).next(); }

} // namespace beamwood
