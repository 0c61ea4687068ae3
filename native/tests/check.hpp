// A claim in, a line on a failure out: the whole test harness. A test is TEST(its_claim) { … CHECK(…) … }.
//
// CHECK(a == b) prints both values when it fails; CLAIM(condition, text) prints the text. Randomness is a Random made
// from the test's seed; a failure prints the seed, and BEAMWOOD_SEED=n repeats it.
//
// Why not doctest: all that it would add here is the printing of values, thirty lines below, for a header of 7,000
// lines that every test would have to compile, and it knows nothing of seeds.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
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
  Registered(const char* name, void (*run)()) noexcept { tests().push_back({name, run}); }
};

inline std::uint64_t seed = 1;
inline int failures = 0;

inline void expect(bool holds, const std::string& claim, const char* file, int line) {
  if (holds || ++failures > 20) return; // twenty lines tell the story
  std::printf("%s:%d: %s does not hold (BEAMWOOD_SEED=%llu)\n", file, line, claim.c_str(),
              static_cast<unsigned long long>(seed));
}

// A value as text; what cannot be printed is a question mark.
template <class T> std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (requires(std::ostringstream& out) { out << value; }) {
    std::ostringstream out;
    out.precision(17);
    out << value;
    return out.str();
  } else {
    return "?";
  }
}

template <class T>
concept WholeNumber =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, char32_t>;

// The left side of a comparison; comparing it gives the outcome with both values.
template <class L> struct Left {
  const L& left;

  struct Outcome {
    bool holds;
    std::string values;
    explicit operator bool() const { return holds; }
  };

// NOLINTBEGIN(bugprone-macro-parentheses): `op` is an operator
#define BEAMWOOD_COMPARISON(op, compare)                                                                               \
  template <class R> Outcome operator op(const R& right) const {                                                       \
    bool holds;                                                                                                        \
    if constexpr (WholeNumber<L> && WholeNumber<R>) holds = std::compare(left, right);                                 \
    else holds = static_cast<bool>(left op right);                                                                     \
    return {holds, holds ? std::string() : shown(left) + " " #op " " + shown(right)};                                  \
  }
  BEAMWOOD_COMPARISON(==, cmp_equal)
  BEAMWOOD_COMPARISON(!=, cmp_not_equal)
  BEAMWOOD_COMPARISON(<, cmp_less)
  BEAMWOOD_COMPARISON(<=, cmp_less_equal)
  BEAMWOOD_COMPARISON(>, cmp_greater)
  BEAMWOOD_COMPARISON(>=, cmp_greater_equal)
#undef BEAMWOOD_COMPARISON
  // NOLINTEND(bugprone-macro-parentheses)

  explicit operator bool() const { return static_cast<bool>(left); }
};

// `<<` binds closer than a comparison, so it takes the left side only.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Woverloaded-shift-op-parentheses"
#endif
struct Claim {
  template <class L> Left<L> operator<<(const L& left) const { return {left}; }
};

// Outcome, Left or, of claims joined by && and ||, a plain bool.
template <class T> void expect_that(const T& outcome, const char* claim, const char* file, int line) {
  const bool holds = static_cast<bool>(outcome);
  std::string text = claim;
  if constexpr (requires { outcome.values; }) text += " (" + outcome.values + ")";
  expect(holds, text, file, line);
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
#define CHECK(...) check::expect_that(check::Claim{} << __VA_ARGS__, #__VA_ARGS__, __FILE__, __LINE__)
#define CLAIM(condition, text) check::expect((condition), (text), __FILE__, __LINE__)
