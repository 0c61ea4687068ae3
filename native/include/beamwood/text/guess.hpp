// guess.hpp — a word that a vocabulary does not have in, the known words one typing error away out, with a share each.
//
// The law: the words are all known ones that come of the word by leaving out, adding or replacing one letter, or by
// swapping two neighbours. Their shares add up to 1 (but for rounding) and depend on their idf only: the lower it is,
// the more texts have the word, and the larger its share. A word is left alone that has fewer than `fewest` or more
// than `most` letters, anything in ASCII but letters (a version number is no typing error), or a letter of a script
// without spaces.
//
// There is no index. Every word that may have been meant is made (some 50 for each letter) and looked up in the
// vocabulary's own hash, in groups whose cache misses overlap: tens of microseconds for an unknown word, nothing for a
// known one, and a model that is larger by the list of its letters.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "beamwood/text/unicode.hpp"
#include "beamwood/text/vocabulary.hpp"

namespace beamwood {

struct Guess {
  std::uint32_t id;
  double share;
};

class Guesser {
public:
  static constexpr std::size_t fewest = 3, most = 32;
  static constexpr std::size_t most_words = 16; // of one text that are looked at: a query has no more

  // letters: those that may have been meant.
  Guesser(const Vocabulary& vocabulary, std::span<const std::uint32_t> letters) noexcept
      : vocabulary_(vocabulary), letters_(letters) {}

  // Appends the guesses for one word, ids rising. False: an array of the vocabulary is damaged.
  [[nodiscard]] bool append(std::string_view word, std::vector<Guess>& guesses) {
    if (!take_apart(word)) return true;
    const std::size_t before = guesses.size();
    guesses_ = &guesses;
    for (std::size_t i = 0; i <= count_; ++i) {
      for (const std::uint32_t letter : letters_) {
        if (!is_letter(letter)) continue;
        char bytes[4];
        const auto size = static_cast<std::size_t>(unicode::encode(letter, bytes) - bytes);
        try_out(starts_[i], {bytes, size}, starts_[i]);
        if (i < count_) try_out(starts_[i], {bytes, size}, starts_[i + 1]);
      }
      if (i < count_) try_out(starts_[i], {}, starts_[i + 1]);
      if (i + 1 < count_) {
        char swapped[8];
        const std::size_t first = starts_[i + 1] - starts_[i], second = starts_[i + 2] - starts_[i + 1];
        std::memcpy(swapped, word.data() + starts_[i + 1], second);
        std::memcpy(swapped + second, word.data() + starts_[i], first);
        try_out(starts_[i], {swapped, first + second}, starts_[i + 2]);
      }
    }
    flush();
    share_out(before);
    return std::exchange(whole_, true);
  }

private:
  struct LookUp {
    std::size_t length;
    Vocabulary::Probe probe;
    std::array<char, 4 * (most + 1)> bytes;
  };

  static bool is_letter(char32_t c) noexcept {
    if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    return c < 0x110000 && !unicode::is(c, unicode::unspaced) && !unicode::is(c, unicode::mark);
  }

  // Finds where the word's letters start; false when it is not to be guessed at.
  bool take_apart(std::string_view word) noexcept {
    word_ = word;
    count_ = 0;
    if (word.size() > 4 * most) return false;
    for (const char *p = word.data(), *end = p + word.size(); p != end; ++count_) {
      if (count_ == most) return false;
      starts_[count_] = static_cast<std::size_t>(p - word.data());
      if (!is_letter(unicode::decode(p, end))) return false;
    }
    starts_[count_] = word.size();
    return count_ >= fewest;
  }

  // Looks up the word with `middle` in the place of its bytes from `from` to `to`.
  void try_out(std::size_t from, std::string_view middle, std::size_t to) {
    LookUp& next = group_[waiting_];
    next.length = from + middle.size() + word_.size() - to;
    if (next.length == 0) return;
    std::memcpy(next.bytes.data(), word_.data(), from);
    if (!middle.empty()) std::memcpy(next.bytes.data() + from, middle.data(), middle.size());
    std::memcpy(next.bytes.data() + from + middle.size(), word_.data() + to, word_.size() - to);
    next.probe = {xxh3_64(next.bytes.data(), next.length)};
    vocabulary_.prefetch_slot(next.probe.hash);
    if (++waiting_ == group_.size()) flush();
  }

  void flush() {
    for (LookUp& term : std::span(group_).first(std::exchange(waiting_, 0))) {
      vocabulary_.advance(term.probe);
      const std::uint64_t id = vocabulary_.settle(term.probe, {term.bytes.data(), term.length});
      if (id < Vocabulary::damaged) guesses_->push_back({static_cast<std::uint32_t>(id), 0});
      whole_ = whole_ && id != Vocabulary::damaged;
    }
  }

  // 1 / (1 + d)^2 of the distance d to the lowest idf stays near exp(-d), the ratio of the numbers of texts, and is made
  // of operations that give the same bits everywhere.
  void share_out(std::size_t before) {
    auto& all = *guesses_;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(before);
    std::sort(first, all.end(), [](const Guess& a, const Guess& b) { return a.id < b.id; });
    all.erase(std::unique(first, all.end(), [](const Guess& a, const Guess& b) { return a.id == b.id; }), all.end());
    const std::span<Guess> mine = std::span(all).subspan(before);
    if (mine.empty()) return;
    double lowest = vocabulary_.idf(mine.front().id), sum = 0;
    for (const Guess& guess : mine) lowest = std::min(lowest, vocabulary_.idf(guess.id));
    for (Guess& guess : mine) {
      const double near = 1 + (vocabulary_.idf(guess.id) - lowest);
      guess.share = 1 / (near * near);
      sum += guess.share;
    }
    for (Guess& guess : mine) guess.share /= sum;
  }

  const Vocabulary& vocabulary_;
  std::span<const std::uint32_t> letters_;
  std::vector<Guess>* guesses_ = nullptr;
  std::string_view word_;
  std::size_t count_ = 0;
  std::array<std::size_t, most + 1> starts_;
  std::array<LookUp, 16> group_;
  std::size_t waiting_ = 0;
  bool whole_ = true;
};

} // namespace beamwood
