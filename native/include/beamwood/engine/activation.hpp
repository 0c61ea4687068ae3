// One number z in, the score of one node out; and how scores are put together along a path.
//
// The law: each activation is one scalar function, steps in double, rounded to float32 once. It is written with
// plain IEEE operations in a fixed order and without branches, so a compiler may run it on many siblings at once and
// every instruction set gives the same bits. The C library's exp and log are not used: they differ by machine.
//
// No activation but `identity` gives a score above that of certainty (1, or 0 for the log kinds), so along a path
// scores only shrink: best-first search and the bound of cascade search rely on it. A discount (Bonsai's) shrinks a
// node's log score, which is below zero, before its children add theirs: then a child may stand above its parent.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace beamwood {

// Functions that kernels of several instruction sets share must be inlined into each: an out-of-line copy would be
// one for all, compiled for whichever machine the linker met first.
#define BEAMWOOD_INLINE [[gnu::always_inline]] inline

enum class ActivationKind : std::uint8_t { identity, sigmoid, hinge, log_sigmoid, log_hinge };

// How a child's activation meets its parent's score: alone, multiplied, added; or added with exp taken at the leaf.
enum class Path : std::uint8_t { last, product, sum, log_exp };

struct Activation {
  ActivationKind kind = ActivationKind::sigmoid;
  std::uint8_t power = 1; // p of hinge-p
  Path path = Path::product;
  float discount = 1.0f; // of log_exp: what a node's score is multiplied by before its children add theirs

  bool only_shrinks() const noexcept { return path != Path::last && discount == 1.0f; }
  // What the children of a node with this score start from, given their biases (may be null). An only child that is
  // certain, which stands for its parent one layer lower, takes the score as it is.
  float handed_down(float score, const float* bias, std::uint32_t width) const noexcept {
    const bool stands_in = width == 1 && bias && *bias == std::numeric_limits<float>::infinity();
    return path == Path::log_exp && !stands_in ? discount * score : score;
  }
  float root_score() const noexcept { return path == Path::product ? 1.0f : 0.0f; }
};

// e^x to about one unit in the last place of double: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial in r,
// then n added to the exponent. Arguments are held to the range of normal doubles, far outside float32's. NaN stays.
BEAMWOOD_INLINE double exp_of(double x) noexcept {
  x = x < -708.0 ? -708.0 : x;
  x = x > 709.0 ? 709.0 : x;
  constexpr double kRound = 6755399441055744.0; // 1.5 * 2^52: adding it leaves the nearest integer in the low bits
  const double shifted = x * 1.4426950408889634 + kRound;
  const double n = shifted - kRound;
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) + 1023u;
  return p * std::bit_cast<double>(exponent << 52);
}

// ln(1 + y) for y in [0, 1]: twice the area hyperbolic tangent of y / (2 + y), at most 1/3, as its series.
BEAMWOOD_INLINE double log1p_of(double y) noexcept {
  const double s = y / (2.0 + y);
  const double q = s * s;
  double p = 1.0 / 33.0;
  for (int odd = 31; odd >= 1; odd -= 2) p = p * q + 1.0 / odd;
  return 2.0 * s * p;
}

namespace detail {

BEAMWOOD_INLINE double power_of(double m, int p) noexcept {
  double product = m;
  for (int i = 1; i < p; ++i) product *= m;
  return product;
}

// m of the hinge kinds: max(0, 1 - z) rounded to float32; NaN stays.
BEAMWOOD_INLINE double margin_of(float z) noexcept {
  const double m = 1.0 - static_cast<double>(z);
  return static_cast<double>(static_cast<float>(m < 0.0 ? 0.0 : m));
}

} // namespace detail

BEAMWOOD_INLINE float sigmoid_of(float z) noexcept {
  return static_cast<float>(1.0 / (1.0 + exp_of(-static_cast<double>(z))));
}

BEAMWOOD_INLINE float hinge_of(float z, int p) noexcept {
  return static_cast<float>(exp_of(-detail::power_of(detail::margin_of(z), p)));
}

// The log kinds end with + 0: a tiny negative rounds to -0, and certainty must be +0 for the order law.
BEAMWOOD_INLINE float log_sigmoid_of(float z) noexcept {
  const double x = static_cast<double>(z);
  const double low = x > 0.0 ? 0.0 : x;
  const double magnitude = x < 0.0 ? -x : x;
  return static_cast<float>(low - log1p_of(exp_of(-magnitude))) + 0.0f;
}

