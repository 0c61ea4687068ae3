// vectorize.hpp and vocabulary.hpp: rows are those of a plain tf-idf; a damaged vocabulary is noticed, never followed.
#include "beamwood/text/vectorize.hpp"

#include <map>

#include "beamwood/text/count_terms.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

// A vocabulary that owns its arrays.
struct Owned {
  SortedTerms sorted;
  std::vector<std::uint64_t> slots;
  std::vector<double> idf;

  Owned(const std::vector<std::string_view>& texts, const TermRules& rules, bool with_idf) {
    TermCounter counter({rules});
    counter.add(texts, Workers{2});
    sorted = counter.finish(0, 1, 1e9);
    slots.resize(TermSlots::count(sorted.texts.size()));
    fill_slots<TermSlots>({sorted.terms, sorted.offsets}, slots);
    if (with_idf)
      for (std::size_t i = 0; i < sorted.texts.size(); ++i) idf.push_back(1.0 + 0.25 * static_cast<double>(i % 7));
  }
  Vocabulary view() const { return Vocabulary::checked(sorted.terms, sorted.offsets, slots, idf); }
  std::map<std::string, std::uint32_t> numbers() const {
    std::map<std::string, std::uint32_t> out;
    for (std::uint32_t i = 0; i < sorted.texts.size(); ++i)
      out[{sorted.terms.begin() + static_cast<std::ptrdiff_t>(sorted.offsets[i]),
           sorted.terms.begin() + static_cast<std::ptrdiff_t>(sorted.offsets[i + 1])}] = i;
    return out;
  }
};

using Row = std::map<std::uint32_t, double>;

void divide(Row& row, Norm norm) {
  double sum = 0;
  for (const auto& [id, w] : row) sum += norm == Norm::l2 ? w * w : std::fabs(w);
  if (norm == Norm::l2) sum = std::sqrt(sum);
  if (norm == Norm::none || sum == 0) return;
  for (auto& [id, w] : row) w /= sum;
}

Row plain_row(std::string_view text, const Owned& owned, const TermRules& rules, const WeighRules& weigh) {
  Row row;
  TermScratch scratch;
  const auto numbers = owned.numbers();
  for_each_term(text, rules, scratch, [&](const char* bytes, std::size_t length) {
    if (const auto found = numbers.find({bytes, length}); found != numbers.end()) ++row[found->second];
  });
  for (auto& [id, w] : row) {
    if (weigh.binary) w = 1;
    if (weigh.sublinear_tf) w = 1 + natural_log(w);
    if (!owned.idf.empty()) w *= owned.idf[id];
  }
  divide(row, weigh.norm);
  return row;
}

const std::vector<std::string_view> kTexts = {"red wool socks", "blue wool hat wool wool", "a hat for red cats",
                                              "\xCE\xA3\xCE\xAF\xCF\x83\xCF\x85\xCF\x86\xCE\xBF\xCF\x82"};

bool throws(auto&& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

} // namespace

TEST(rows_are_those_of_a_plain_tf_idf) {
  TermRules letters;
  letters.splitter = Splitter::char_wb;
  letters.min_n = 1, letters.max_n = 3;
  for (const TermRules& rules : {TermRules{}, letters})
    for (const bool binary : {false, true})
      for (const bool sublinear : {false, true})
        for (const Norm norm : {Norm::none, Norm::l1, Norm::l2}) {
          const WeighRules weigh{binary, sublinear, norm};
          const Owned owned(kTexts, rules, !binary);
          const Vectorizer vectorizer({{rules, weigh, owned.view()}});
          TextScratch scratch;
          std::vector<std::uint32_t> ids;
          std::vector<float> values;
          for (const std::string_view text : {"wool wool hat and unknown words", "", "red cats"}) {
            CHECK(vectorizer.transform_one(text, scratch, ids, values));
            const Row expected = plain_row(text, owned, rules, weigh);
            CHECK(ids.size() == expected.size());
            std::size_t at = 0;
            for (const auto& [id, w] : expected) {
              CHECK(ids[at] == id);
              CHECK(values[at++] == static_cast<float>(w));
            }
          }
        }
}

