// A claim in, a line on a failure out: the whole test harness. A test is TEST(its_claim) { … CHECK(…) … }.
//
// Randomness is a Random made from the test's seed; a failure prints the seed, and BEAMWOOD_SEED=n repeats it.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registered {
  Registered(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline std::uint64_t seed = 1;
inline int failures = 0;

inline void expect(bool holds, const char* claim, const char* file, int line) {
  if (holds || ++failures > 20) return; // twenty lines tell the story
  std::printf("%s:%d: %s does not hold (BEAMWOOD_SEED=%llu)\n", file, line, claim,
              static_cast<unsigned long long>(seed));
}

// SplitMix64: small, seeded, the same everywhere.
class Random {
public:
  explicit Random(std::uint64_t state = seed) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(next() % n); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(std::uint64_t{high} - low + 1); }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  float number() { return static_cast<float>(static_cast<double>(next() >> 11) * 0x1p-51 - 2.0); } // -2 to 2

private:
  std::uint64_t state_;
};

} // namespace check

#define TEST(claim)                                                                                                    \
  static void claim();                                                                                                 \
  static const check::Registered registered_##claim{#claim, claim};                                                    \
  static void claim()
#define CHECK(...) check::expect((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
