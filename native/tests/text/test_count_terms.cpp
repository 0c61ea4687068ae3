// count_terms.hpp: counts are those of a plain map, for any number of threads and any cut of the texts into calls.
#include "beamwood/text/count_terms.hpp"

#include <map>
#include <set>

#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

struct Counts {
  double texts = 0, places = 0;
  bool operator==(const Counts&) const = default;
};
using Terms = std::map<std::string, Counts>;

std::ostream& operator<<(std::ostream& out, const Terms& terms) { return out << terms.size() << " terms"; }

Terms plain_counts(const std::vector<std::string>& texts, const TermRules& rules) {
  Terms counts;
  TermScratch scratch;
  for (const std::string& text : texts) {
    std::set<std::string> here;
    for_each_term(text, rules, scratch, [&](const char* bytes, std::size_t length) {
      ++counts[{bytes, length}].places;
      here.emplace(bytes, length);
    });
    for (const std::string& term : here) ++counts[term].texts;
  }
  return counts;
}

Terms as_map(const SortedTerms& sorted) {
  Terms counts;
  std::string before;
  for (std::size_t i = 0; i < sorted.texts.size(); ++i) {
    const std::string term(sorted.terms.begin() + static_cast<std::ptrdiff_t>(sorted.offsets[i]),
                           sorted.terms.begin() + static_cast<std::ptrdiff_t>(sorted.offsets[i + 1]));
    CHECK(i == 0 || before < term); // by bytes
    counts[term] = {sorted.texts[i], sorted.places[i]};
    before = term;
  }
  CHECK(counts.size() == sorted.texts.size());
  return counts;
}

std::vector<std::string> random_texts(Random& random, std::size_t count) {
  std::vector<std::string> texts(count);
  for (std::string& text : texts)
    for (std::uint32_t words = random.below(30); words > 0; --words)
      text.append("w").append(std::to_string(random.below(3000))).append(random.chance(0.1) ? "\xC3\x84 " : " ");
  texts.front() += std::string(100000, 'x'); // longer than a page of the table
  return texts;
}

SortedTerms counted(const std::vector<std::string>& texts, const std::vector<TermRules>& blocks, unsigned threads,
                    std::size_t at_once, std::size_t block) {
  TermCounter counter(blocks);
  for (std::size_t from = 0; from < texts.size(); from += at_once) {
    const std::vector<std::string_view> views(texts.begin() + static_cast<std::ptrdiff_t>(from),
                                              texts.begin() +
                                                  static_cast<std::ptrdiff_t>(std::min(texts.size(), from + at_once)));
    counter.add(views, Workers{threads});
  }
  CHECK(counter.texts() == texts.size());
  return counter.finish(block, 1, 1e9);
}

} // namespace

TEST(counts_are_those_of_a_plain_map_for_any_threads_and_calls) {
  Random random;
  const auto texts = random_texts(random, 1500);
  TermRules pairs, letters;
  pairs.max_n = 2;
  letters.splitter = Splitter::char_wb;
  letters.min_n = letters.max_n = 3;
  const std::vector<TermRules> blocks = {pairs, letters};
  for (std::size_t block = 0; block < 2; ++block) {
    const Terms expected = plain_counts(texts, blocks[block]);
    for (const unsigned threads : {1u, 2u, 8u})
      for (const std::size_t at_once : {100u, 1500u})
        CHECK(as_map(counted(texts, blocks, threads, at_once, block)) == expected);
  }
}

TEST(terms_that_are_too_rare_or_too_frequent_are_left_out) {
  const std::vector<std::string_view> texts = {"aa bb cc", "aa bb", "aa"};
  TermCounter counter({TermRules{}});
  counter.add(texts, Workers{1});
  const Terms left = as_map(counter.finish(0, 2, 2));
  CHECK(left == Terms{{"bb", {2, 2}}});
}

TEST(a_counter_without_texts_has_no_terms) {
  TermCounter counter({TermRules{}});
  const SortedTerms none = counter.finish(0, 1, 10);
  CHECK(none.offsets == std::vector<std::uint64_t>{0});
  CHECK(none.terms.empty());
}
