// natural_log.hpp — a number from 1 on in, its natural logarithm out, the same bits on every machine.
//
// The law: only sums, products and quotients of doubles, in a fixed order, so no C library has a say. The result is worked
// out to some 100 bits and rounded once: it is the double nearest to the logarithm, but for one number in billions.
//
// x = m * 2^e with m from sqrt(1/2) to sqrt(2); log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), a series in s^2 < 0.03.
#pragma once
#include <cmath>

namespace beamwood {

namespace detail {

// A sum of two doubles, the second less than half a unit in the last place of the first.
struct Twofold {
  double high, low;
};

inline Twofold sum_of(double a, double b) noexcept {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

inline Twofold product_of(double a, double b) noexcept {
  constexpr double splitter = 134217729.0; // 2^27 + 1: a product in halves of 26 bits is exact
  const double p = a * b, sa = splitter * a, sb = splitter * b;
  const double a1 = sa - (sa - a), a2 = a - a1, b1 = sb - (sb - b), b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

inline Twofold operator+(Twofold a, Twofold b) noexcept {
  const Twofold high = sum_of(a.high, b.high), low = sum_of(a.low, b.low);
  const Twofold part = sum_of(high.high, high.low + low.high);
  return sum_of(part.high, part.low + low.low);
}

inline Twofold operator*(Twofold a, Twofold b) noexcept {
  const Twofold p = product_of(a.high, b.high);
  return sum_of(p.high, p.low + (a.high * b.low + a.low * b.high));
}

inline Twofold operator/(Twofold a, Twofold b) noexcept {
  const double first = a.high / b.high;
  Twofold rest = a + b * Twofold{-first, 0};
  const double second = rest.high / b.high;
  rest = rest + b * Twofold{-second, 0};
  return sum_of(first, second) + Twofold{rest.high / b.high, 0};
}

} // namespace detail

inline double natural_log(double x) noexcept {
  using detail::Twofold;
  if (!(x > 0) || !(x < 1e300)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent); // exact
  if (m < 0.70710678118654752) m *= 2, --exponent;
  const Twofold s = detail::sum_of(m, -1) / detail::sum_of(m, 1), square = s * s;
  Twofold series{0, 0};
  for (int odd = 43; odd >= 1; odd -= 2)
    series = series * square + Twofold{1, 0} / Twofold{static_cast<double>(odd), 0};
  const Twofold ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const Twofold whole = Twofold{2, 0} * s * series + ln2 * Twofold{static_cast<double>(exponent), 0};
  return whole.high + whole.low;
}

} // namespace beamwood
