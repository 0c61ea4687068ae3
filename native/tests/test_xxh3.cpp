// xxh3.hpp: checksums that the reference implementation of xxHash gave for the same bytes.
#include "beamwood/xxh3.hpp"
#include "check.hpp"

TEST(checksums_are_those_of_xxhash) {
  struct Known {
    std::size_t length;
    std::uint64_t hash;
  };
  const Known known[] = {
      {0, 0x2d06800538d394c2},     {1, 0x4c5cca45d0f4811f},    {2, 0x29c60963cbfa4e6e},    {3, 0x6e3e2670e61106ac},
      {4, 0x5c4c63133443d03f},     {5, 0x49f5eb3111280b63},    {8, 0xf9fd4dd0b04d78f5},    {9, 0x7c20df9712c26edf},
      {16, 0x86abf6baccea0858},    {17, 0xb58bf5dc5022d071},   {32, 0xe3712ed84c04a66e},   {33, 0xa4dee99b093e1f73},
      {64, 0x1291d2d4042330dd},    {96, 0x81296929fc063365},   {128, 0x10d17f72c0ccba41},  {129, 0x1648bdc3db49d1a2},
      {160, 0x655c8dc33b4b4c4a},   {239, 0xf0d154819adb16cd},  {240, 0xb6cfaf343fab81e6},  {241, 0x956cae592c67279e},
      {255, 0x64a6073025eb7929},   {256, 0xb15e550733c5dfac},  {512, 0x31cc4c8456761b50},  {1023, 0xaa76836516a7ea30},
      {1024, 0xa1e16f2edf2cbed6},  {1025, 0x0a6d2c17259fe4bb}, {2048, 0x1c81a12455515459}, {4097, 0x377f136744508714},
      {100000, 0x61b222b374cf1fa7}};
  for (const Known& k : known) {
    std::vector<std::uint8_t> bytes(k.length);
    for (std::size_t i = 0; i < k.length; ++i) bytes[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8) * 17 + 7);
    CHECK(beamwood::xxh3_64(bytes.data(), bytes.size()) == k.hash);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{63}, std::size_t{1000}}) {
      beamwood::Xxh3 hash;
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        hash.add(bytes.data() + at, std::min(piece, bytes.size() - at));
      CHECK(hash.value() == k.hash);
    }
  }
}
