// unicode.hpp: every code point goes out and comes back; broken bytes read as U+FFFD; lower case is Python's.
#include "beamwood/text/unicode.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::string utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) {
    char bytes[4];
    out.append(bytes, unicode::encode(c, bytes));
  }
  return out;
}

std::u32string lowered(std::u32string_view given) {
  const std::string text = utf8(given);
  const auto heap = on_heap(text);
  std::u32string out;
  for (const char *p = heap.data(), *const end = p + heap.size(); p != end;)
    unicode::lower_one({heap.data(), heap.size()}, p, [&](char32_t c) { out += c; });
  return out;
}

} // namespace

TEST(every_code_point_goes_out_and_comes_back) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    char bytes[4];
    const char* const end = unicode::encode(c, bytes);
    const char* p = bytes;
    const char32_t read = unicode::decode(p, end);
    if (read != c || p != end) CHECK(static_cast<std::uint32_t>(read) == static_cast<std::uint32_t>(c));
  }
}

TEST(broken_bytes_read_as_the_replacement_character) {
  for (const std::string_view broken :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xF0\x9F\x98", "\xFF"}) {
    const auto heap = on_heap(broken);
    const char* p = heap.data();
    CHECK(unicode::decode(p, heap.data() + heap.size()) == unicode::replacement);
    CHECK(p - heap.data() == 1);
  }
}

TEST(any_bytes_decode_to_code_points_and_end_where_they_end) {
  Random random;
  for (int round = 0; round < 20000; ++round) {
    const auto heap = on_heap(damaged(random, "a\xCE\xA3\xE2\x82\xAC\xF0\x9F\x98\x80z"));
    const char *p = heap.data(), *const end = p + heap.size();
    while (p != end) {
      const char* const before = p;
      CHECK(unicode::decode(p, end) < 0x110000u);
      CHECK(p > before && p <= end);
    }
  }
}

TEST(lower_case_is_that_of_python) {
  CHECK(lowered(U"Straße ÄÖ ǅ") == U"straße äö ǆ");
  CHECK(lowered(U"\u0130x") == U"i\u0307x");                          // a capital I with a dot becomes two
  CHECK(lowered(U"ΟΔΟΣ ΣΑΣ.") == U"οδος σας.");                       // a final sigma
  CHECK(lowered(U"Σ") == U"σ");                                       // nothing before it: not final
  CHECK(lowered(U"Α\u0301Σ\u0301 Α'Σ'Α") == U"α\u0301ς\u0301 α'σ'α"); // accents and apostrophes are looked past
}

TEST(classes_are_those_of_python) {
  for (const char32_t c : {U'a', U'_', U'9', U'ß', U'漢'}) CHECK(unicode::is(c, unicode::word));
  for (const char32_t c : {U' ', U'-', U'€', U'\u2028'}) CHECK(!unicode::is(c, unicode::word));
  for (const char32_t c : {U' ', U'\t', U'\u00A0', U'\u2003'}) CHECK(unicode::is(c, unicode::space));
}
