// Bytes of a CBOR file and the place of an array's first element in, its numbers out (RFC 8949).
//
// Python walks through maps and names, which are few; arrays hold millions of numbers and are read here. The bytes may
// be hostile: nothing behind their end is read, and what is not a number of the expected kind ends the reading.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace beamwood::cbor {

inline constexpr std::uint64_t kBad = ~std::uint64_t{0};

// The argument of a head whose low five bits are `info`; moves `at` behind it. False: it is not there.
inline bool argument(std::span<const std::uint8_t> bytes, std::uint64_t& at, unsigned info, std::uint64_t& out) {
  if (info < 24) {
    out = info;
    return true;
  }
  if (info > 27) return false;
  const std::uint64_t size = std::uint64_t{1} << (info - 24);
  if (bytes.size() - at < size) return false;
  out = 0;
  for (std::uint64_t i = 0; i < size; ++i) out = out << 8 | bytes[at++];
  return true;
}

inline float half(std::uint16_t bits) noexcept {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                     : exponent == 31
                         ? (fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
                         : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

inline bool number(std::span<const std::uint8_t> bytes, std::uint64_t& at, std::uint32_t& out) {
  if (at >= bytes.size() || bytes[at] >> 5 != 0) return false;
  std::uint64_t value = 0;
  const unsigned info = bytes[at++] & 31;
  if (!argument(bytes, at, info, value) || value > 0xffffffffu) return false;
  out = static_cast<std::uint32_t>(value);
  return true;
}

inline bool number(std::span<const std::uint8_t> bytes, std::uint64_t& at, float& out) {
  if (at >= bytes.size() || bytes[at] >> 5 != 7) return false;
  std::uint64_t bits = 0;
  const unsigned info = bytes[at++] & 31;
  if (info < 25 || !argument(bytes, at, info, bits)) return false;
  if (info == 25) out = half(static_cast<std::uint16_t>(bits));
  else if (info == 26) out = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else out = static_cast<float>(std::bit_cast<double>(bits));
  return true;
}

// Fills `out` from the elements that begin at `at`; where they end, or kBad.
template <class T>
std::uint64_t numbers(std::span<const std::uint8_t> bytes, std::uint64_t at, std::span<T> out) noexcept {
  for (T& value : out)
    if (!number(bytes, at, value)) return kBad;
  return at;
}

} // namespace beamwood::cbor
