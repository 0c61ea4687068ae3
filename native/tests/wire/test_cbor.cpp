// cbor.hpp: the numbers of RFC 8949, and no step outside for damaged bytes.
#include "beamwood/wire/cbor.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

template <class T> bool reads(std::string_view bytes, T& out) {
  const auto heap = on_heap<std::uint8_t>(bytes);
  const std::uint64_t end = cbor::numbers<T>(heap, 0, std::span(&out, 1));
  CHECK(end == cbor::kBad || end == heap.size());
  return end != cbor::kBad;
}

template <class T> T read(std::string_view bytes) {
  T out{};
  CLAIM(reads(bytes, out), "these bytes are a number");
  return out;
}

template <class T> bool refused(std::string_view bytes) {
  T out{};
  return !reads(bytes, out);
}

using namespace std::string_view_literals;

} // namespace

TEST(whole_numbers_are_those_of_the_rfc) {
  CHECK(read<std::uint32_t>("\x00"sv) == 0u);
  CHECK(read<std::uint32_t>("\x17") == 23u);
  CHECK(read<std::uint32_t>("\x18\x18") == 24u);
  CHECK(read<std::uint32_t>("\x19\x03\xe8") == 1000u);
  CHECK(read<std::uint32_t>("\x1a\x00\x0f\x42\x40"sv) == 1000000u);
  CHECK(read<std::uint32_t>("\x1b\x00\x00\x00\x00\xff\xff\xff\xff"sv) == 0xffffffffu);
  for (const std::string_view bad : {""sv, "\x18"sv, "\x19\x03"sv, "\x1a\x00\x0f\x42"sv, "\x1c"sv, "\x1f"sv, "\x20"sv,
                                     "\xf9\x3c\x00"sv, "\x1b\x00\x00\x00\x01\x00\x00\x00\x00"sv})
    CHECK(refused<std::uint32_t>(bad));
}

TEST(floats_are_those_of_the_rfc) {
  CHECK(read<float>("\xf9\x3c\x00"sv) == 1.0f);
  CHECK(read<float>("\xf9\x7b\xff"sv) == 65504.0f);
  CHECK(read<float>("\xf9\x00\x01"sv) == 5.960464477539063e-8f);
  CHECK(read<float>("\xf9\xc4\x00"sv) == -4.0f);
  CHECK(std::isinf(read<float>("\xf9\x7c\x00"sv)));
  CHECK(std::isnan(read<float>("\xf9\x7e\x00"sv)));
  CHECK(read<float>("\xfa\x47\xc3\x50\x00"sv) == 100000.0f);
  CHECK(read<float>("\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"sv) == 1.1f);
  CHECK(std::isinf(read<float>("\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c"sv))); // 1e300
  for (const std::string_view bad : {""sv, "\xf4"sv, "\xf8\x18"sv, "\xf9\x3c"sv, "\xfa\x47"sv, "\xfb\x3f"sv, "\x01"sv})
    CHECK(refused<float>(bad));
}

TEST(damaged_arrays_end_the_reading_inside) {
  Random random;
  std::string whole, floats;
  for (int i = 0; i < 20; ++i)
    whole += "\x05\x18\xff\x19\xff\xff\x1a\x01\x02\x03\x04"sv, floats += "\xf9\x3c\x01\xfa\x47\xc3\x50\x01"sv;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint32_t> numbers(80);
    std::vector<float> values(40);
    const auto a = on_heap<std::uint8_t>(damaged(random, whole)), b = on_heap<std::uint8_t>(damaged(random, floats));
    const std::uint64_t from = random.below(a.size() + 1);
    const std::uint64_t end = cbor::numbers<std::uint32_t>(a, from, numbers);
    CHECK(end == cbor::kBad || (end >= from && end <= a.size()));
    const std::uint64_t stop = cbor::numbers<float>(b, random.below(b.size() + 1), values);
    CHECK(stop == cbor::kBad || stop <= b.size());
  }
}