TEST(blocks_stand_side_by_side_with_a_norm_of_the_whole_row) {
  TermRules letters;
  letters.splitter = Splitter::char_wb;
  const TermRules plain;
  const Owned words(kTexts, plain, true), single(kTexts, letters, false);
  const Vectorizer vectorizer({{plain, {}, words.view()}, {letters, {}, single.view()}}, Norm::l2);
  CHECK(vectorizer.columns() == words.sorted.texts.size() + single.sorted.texts.size());
  TextScratch scratch;
  std::vector<std::uint32_t> ids;
  std::vector<float> values;
  CHECK(vectorizer.transform_one("red wool", scratch, ids, values));
  Row both = plain_row("red wool", words, {}, {});
  for (const auto& [id, w] : plain_row("red wool", single, letters, {}))
    both[id + static_cast<std::uint32_t>(words.sorted.texts.size())] = w;
  divide(both, Norm::l2);
  CHECK(ids.size() == both.size());
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(std::fabs(values[i] - both[ids[i]]) < 1e-6);
  CHECK(vectorizer.append_one("hat", scratch, ids, values));
  CHECK(ids.size() > both.size());
}

TEST(arrays_that_do_not_fit_together_are_refused) {
  const Owned owned(kTexts, {}, true);
  const auto& s = owned.sorted;
  CHECK(throws([&] { Vocabulary::checked(s.terms, {}, owned.slots, owned.idf); }));
  CHECK(throws([&] { Vocabulary::checked(s.terms, s.offsets, std::span(owned.slots).first(3), owned.idf); }));
  CHECK(throws([&] { Vocabulary::checked(s.terms, s.offsets, std::span(owned.slots).first(1), owned.idf); }));
  CHECK(throws([&] { Vocabulary::checked(s.terms, s.offsets, owned.slots, std::span(owned.idf).first(1)); }));
}

TEST(a_damaged_vocabulary_is_noticed_or_harmless) {
  Random random;
  const auto damage = [&](auto& array) {
    using T = std::remove_cvref_t<decltype(array[0])>;
    if (!array.empty() && random.chance(0.5)) array[random.below(array.size())] = static_cast<T>(random.next());
  };
  for (int round = 0; round < 2000; ++round) {
    TermRules rules;
    rules.splitter = random.chance(0.5) ? Splitter::word : Splitter::char_wb;
    rules.max_n = random.between(1, 3);
    Owned owned(kTexts, rules, true);
    const bool whole = random.chance(0.3);
    if (!whole) damage(owned.slots), damage(owned.sorted.offsets), damage(owned.sorted.terms), damage(owned.idf);
    if (!whole && random.chance(0.2)) owned.idf[0] = std::numeric_limits<double>::infinity();
    if (!whole && random.chance(0.2))
      for (std::uint64_t& slot : owned.slots) slot |= 0xFFFFFFFFu; // no slot is empty, no id is a term
    const std::vector<std::uint32_t> letters = {'a', 'e', 'o', 's', 0x3C3};
    const Vectorizer vectorizer({{rules, {}, owned.view(), letters}});
    TextScratch scratch;
    std::vector<std::uint32_t> ids;
    std::vector<float> values;
    for (const std::string_view text : kTexts) {
      const auto heap = on_heap(damaged(random, std::string(text)));
      const bool sound = vectorizer.transform_one({heap.data(), heap.size()}, scratch, ids, values);
      CLAIM(sound || !whole, "a whole vocabulary is not called damaged");
      CHECK(ids.size() == values.size());
      for (std::size_t i = 0; i < ids.size(); ++i)
        CHECK(ids[i] < vectorizer.columns() && (i == 0 || ids[i - 1] < ids[i]));
    }
  }
}
