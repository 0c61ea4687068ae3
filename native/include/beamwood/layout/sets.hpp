// A set of siblings of a wide chunk and a child in, whether it is there and how many come before it out (see SetForm).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "beamwood/layout/record.hpp"

namespace beamwood {

// How many of `count` rising numbers are below `bound`: a binary search whose steps are no branches.
inline std::uint64_t rank_of(const std::uint16_t* numbers, std::uint64_t count, std::uint32_t bound) noexcept {
  const std::uint16_t* base = numbers;
  for (std::uint64_t left = count; left > 0;) {
    const std::uint64_t half = (left + 1) / 2;
    base += (0 - std::uint64_t{base[half - 1] < bound}) & half;
    left -= half;
  }
  return static_cast<std::uint64_t>(base - numbers);
}

// Whether a child is in a set of siblings, and how many of the set come before it.
struct Place {
  bool there;
  std::uint64_t nth;
};

[[gnu::always_inline]] inline Place place_in_bitmap(const std::uint32_t* set, std::uint32_t child) noexcept {
  std::uint64_t nth = 0;
  for (std::uint32_t word = 0; word < child / 32; ++word) nth += static_cast<unsigned>(std::popcount(set[word]));
  const std::uint32_t mask = set[child / 32], bit = 1u << (child % 32);
  return {(mask & bit) != 0, nth + static_cast<unsigned>(std::popcount(mask & (bit - 1)))};
}

// A list of up to eight is compared as a whole (arrays of records have words to spare at their end); of a longer one the
// first eight are.
[[gnu::always_inline]] inline Place place_in_short_list(const std::uint32_t* set, std::uint64_t count,
                                                        std::uint32_t child) noexcept {
  const std::uint64_t few = std::min<std::uint64_t>(count, 8);
#if defined(__SSE2__)
  const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(set));
  const __m128i equal = _mm_cmpeq_epi16(numbers, _mm_set1_epi16(static_cast<short>(child)));
  const auto found = static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & ((1u << 2 * few) - 1);
  return {found != 0, static_cast<unsigned>(std::countr_zero(found | 0x10000u)) / 2};
#else
  std::uint64_t nth = 0;
  while (nth < few && half_word(set, nth) != child) ++nth;
  return {nth < few, nth};
#endif
}

[[gnu::always_inline]] inline Place place_in_list(const std::uint32_t* set, std::uint64_t count,
                                                  std::uint32_t child) noexcept {
  if (count <= 8) return place_in_short_list(set, count, child);
  const auto* const first = reinterpret_cast<const std::uint16_t*>(set);
  const std::uint64_t nth = rank_of(first, count, child);
  return {nth < count && first[nth] == child, nth};
}

// Where one child is looked for in sets of up to 128 siblings, of both kinds (see SetForm), without a branch: whether a
// set is a list or a bitmap, and whether the child is in it, could not be foreseen.
class ChildInSets {
public:
  [[gnu::always_inline]] explicit ChildInSets(std::uint32_t child) noexcept
      : word_(child / 64 * 2), bit_(child % 64), child_(child),
        below_{child < 64 ? (std::uint64_t{1} << bit_) - 1 : ~std::uint64_t{0},
               child < 64 ? 0 : (std::uint64_t{1} << bit_) - 1} {}

  // The set of `count` siblings begins at `set`, 16 bytes from which can be read.
  [[gnu::always_inline]] Place find(const SetForm& form, const std::uint32_t* set, std::uint64_t count) const noexcept {
    const auto pair = [set](std::uint32_t word) {
      std::uint64_t bits;
      std::memcpy(&bits, set + word, sizeof bits);
      return bits;
    };
    const auto nth = static_cast<std::uint64_t>(std::popcount(pair(0) & below_[0])) +
                     static_cast<std::uint64_t>(std::popcount(pair(2) & below_[1]));
    const std::uint64_t in_bits = (pair(word_) >> bit_ & 1) & std::uint64_t{nth < count};
    const Place listed = place_in_short_list(set, count, child_);
    const std::uint64_t bits = 0 - std::uint64_t{form.bits(count)};
    return {((in_bits & bits) | (std::uint64_t{listed.there} & ~bits)) != 0, (nth & bits) | (listed.nth & ~bits)};
  }

private:
  std::uint32_t word_, bit_, child_;
  std::uint64_t below_[2];
};

} // namespace beamwood
