// near_words.hpp — the terms of a vocabulary in, which words may lie one letter away from a word out.
//
// The law: "no" is certain, "yes" may be wrong, so that whoever looks up only what may be there finds all there is.
//
// A filter of bits (Bloom's, with all bits of a key in one word of memory) holds each term, and each term with one letter
// left out and the place where it was. Leaving out letter i of a word, or going between two of its letters, then tells
// with one look whether any letter at all makes a term there; only then is each letter tried, again with one look. A
// key is made of sums from both ends of a word, so it takes some additions whatever the word's length.
//
// The filter is made while it is asked for: each unknown word takes in some terms, so no query waits for it and a model
// that meets no unknown word has none. It is of use once all terms are in, and takes a byte for each byte of the terms.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "beamwood/text/unicode.hpp"
#include "beamwood/text/vocabulary.hpp"

namespace beamwood {

// A letter of a word that typing errors are sought for. In ASCII letters only: a version number is no typing error.
inline bool may_be_mistyped(char32_t c) noexcept {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  return c < 0x110000 && !unicode::is(c, unicode::unspaced) && !unicode::is(c, unicode::mark);
}

// Numbers that stand for a word and for all words one letter away from it.
class LetterSums {
public:
  static constexpr std::size_t most = 33; // letters

  void set(std::span<const char32_t> letters) noexcept {
    letters_ = letters;
    before_[0] = after_[letters.size()] = 0;
    for (std::size_t i = 0; i < letters.size(); ++i) before_[i + 1] = before_[i] + letters[i] * powers_[i];
    for (std::size_t i = letters.size(); i-- > 0;) after_[i] = letters[i] + factor_ * after_[i + 1];
  }

  std::uint64_t whole() const noexcept { return after_[0]; }
  std::uint64_t without(std::size_t i) const noexcept { return before_[i] + powers_[i] * after_[i + 1]; }
  std::uint64_t swapped(std::size_t i) const noexcept {
    return before_[i] + powers_[i] * (letters_[i + 1] + factor_ * (letters_[i] + factor_ * after_[i + 2]));
  }
  // A letter between i - 1 and `next`: added where next is i, in the place of letter i where next is i + 1.
  std::uint64_t with(std::size_t i, char32_t letter, std::size_t next) const noexcept {
    return before_[i] + powers_[i] * (letter + factor_ * after_[next]);
  }

private:
  static constexpr std::uint64_t factor_ = 0x9E3779B97F4A7C15u; // odd; any will do
  static constexpr auto powers_ = [] {
    std::array<std::uint64_t, most + 1> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * factor_;
    return powers;
  }();

  std::span<const char32_t> letters_;
  std::array<std::uint64_t, most + 1> before_, after_;
};

class NearWords {
public:
  static constexpr std::size_t whole = 0xFF; // the place of a word that has all its letters

  explicit NearWords(const Vocabulary& vocabulary) noexcept : vocabulary_(vocabulary) {}
  NearWords(const NearWords&) = delete;
  NearWords& operator=(const NearWords&) = delete;
  ~NearWords() { std::free(bits_.load(std::memory_order_relaxed)); }

  // Takes in some more terms; true: all are in, and `may_have` says what may be there. Any number of threads may call.
  bool grow() {
    if (complete()) return true;
    std::uint64_t* const bits = made();
    const std::size_t first = taken_.fetch_add(at_once, std::memory_order_relaxed);
    if (first >= vocabulary_.size()) {
      taken_.store(vocabulary_.size(), std::memory_order_relaxed); // so that it never overflows
      return complete();
    }
    const std::size_t last = std::min(first + at_once, vocabulary_.size());
    for (std::size_t id = first; id < last; ++id) take_in(id, bits);
    done_.fetch_add(last - first, std::memory_order_release);
    return complete();
  }

  // Whether a term may have this sum: `whole`, or with the letter at this place left out. Only after grow() said true.
  bool may_have(std::uint64_t sum, std::size_t place) const noexcept {
    const Key key(sum, place, mask_);
    return (bits_.load(std::memory_order_relaxed)[key.word] & key.bits) == key.bits;
  }

private:
  static constexpr std::size_t at_once = 64;                      // terms that one call takes in
  static constexpr std::size_t most_words = std::size_t{1} << 21; // 16 MB: with more terms, "yes" is wrong more often

  struct Key {
    std::size_t word;
    std::uint64_t bits;
    Key(std::uint64_t sum, std::size_t place, std::size_t mask) noexcept {
      std::uint64_t mixed = (sum ^ (place + 1) * 0xD6E8FEB86659FD93u) * 0xFF51AFD7ED558CCDu;
      mixed = (mixed ^ mixed >> 32) * 0xC4CEB9FE1A85EC53u;
      word = (mixed >> 32) & mask;
      bits = std::uint64_t{1} << (mixed & 63) | std::uint64_t{1} << (mixed >> 6 & 63) |
             std::uint64_t{1} << (mixed >> 12 & 63);
    }
  };

  bool complete() const noexcept { return done_.load(std::memory_order_acquire) >= vocabulary_.size(); }

  // The bits, for which the first caller finds room: a byte for each byte of the terms, in pages that come as they are used.
  std::uint64_t* made() {
    std::uint64_t* bits = bits_.load(std::memory_order_acquire);
    if (bits) return bits;
    std::unique_ptr<void, decltype(&std::free)> fresh(std::calloc(mask_ + 1, sizeof(std::uint64_t)), &std::free);
    if (!fresh) throw std::bad_alloc();
    if (bits_.compare_exchange_strong(bits, static_cast<std::uint64_t*>(fresh.get()), std::memory_order_acq_rel))
      bits = static_cast<std::uint64_t*>(fresh.release());
    return bits;
  }

  void take_in(std::size_t id, std::uint64_t* bits) const noexcept {
    const std::optional<std::string_view> term = vocabulary_.at(id);
    if (!term) return; // damaged: it cannot be found either
    std::array<char32_t, LetterSums::most> letters;
    std::size_t count = 0;
    for (const char *p = term->data(), *end = p + term->size(); p != end; ++count) {
      if (count == letters.size()) return;
      letters[count] = unicode::decode(p, end);
      if (!may_be_mistyped(letters[count])) return;
    }
    LetterSums sums;
    sums.set(std::span(letters).first(count));
    const auto put = [&](std::uint64_t sum, std::size_t place) {
      const Key key(sum, place, mask_);
      std::atomic_ref(bits[key.word]).fetch_or(key.bits, std::memory_order_relaxed);
    };
    put(sums.whole(), whole);
    for (std::size_t i = 0; i < count; ++i) put(sums.without(i), i);
  }

  const Vocabulary vocabulary_; // two spans and two pointers: the arrays are the model's
  const std::size_t mask_ = std::min(std::bit_ceil(vocabulary_.bytes() / sizeof(std::uint64_t) + 1), most_words) - 1;
  std::atomic<std::uint64_t*> bits_{nullptr};
  std::atomic<std::size_t> taken_{0}, done_{0};
};

} // namespace beamwood
