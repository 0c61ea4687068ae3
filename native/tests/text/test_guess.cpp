// guess.hpp: every known word one typing error away, with shares that add up to one; damaged arrays are noticed.
#include "beamwood/text/guess.hpp"

#include <cmath>
#include <string>

#include "beamwood/text/count_terms.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

struct Known {
  SortedTerms sorted;
  std::vector<std::uint64_t> slots;
  std::vector<double> idf;

  explicit Known(std::string_view text) {
    TermCounter counter({TermRules{}});
    counter.add({&text, 1}, Workers{1});
    sorted = counter.finish(0, 1, 1e9);
    slots.resize(TermSlots::count(sorted.texts.size()));
    fill_slots<TermSlots>({sorted.terms, sorted.offsets}, slots);
    for (std::size_t i = 0; i < sorted.texts.size(); ++i) idf.push_back(1 + static_cast<double>(i % 3));
  }
  Vocabulary view() const { return Vocabulary::checked(sorted.terms, sorted.offsets, slots, idf); }
};

const std::vector<std::uint32_t> kLetters = {'a', 'b', 'c', 'd', 'e', 'g', 'i', 'm', 'w', 0xE4, 0x110000, 0xFFFFFFFF};

std::vector<Guess> guesses(const Known& known, std::string_view word) {
  const Vocabulary vocabulary = known.view();
  std::vector<Guess> found;
  const auto heap = on_heap(word);
  CHECK(Guesser(vocabulary, kLetters).append({heap.data(), heap.size()}, found));
  return found;
}

} // namespace

TEST(each_kind_of_error_is_found) {
  const Known known("image");
  for (const std::string_view word : {"imgae", "imae", "imagge", "imege", "mage", "iimage", "imag", "imagex", "zmage"})
    CLAIM(guesses(known, word).size() == 1 && guesses(known, word)[0].share == 1.0, std::string(word));
  for (const std::string_view word : {"", "im", "imgea", "im4ge", "image image", "imag\xE6\x97\xA5"})
    CLAIM(guesses(known, word).empty(), std::string(word));
  CHECK(guesses(known, std::string(200, 'a')).empty());
}

TEST(shares_add_up_and_follow_the_number_of_texts) {
  const Known known("bad bed bid"); // idf 1, 2, 3
  const auto found = guesses(known, "bxd");
  CHECK(found.size() == 3);
  CHECK(found[0].share > found[1].share && found[1].share > found[2].share);
  CHECK(found[0].share == 4 * found[1].share);
  CHECK(std::fabs(found[0].share + found[1].share + found[2].share - 1) < 1e-12);
}

TEST(damaged_arrays_end_in_false_or_guesses_of_known_columns) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    Known known("image images bad bed bid webcam");
    const auto damage = [&](auto& array) {
      using T = std::remove_cvref_t<decltype(array[0])>;
      if (random.chance(0.5)) array[random.below(array.size())] = static_cast<T>(random.next());
    };
    damage(known.slots), damage(known.sorted.offsets), damage(known.sorted.terms), damage(known.idf);
    const Vocabulary vocabulary = known.view();
    std::vector<Guess> found;
    const auto heap = on_heap(damaged(random, "imgae\xC3\xA4"));
    if (!Guesser(vocabulary, kLetters).append({heap.data(), heap.size()}, found)) continue;
    for (const Guess& guess : found) CHECK(guess.id < vocabulary.size());
  }
}
