// split_words.hpp, stem.hpp and word_set.hpp: accents, signs, pairs of characters, stop words, stems; any bytes go in.
#include "beamwood/text/split_words.hpp"

#include <algorithm>

#include "beamwood/text/terms.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

std::string words_of(std::string_view text, const TermRules& rules) {
  const auto heap = on_heap(text);
  TermScratch scratch;
  std::string out;
  for_each_term({heap.data(), heap.size()}, rules, scratch,
                [&](const char* bytes, std::size_t length) { (out += '[').append(bytes, length) += ']'; });
  return out;
}

std::size_t language(std::string_view name) {
  const auto all = stem_languages();
  return static_cast<std::size_t>(std::ranges::find(all, name) - all.begin());
}

} // namespace

TEST(accents_are_folded) {
  TermRules rules;
  rules.fold = true;
  CHECK(words_of("Caf\xC3\xA9 M\xC3\xBCLLER Stra\xC3\x9F"
                 "e",
                 rules) == "[cafe][muller][strasse]");
  CHECK(words_of("e\xCC\x81te\xCC\x81", rules) == "[ete]"); // combining accents
  rules.lowercase = false;
  CHECK(words_of("\xC3\x86sir \xE2\x84\xA2x", rules) == "[AEsir][TMx]");
}

TEST(signs_belong_to_words) {
  TermRules rules;
  rules.signs = true;
  CHECK(words_of("C++ c# .NET (.net)", rules) == "[c++][c#][.net][.net]");
  CHECK(words_of("ab+cd ab++cd ab#cd ab+++ ab## x.net ..net .", rules) == "[ab][cd][ab][cd][ab][cd][ab][ab][net][net]");
  CHECK(words_of("g++\xC3\xA4z", rules) == "[\xC3\xA4z]");
  CHECK(words_of("ab\xC4\x85.net", rules) == "[ab\xC4\x85][net]"); // 0x85 is a part of a letter, not a space
}

TEST(scripts_without_spaces_become_pairs) {
  TermRules rules;
  rules.segment = true;
  const std::string a = "\xE6\x97\xA5", b = "\xE6\x9C\xAC", c = "\xE6\x96\x87"; // three Chinese characters
  CHECK(words_of(a + b + c, rules) == "[" + a + b + "][" + b + c + "]");
  CHECK(words_of("ab" + a + " " + b + "c d", rules) == "[ab][" + a + "][" + b + "]");
  const std::string mark = "\xE3\x82\x99"; // a voicing mark stays with its kana
  CHECK(words_of(a + mark + b + c, rules) == "[" + a + mark + b + "][" + b + c + "]");
  CHECK(words_of(mark + "ab", rules) == "[ab]");
  rules.stop = std::make_shared<const WordSet>(std::vector<std::string>{a + b, "ab"});
  CHECK(words_of(a + b + c + " ab", rules) == "[" + b + c + "]");
}

TEST(stop_words_go_before_stems) {
  TermRules rules;
  rules.stop = std::make_shared<const WordSet>(std::vector<std::string>{"running", "running", "the"});
  rules.stem = language("english");
  CHECK(words_of("the running runs", rules) == "[run]");
  CHECK(words_of(std::string(300, 'a') + "ing", rules) == "[" + std::string(300, 'a') + "ing]");
  rules.splitter = Splitter::given;
  rules.min_letters = 1;
  CHECK(words_of("The\x1f\x1fRed Sockings\x1f"
                 "a",
                 rules) == "[red sock][a]");
}

TEST(every_language_has_a_stemmer) {
  CHECK(stem_languages().size() == 29);
  CHECK(std::ranges::is_sorted(stem_languages()));
  Stemmers stemmers;
  for (std::size_t i = 0; i < stem_languages().size(); ++i) {
    char word[32] = "internationals";
    const std::size_t length = stemmers.stem(i, word, 14);
    CHECK(length > 0 && length <= 14);
  }
  char word[32] = "running";
  CHECK(stemmers.stem(stem_languages().size(), word, 7) == 7);
}

TEST(no_bytes_lead_outside) {
  Random random;
  for (int round = 0; round < 4000; ++round) {
    TermRules rules;
    rules.splitter = random.chance(0.8) ? Splitter::word : Splitter::given;
    rules.fold = random.chance(0.5), rules.signs = random.chance(0.5), rules.segment = random.chance(0.5);
    rules.lowercase = random.chance(0.7), rules.min_letters = random.between(1, 2);
    rules.max_n = random.between(1, 2);
    if (random.chance(0.5)) rules.stem = random.below(stem_languages().size());
    std::string text = "C++ .net \xEF\xB7\xBA\xE3\x8C\x80 \xE6\x97\xA5\xE6\x9C\xAC\xE3\x82\x99 \xE0\xB9\x84\xE0\xB8\x97"
                       "\xE0\xB8\xA2 \xCE\xA3\xC4\xB0 \xED\xA0\x80 runnings\x1f#";
    words_of(damaged(random, text), rules);
  }
}
