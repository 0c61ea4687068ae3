// Bytes in, their 64-bit XXH3 checksum out (seed 0), as any xxHash library computes it.
//
// Written from the published description of the algorithm: inputs up to 16, 128 and 240 bytes have short paths of
// their own; longer ones are read in stripes of 64 bytes into eight lanes that are scrambled once a block.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace beamwood {
namespace detail::xxh3 {

inline constexpr std::uint32_t kP32_1 = 0x9E3779B1u, kP32_2 = 0x85EBCA77u, kP32_3 = 0xC2B2AE3Du;
inline constexpr std::uint64_t kP64_1 = 0x9E3779B185EBCA87u, kP64_2 = 0xC2B2AE3D27D4EB4Fu, kP64_3 = 0x165667B19E3779F9u,
                               kP64_4 = 0x85EBCA77C2B2AE63u, kP64_5 = 0x27D4EB2F165667C5u;
inline constexpr std::uint64_t kMix1 = 0x165667919E3779F9u, kMix2 = 0x9FB21C651E98DF25u;

inline constexpr std::array<std::uint8_t, 192> kSecret = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

template <class T> inline T read(const std::uint8_t* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value; // little endian, as every supported machine is
}
inline std::uint32_t read32(const std::uint8_t* p) noexcept { return read<std::uint32_t>(p); }
inline std::uint64_t read64(const std::uint8_t* p) noexcept { return read<std::uint64_t>(p); }
inline std::uint64_t secret64(std::size_t at) noexcept { return read64(kSecret.data() + at); }

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t avalanche(std::uint64_t h) noexcept {
  h ^= h >> 37;
  h *= kMix1;
  return h ^ (h >> 32);
}

inline std::uint64_t avalanche64(std::uint64_t h) noexcept {
  h ^= h >> 33;
  h *= kP64_2;
  h ^= h >> 29;
  h *= kP64_3;
  return h ^ (h >> 32);
}

inline std::uint64_t up_to_16(const std::uint8_t* p, std::size_t n) noexcept {
  if (n > 8) {
    const std::uint64_t low = read64(p) ^ (secret64(24) ^ secret64(32));
    const std::uint64_t high = read64(p + n - 8) ^ (secret64(40) ^ secret64(48));
    return avalanche(n + __builtin_bswap64(low) + high + fold(low, high));
  }
  if (n >= 4) {
    const std::uint64_t both = read32(p + n - 4) + (static_cast<std::uint64_t>(read32(p)) << 32);
    std::uint64_t h = both ^ (secret64(8) ^ secret64(16));
    h ^= std::rotl(h, 49) ^ std::rotl(h, 24);
    h *= kMix2;
    h ^= (h >> 35) + n;
    h *= kMix2;
    return h ^ (h >> 28);
  }
  if (n > 0) {
    const std::uint32_t packed = static_cast<std::uint32_t>(p[0]) << 16 | static_cast<std::uint32_t>(p[n >> 1]) << 24 |
                                 p[n - 1] | static_cast<std::uint32_t>(n) << 8;
    return avalanche64(packed ^ static_cast<std::uint64_t>(read32(kSecret.data()) ^ read32(kSecret.data() + 4)));
  }
  return avalanche64(secret64(56) ^ secret64(64));
}

inline std::uint64_t mix16(const std::uint8_t* p, std::size_t secret) noexcept {
  return fold(read64(p) ^ secret64(secret), read64(p + 8) ^ secret64(secret + 8));
}

inline std::uint64_t up_to_240(const std::uint8_t* p, std::size_t n) noexcept {
  std::uint64_t h = n * kP64_1;
  if (n <= 128) {
    for (std::size_t i = (n - 1) / 32 + 1; i-- > 0;) {
      h += mix16(p + 16 * i, 32 * i);
      h += mix16(p + n - 16 * (i + 1), 32 * i + 16);
    }
    return avalanche(h);
  }
  for (std::size_t i = 0; i < 8; ++i) h += mix16(p + 16 * i, 16 * i);
  h = avalanche(h);
  for (std::size_t i = 8; i < n / 16; ++i) h += mix16(p + 16 * i, 16 * (i - 8) + 3);
  h += mix16(p + n - 16, 136 - 17);
  return avalanche(h);
}

inline void stripe(std::uint64_t* lane, const std::uint8_t* p, std::size_t secret) noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t value = read64(p + 8 * i), keyed = value ^ secret64(secret + 8 * i);
    lane[i ^ 1] += value;
    lane[i] += (keyed & 0xffffffffu) * (keyed >> 32);
  }
}

inline std::uint64_t longer(const std::uint8_t* p, std::size_t n) noexcept {
  constexpr std::size_t kStripesPerBlock = (192 - 64) / 8, kBlock = 64 * kStripesPerBlock;
  std::uint64_t lane[8] = {kP32_3, kP64_1, kP64_2, kP64_3, kP64_4, kP32_2, kP64_5, kP32_1};
  const std::size_t blocks = (n - 1) / kBlock;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t s = 0; s < kStripesPerBlock; ++s) stripe(lane, p + b * kBlock + 64 * s, 8 * s);
    for (std::size_t i = 0; i < 8; ++i) {
      lane[i] = (lane[i] ^ (lane[i] >> 47) ^ secret64(192 - 64 + 8 * i)) * kP32_1;
    }
  }
  const std::size_t stripes = ((n - 1) - blocks * kBlock) / 64;
  for (std::size_t s = 0; s < stripes; ++s) stripe(lane, p + blocks * kBlock + 64 * s, 8 * s);
  stripe(lane, p + n - 64, 192 - 64 - 7);
  std::uint64_t h = n * kP64_1;
  for (std::size_t i = 0; i < 4; ++i)
    h += fold(lane[2 * i] ^ secret64(11 + 16 * i), lane[2 * i + 1] ^ secret64(11 + 16 * i + 8));
  return avalanche(h);
}

} // namespace detail::xxh3

inline std::uint64_t xxh3_64(const void* data, std::size_t n) noexcept {
  const auto* p = static_cast<const std::uint8_t*>(data);
  if (n <= 16) return detail::xxh3::up_to_16(p, n);
  if (n <= 240) return detail::xxh3::up_to_240(p, n);
  return detail::xxh3::longer(p, n);
}

} // namespace beamwood
