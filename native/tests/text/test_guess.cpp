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

TEST(the_filter_changes_no_answer_before_while_and_after_it_is_made) {
  Random random;
  const auto word = [&](std::string_view of, std::uint32_t most) {
    std::string made;
    for (std::size_t n = random.between(1, most); n > 0; --n) {
      const std::size_t letter = random.below(of.size() + 2);
      if (letter < of.size()) made += of[letter];
      else made += letter == of.size() ? "\xC3\xA4" : "\xEF\xBF\xBD"; // ä, and the letter that stands for wrong bytes
    }
    return made;
  };
  std::size_t found = 0;
  for (int round = 0; round < 60; ++round) {
    std::string text;
    for (std::size_t n = random.between(1, 400); n > 0; --n) text += word("abc7_", random.chance(0.1) ? 40 : 6) + ' ';
    const Known known(text);
    const Vocabulary vocabulary = known.view();
    NearWords near(vocabulary);
    for (int asked = 0; asked < 60; ++asked) {
      std::string about = word("abcde", random.chance(0.1) ? 36 : 7);
      if (random.chance(0.1)) about = damaged(random, about);
      const auto heap = on_heap(about);
      const std::string_view view(heap.data(), heap.size());
      std::vector<Guess> all, filtered;
      CHECK(Guesser(vocabulary, kLetters).append(view, all));
      CHECK(Guesser(vocabulary, kLetters, &near).append(view, filtered));
      CLAIM(all.size() == filtered.size(), about);
      for (std::size_t i = 0; i < all.size(); ++i)
        CHECK(all[i].id == filtered[i].id && all[i].share == filtered[i].share);
      found += all.size();
    }
    CHECK(near.grow());
  }
  CHECK(found > 300);
}

TEST(the_filter_says_no_to_nearly_all_words_that_are_not_there) {
  std::string text;
  Random random;
  const auto word = [&] {
    std::string made;
    for (std::size_t n = random.between(6, 12); n > 0; --n) made += static_cast<char>('a' + random.below(26));
    return made;
  };
  for (int i = 0; i < 5000; ++i) text += word() + ' ';
  const Known known(text);
  const Vocabulary vocabulary = known.view();
  NearWords near(vocabulary);
  while (!near.grow()) continue;
  std::size_t yes = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string about = word();
    const std::u32string letters(about.begin(), about.end());
    LetterSums sums;
    sums.set({letters.data(), letters.size()});
    yes += near.may_have(sums.whole(), i % 6u);
  }
  CHECK(yes < 500);
}

TEST(many_threads_make_one_filter) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "word" + std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i) + " b" +
            std::string(static_cast<std::size_t>(i % 29), 'c') + ' ';
  const Known known(text);
  const Vocabulary vocabulary = known.view();
  NearWords near(vocabulary);
  parallel_for(Workers{4}, 400, [&](std::size_t, unsigned) {
    std::vector<Guess> found;
    CHECK(Guesser(vocabulary, kLetters, &near).append("bccd", found));
    CHECK(found.size() == 2); // bcc, bccc
  });
  CHECK(near.grow());
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
    NearWords near(vocabulary);
    if (random.chance(0.5)) near.grow();
    if (!Guesser(vocabulary, kLetters, &near).append({heap.data(), heap.size()}, found)) continue;
    for (const Guess& guess : found) CHECK(guess.id < vocabulary.size());
  }
}
