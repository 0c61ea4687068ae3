// Any bytes and any float as JSON: valid, and the number reads back.
#include <bit>
#include <charconv>
#include <string>

#include "beamwood/wire/json.hpp"
#include "check.hpp"

namespace {

using namespace beamwood;

std::string written(std::string_view text) {
  std::string out;
  json::put_string(text, out);
  return out;
}

std::string written(float value) {
  std::string out;
  json::put_number(value, out);
  return out;
}

} // namespace

TEST(json_strings_are_escaped) {
  CLAIM(written("plain") == "\"plain\"", "plain");
  CLAIM(written("a\"b\\c") == "\"a\\\"b\\\\c\"", "quotes and backslashes");
  CLAIM(written(std::string_view("\x00\n\x1f\x7f", 4)) == "\"\\u0000\\u000a\\u001f\x7f\"", "control characters");
  CLAIM(written("\xc3\xbc\xf0\x9f\x8c\xb2") == "\"\xc3\xbc\xf0\x9f\x8c\xb2\"", "UTF-8 stands for itself");
  CLAIM(written("\xed\xa0\x80") == "\"\xef\xbf\xbd\"", "a lone surrogate");
  CLAIM(written("\xff") == "\"\xef\xbf\xbd\"", "no UTF-8");
}

TEST(json_of_any_bytes_is_valid_utf8_without_control_characters) {
  check::Random random;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random.next() % 24, '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    const std::string out = written(bytes);
    const char *p = out.data(), *const end = p + out.size();
    while (p < end) {
      const char* const at = p;
      const char32_t c = unicode::decode(p, end);
      CLAIM(c >= 0x20 && !(c >= 0xD800 && c < 0xE000), "a character of JSON");
      CLAIM(c != unicode::replacement || std::string_view(at, p) == "\xef\xbf\xbd", "valid UTF-8");
    }
  }
}

TEST(json_numbers_read_back_as_the_same_bits) {
  check::Random random;
  for (int round = 0; round < 100000; ++round) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    const std::string out = written(value);
    if (!std::isfinite(value)) {
      CLAIM(out == "null", "not finite");
      continue;
    }
    double read = 0;
    std::from_chars(out.data(), out.data() + out.size(), read);
    CLAIM(std::bit_cast<std::uint32_t>(static_cast<float>(read)) == std::bit_cast<std::uint32_t>(value),
          "the same bits");
  }
}
