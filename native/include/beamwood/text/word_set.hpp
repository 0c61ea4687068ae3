// word_set.hpp — some words in, whether a word is one of them out: stop words.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "beamwood/xxh3.hpp"

namespace beamwood {

// Open addressing, at most half full. Never changes, so any number of threads may ask.
class WordSet {
public:
  explicit WordSet(std::vector<std::string> words) : words_(std::move(words)) {
    slots_.resize(std::bit_ceil(2 * words_.size() + 1));
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::size_t at = place(words_[i]);
      if (slots_[at] == 0) slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  bool has(std::string_view word) const noexcept { return slots_[place(word)] != 0; }

private:
  // Where the word is, or the empty place where it would be.
  std::size_t place(std::string_view word) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = xxh3_64(word.data(), word.size()) & mask;
    while (slots_[at] != 0 && words_[slots_[at] - 1] != word) at = (at + 1) & mask;
    return at;
  }

  std::vector<std::string> words_;
  std::vector<std::uint32_t> slots_; // 0: empty, else the number of a word + 1
};

} // namespace beamwood
