// guess.hpp — a word that a vocabulary does not have in, the known words one typing error away out, with a share each.
//
// The law: the words are all known ones that come of the word by leaving out, adding or replacing one letter, or by
// swapping two neighbours. Their shares add up to 1 (but for rounding) and depend on their idf only: the lower it is,
// the more texts have the word, and the larger its share. A word is left alone that has fewer than `fewest` or more
// than `most` letters, anything in ASCII but letters (a version number is no typing error), or a letter of a script
// without spaces.
//
// There is no index. Words that may have been meant are made and looked up in the vocabulary's own hash, in groups whose
// cache misses overlap; a filter (near_words.hpp) says beforehand which of them cannot be there. Without it all are
// looked up, some 100 for each letter: the answers are the same. A known word costs nothing, and a model is larger by the
// list of its letters.
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

#include "beamwood/text/near_words.hpp"
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

  // letters: those that may have been meant. near: of the same vocabulary; nullptr: everything is looked up.
  Guesser(const Vocabulary& vocabulary, std::span<const std::uint32_t> letters, NearWords* near = nullptr) noexcept
      : vocabulary_(vocabulary), letters_(letters), near_(near) {}

  // Appends the guesses for one word, ids rising. False: an array of the vocabulary is damaged.
  [[nodiscard]] bool append(std::string_view word, std::vector<Guess>& guesses) {
    if (!take_apart(word)) return true;
    const std::size_t before = guesses.size();
    guesses_ = &guesses;
    filtered_ = near_ && valid_ && near_->grow();
    sums_.set(std::span(parts_).first(count_));
    for (std::size_t i = 0; i <= count_; ++i) {
      if (may_be(sums_.whole(), i)) try_letters(i, i);
      if (i == count_) break;
      if (may_be(sums_.without(i), i)) try_letters(i, i + 1);
      if (may_be(sums_.without(i))) try_out(starts_[i], {}, starts_[i + 1]);
      if (i + 1 < count_ && may_be(sums_.swapped(i))) try_swapped(i);
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

  // Finds where the word's letters start; false when it is not to be guessed at.
  bool take_apart(std::string_view word) noexcept {
    word_ = word;
    count_ = 0;
    valid_ = true;
    if (word.size() > 4 * most) return false;
    for (const char *p = word.data(), *end = p + word.size(); p != end; ++count_) {
      if (count_ == most) return false;
      starts_[count_] = static_cast<std::size_t>(p - word.data());
      parts_[count_] = unicode::decode(p, end);
      if (!may_be_mistyped(parts_[count_])) return false;
      valid_ = valid_ && parts_[count_] != unicode::replacement; // which stands for bytes that may become letters
    }
    starts_[count_] = word.size();
    return count_ >= fewest;
  }

  bool may_be(std::uint64_t sum, std::size_t place = NearWords::whole) const noexcept {
    return !filtered_ || near_->may_have(sum, place);
  }

  // Looks up the word with each letter at i: added where next is i, in the place of letter i where next is i + 1.
  void try_letters(std::size_t i, std::size_t next) {
    for (const std::uint32_t letter : letters_) {
      if (!may_be_mistyped(letter) || !may_be(sums_.with(i, letter, next))) continue;
      char bytes[4];
      try_out(starts_[i], {bytes, static_cast<std::size_t>(unicode::encode(letter, bytes) - bytes)}, starts_[next]);
    }
  }

  void try_swapped(std::size_t i) {
    char swapped[8];
    const std::size_t first = starts_[i + 1] - starts_[i], second = starts_[i + 2] - starts_[i + 1];
    std::memcpy(swapped, word_.data() + starts_[i + 1], second);
    std::memcpy(swapped + second, word_.data() + starts_[i], first);
    try_out(starts_[i], {swapped, first + second}, starts_[i + 2]);
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
  NearWords* near_;
  std::vector<Guess>* guesses_ = nullptr;
  std::string_view word_;
  std::size_t count_ = 0;
  std::array<std::size_t, most + 1> starts_;
  std::array<char32_t, most> parts_; // the letters
  LetterSums sums_;                  // of them
  bool valid_ = true, filtered_ = false;
  std::array<LookUp, 16> group_;
  std::size_t waiting_ = 0;
  bool whole_ = true;
};

} // namespace beamwood