BEAMWOOD_INLINE float log_hinge_of(float z, int p) noexcept {
  return static_cast<float>(-detail::power_of(detail::margin_of(z), p)) + 0.0f;
}

inline float activate(const Activation& a, float z) noexcept {
  switch (a.kind) {
  case ActivationKind::identity: return z;
  case ActivationKind::sigmoid: return sigmoid_of(z);
  case ActivationKind::hinge: return hinge_of(z, a.power);
  case ActivationKind::log_sigmoid: return log_sigmoid_of(z);
  case ActivationKind::log_hinge: return log_hinge_of(z, a.power);
  }
  return z;
}

inline float combine(Path path, float parent, float own) noexcept {
  if (path == Path::product) return parent * own;
  return path == Path::last ? own : parent + own;
}

namespace detail {
[[gnu::noinline]] inline float exp_of_log(float score) noexcept {
  return static_cast<float>(exp_of(static_cast<double>(score)));
}
} // namespace detail

// What the answer shows for a leaf: its path's score, through exp where log scores were added on the way. The usual way is
// short enough to be inlined everywhere.
BEAMWOOD_INLINE float leaf_score(Path path, float score) noexcept {
  return path == Path::log_exp ? detail::exp_of_log(score) : score;
}

namespace detail {

// A number not below log2(x), and at most 0.016 above it, for a positive normal x: the exponent, and a parabola through
// the mantissa.
inline double above_log2(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double f = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull) - 1.0;
  return static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023) + f * (1.3465553 - 0.3465553 * f) + 0.008;
}

// A number not below 2^x, and at most 1.07 times it: the chord between whole powers. |x| < 1000.
inline double above_exp2(double x) noexcept {
  const double whole = std::floor(x);
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(whole) + 1023) << 52) *
         (1.0 + (x - whole));
}

} // namespace detail

namespace detail {

// A number not below e^x - 1, and at most a thousandth above it, for x from 0 to 600: whole powers of two, and a series
// for the rest whose first term is exact, so that small results stay right.
inline double above_expm1(double x) noexcept {
  const double y = x * 1.4426950408889634, whole = std::floor(y), f = y - whole;
  const double power = std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(whole) + 1023) << 52);
  const double rest =
      f * (0.69314718 + f * (0.24022651 + f * (0.05550411 + f * (0.00961813 + f * 0.00133336)))); // 2^f - 1, from below
  return ((power - 1.0) + power * rest) * (1.0 + 5e-4);
}

} // namespace detail

// A z that no sibling may lie below if its score is to reach `bar`, given its parent's score: whoever lies below can be
// left out unscored. It only has to be low enough: whoever is let through is scored and changes nothing, so that rough
// and quick functions do.
inline double lowest_z(const Activation& a, float parent, float bar, bool leaf) noexcept {
  constexpr double kSlack = 1e-4, kAnything = -std::numeric_limits<double>::infinity(), kLn2 = 0.6931471805599453;
  constexpr float kCoarse = 1e-37f; // below it float32 rounds by far more than the slack
  const bool shown_as_exp = leaf && a.path == Path::log_exp;
  if (a.path == Path::last || ((a.path == Path::product || shown_as_exp) && !(bar > kCoarse))) return kAnything;
  // The most that -log(activation) may be.
  double loss = 0;
  if (a.path == Path::product) {
    if (!(parent >= bar)) return kAnything;
    loss = detail::above_log2(static_cast<double>(parent) / static_cast<double>(bar)) * kLn2;
  } else {
    const double above = static_cast<double>(parent);
    const double target =
        shown_as_exp ? (detail::above_log2(static_cast<double>(bar)) - 0.016) * kLn2 : static_cast<double>(bar);
    loss = above - target + kSlack * (std::abs(above) + std::abs(target));
  }
  loss = std::max(loss + kSlack, kSlack);
  if (!(loss < 1e30)) return kAnything;
  if (a.kind == ActivationKind::hinge || a.kind == ActivationKind::log_hinge)
    return 1.0 - detail::above_exp2(detail::above_log2(loss) / a.power) * (1.0 + kSlack) - kSlack;
  if (loss > 600.0) return -loss * (1.0 + kSlack) - kSlack;
  const double z = -detail::above_log2(detail::above_expm1(loss)) * kLn2;
  return z - kSlack * (1.0 + std::abs(z));
}

} // namespace beamwood
