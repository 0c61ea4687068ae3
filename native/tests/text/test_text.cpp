// Random bytes, texts and damaged arrays through the text and parser headers.
#include <random>
#include <string>
#include <vector>

#include "beamwood/text/count_terms.hpp"
#include "beamwood/text/vectorize.hpp"
#include "beamwood/wire/parse.hpp"
#include "beamwood/wire/print.hpp"
#include "check.hpp"

namespace {

using namespace beamwood;
using Random = std::mt19937_64;

constexpr int kRounds = 2000;

void claim(bool holds, const char* what) { check::expect(holds, what, __FILE__, __LINE__); }

std::string random_bytes(Random& random, std::size_t longest, std::string_view alphabet) {
  std::string bytes(random() % (longest + 1), '\0');
  for (char& c : bytes) c = random() % 4 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
  return bytes;
}

// Exact heap copies let the sanitizer see a read one byte behind the end.
std::vector<char> on_heap(std::string_view text) { return {text.begin(), text.end()}; }

TermRules random_rules(Random& random) {
  TermRules rules;
  rules.splitter = static_cast<Splitter>(random() % 4);
  rules.min_n = 1 + static_cast<std::uint32_t>(random() % 3);
  rules.max_n = rules.min_n + static_cast<std::uint32_t>(random() % 3);
  rules.lowercase = random() % 2;
  rules.min_letters = 1 + static_cast<std::uint32_t>(random() % 2);
  return rules;
}

template <class T> void damage(Random& random, std::vector<T>& array) {
  if (array.empty() || random() % 2) return;
  array[random() % array.size()] = static_cast<T>(random());
}

void text_round(Random& random) {
  const std::string_view alphabet = "aAbB \t\xCE\xA3\xC4\xB0\xE2\x80\x99\xED\xA0\x80\xF0\x9F\x98\x80";
  std::vector<std::vector<char>> texts;
  for (int i = 0; i < 8; ++i) texts.push_back(on_heap(random_bytes(random, 60, alphabet)));
  std::vector<std::string_view> views;
  for (const auto& text : texts) views.emplace_back(text.data(), text.size());
  const TermRules rules = random_rules(random);
  TermCounter counter({rules});
  counter.add(views, Workers{1 + static_cast<unsigned>(random() % 3)});
  SortedTerms sorted = counter.finish(0, 1, 100);
  std::vector<std::uint64_t> slots(slots_for(sorted.texts.size()));
  fill_slots(sorted.terms, sorted.offsets, slots);
  std::vector<double> idf(sorted.texts.size(), 1.5);
  const bool whole = random() % 2;
  if (!whole) damage(random, slots), damage(random, sorted.offsets), damage(random, sorted.terms), damage(random, idf);
  const Vectorizer vectorizer({{rules, {}, Vocabulary::checked(sorted.terms, sorted.offsets, slots, idf)}});
  TextScratch scratch;
  std::vector<std::uint32_t> ids;
  std::vector<float> values;
  for (const auto view : views) {
    const bool sound = vectorizer.transform_one(view, scratch, ids, values);
    claim(sound || !whole, "a whole vocabulary is not called damaged");
    claim(ids.size() == values.size(), "one value an id");
    for (std::size_t i = 0; i < ids.size(); ++i) {
      claim(ids[i] < vectorizer.columns(), "ids are columns");
      claim(i == 0 || ids[i - 1] < ids[i], "ids rise");
    }
  }
}

void parser_round(Random& random) {
  const std::string text = random_bytes(random, 300, "0123456789,::.. \n\n-eE#\r");
  const RowFormat format{random() % 2 == 0, random() % 2 == 0, ~0ull, 1000, 1000};
  RowParser whole(format, true, 1), pieces(format, true, 1);
  claim(whole.feed(text) && whole.finish(), "bad lines are skipped");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 20, text.size() - at);
    const auto piece = on_heap(std::string_view(text).substr(at, size));
    claim(pieces.feed({piece.data(), piece.size()}), "bad lines are skipped");
    at += size;
  }
  claim(pieces.finish(), "bad lines are skipped");
  claim(whole.rows() == pieces.rows() && whole.bad_lines() == pieces.bad_lines(), "pieces do not matter");
  for (std::size_t i = 0; i < whole.x_ids.size(); ++i)
    claim(whole.x_ids.data()[i] == pieces.x_ids.data()[i] && whole.x_values.data()[i] == pieces.x_values.data()[i],
          "pieces do not matter");
}

void value_round(Random& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  float value;
  std::memcpy(&value, &bits, 4);
  if (!std::isfinite(value)) return;
  std::string text;
  print_value(value, text);
  text += '\n';
  const char* p = text.data();
  double read = 0;
  claim(detail::parse_number(p, text.data() + text.size() - 1, read) && *p == '\n', "a printed value is a number");
  claim(static_cast<float>(read) == value, "a printed value reads back");
}

} // namespace

TEST(any_bytes_are_text_and_damage_is_noticed) {
  Random random(check::seed);
  for (int i = 0; i < kRounds; ++i) text_round(random);
}

TEST(any_bytes_can_be_parsed_in_any_pieces) {
  Random random(check::seed);
  for (int i = 0; i < kRounds; ++i) parser_round(random);
}

TEST(printed_values_read_back) {
  Random random(check::seed);
  for (int i = 0; i < 20 * kRounds; ++i) value_round(random);
}
