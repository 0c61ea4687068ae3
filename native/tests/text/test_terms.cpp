// terms.hpp: the terms of each splitter, and no step outside for any bytes.
#include "beamwood/text/terms.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::string terms_of(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  const auto heap = on_heap(text);
  std::string out;
  for_each_term({heap.data(), heap.size()}, rules, scratch, [&](const char* bytes, std::size_t length) {
    out += '[';
    out.append(bytes, length);
    out += ']';
  });
  return out;
}

std::string terms_of(std::string_view text, const TermRules& rules) {
  TermScratch scratch;
  return terms_of(text, rules, scratch);
}

} // namespace

TEST(words_are_runs_of_letters_joined_by_one_space) {
  const TermRules rules;
  CHECK(terms_of("Red  wool-SOCKS, a x2!", rules) == "[red][wool][socks][x2]");
  TermRules pairs = rules;
  pairs.max_n = 2;
  CHECK(terms_of("Red  wool-SOCKS", pairs) == "[red][wool][socks][red wool][wool socks]");
  pairs.min_n = 2, pairs.max_n = 5;
  CHECK(terms_of("red wool", pairs) == "[red wool]");
  TermRules kept = rules;
  kept.lowercase = false;
  kept.min_letters = 1;
  CHECK(terms_of("A b\xC3\x84 \xE2\x82\xAC", kept) == "[A][b\xC3\x84]");
  CHECK(terms_of("\xC3\x84rger a\xCC\x81z \xE2\x82\xAC", rules) == "[\xC3\xA4rger]");
  CHECK(terms_of("", rules).empty());
  CHECK(terms_of("\xE2\x82\xAC", rules).empty());
}

TEST(letter_runs_stay_inside_padded_words) {
  TermRules rules;
  rules.splitter = Splitter::char_wb;
  rules.min_n = 2, rules.max_n = 3;
  CHECK(terms_of("Ab c", rules) == "[ a][ab][b ][ ab][ab ][ c][c ][ c ]");
  rules.min_n = 5, rules.max_n = 6;
  CHECK(terms_of("ab", rules) == "[ ab ]"); // shorter than n: once, whole
  CHECK(terms_of(" \t ", rules).empty());
}

TEST(space_and_line_count_the_first_tokens) {
  TermRules rules;
  rules.splitter = Splitter::space;
  rules.max_tokens = 2;
  CHECK(terms_of("  a-b  C d e", rules) == "[a-b][C]");
  rules.splitter = Splitter::line;
  rules.min_n = 1, rules.max_n = 2, rules.max_tokens = 3;
  CHECK(terms_of("a\xC3\x84 x", rules) == "[a][\xC3\x84][ ][a\xC3\x84][\xC3\x84 ]");
}

TEST(scratch_memory_of_a_huge_text_is_given_back) {
  TermScratch scratch;
  const std::string huge(std::size_t{1} << 20, 'a');
  CHECK(terms_of(huge + " bc", {}, scratch).size() == huge.size() + 6);
  scratch.trim();
  CHECK(scratch.starts.capacity() == 0);
  CHECK(terms_of("red wool", {}, scratch) == "[red][wool]");
  scratch.trim();
  CHECK(scratch.starts.capacity() > 0);
}

TEST(any_bytes_have_terms_inside_the_scratch) {
  Random random;
  TermScratch scratch;
  const std::string_view alphabet = "aAbB \t\xCE\xA3\xC4\xB0\xE2\x80\x99\xED\xA0\x80\xF0\x9F\x98\x80";
  for (int round = 0; round < 5000; ++round) {
    TermRules rules;
    rules.splitter = static_cast<Splitter>(random.below(4));
    rules.min_n = random.between(1, 3);
    rules.max_n = rules.min_n + random.below(3);
    rules.lowercase = random.chance(0.5);
    rules.min_letters = random.between(1, 2);
    if (random.chance(0.3)) rules.max_tokens = random.below(5);
    const std::string text = random_bytes(random, 60, alphabet);
    TermScratch fresh;
    CHECK(terms_of(text, rules, scratch) == terms_of(text, rules, fresh));
  }
}
