// A weight in, its code in a record out, and back: float32 as it is, a half, or a byte that counts in steps of a scale.
//
// The law: a compact model has definite float32 weights, those that its codes decode to, and every layout and every
// instruction set computes with exactly these. A half decodes without rounding; a byte is one product, rounded once:
// float(code) * scale. The scale belongs to a chunk: with one for each column or each row, precision on real sets was
// the same to a few hundredths of a point (bench/compact.py), at more bytes.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace beamwood {

enum class WeightKind : std::uint8_t { f32, f16, u8 };

// How the weights of a chunk are to be read.
struct WeightCode {
  WeightKind kind = WeightKind::f32;
  float scale = 1.0f; // of bytes
  bool lists = false; // wide records hold no bitmaps (record.hpp): chunks of files of format 1
};

// What n weights take. They lie packed, lowest first, and are filled up to a word.
[[gnu::always_inline]] constexpr std::uint64_t weight_words(WeightKind kind, std::uint64_t n) noexcept {
  const auto shift = static_cast<unsigned>(kind); // 1, 2, 4 weights a word
  return (n + (1u << shift) - 1) >> shift;
}

[[gnu::always_inline]] inline float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | rest << 13); // infinite or not a number
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f) | sign);
}

// The nearest half, ties to even; what is too large becomes the largest one.
inline std::uint16_t half_from_float(float value) noexcept {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000u);
  const float size = std::min(std::fabs(value), 65504.0f);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(size);
  if (size < 0x1p-14f) return sign | static_cast<std::uint16_t>(std::nearbyint(size * 0x1p24f)); // subnormal halves
  return sign | static_cast<std::uint16_t>((bits - (112u << 23) + 0xfffu + (bits >> 13 & 1u)) >> 13);
}

// The scale of a chunk whose largest weight has this size: bytes reach from -127 to 127 times it, and it is not zero.
inline float scale_for(float largest) noexcept {
  float scale = std::max(largest / 127.0f, std::bit_cast<float>(1u));
  if (std::isinf(127.0f * scale)) scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) - 1u);
  return scale;
}

[[gnu::always_inline]] inline float decode(WeightCode code, const std::uint32_t* weights, std::uint64_t i) noexcept {
  switch (code.kind) {
  case WeightKind::f32: return std::bit_cast<float>(weights[i]);
  case WeightKind::f16: return half_to_float(static_cast<std::uint16_t>(weights[i / 2] >> (16 * (i % 2))));
  case WeightKind::u8: break;
  }
  return static_cast<float>(static_cast<std::int8_t>(weights[i / 4] >> (8 * (i % 4)))) * code.scale;
}

// Writes weight i of a record whose words were zeros before.
inline void encode(WeightCode code, std::uint32_t* weights, std::uint64_t i, float weight) noexcept {
  switch (code.kind) {
  case WeightKind::f32: weights[i] = std::bit_cast<std::uint32_t>(weight); return;
  case WeightKind::f16: weights[i / 2] |= std::uint32_t{half_from_float(weight)} << (16 * (i % 2)); return;
  case WeightKind::u8: break;
  }
  const float steps = std::clamp(std::nearbyint(weight / code.scale), -127.0f, 127.0f);
  weights[i / 4] |= std::uint32_t{static_cast<std::uint8_t>(static_cast<int>(steps))} << (8 * (i % 4));
}

} // namespace beamwood
