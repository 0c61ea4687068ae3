// term_rules.hpp — which words a text has: the options of one block of features; and the scratch memory of one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "beamwood/text/stem.hpp"
#include "beamwood/text/word_set.hpp"

namespace beamwood {

// given: words that a tokenizer of the caller's has found, with `given_between` between them.
enum class Splitter : std::uint8_t { word, char_wb, space, line, given };
inline constexpr char given_between = '\x1f';

struct TermRules {
  static constexpr std::size_t no_stem = ~std::size_t{0};

  Splitter splitter = Splitter::word;
  std::uint32_t min_n = 1, max_n = 1;
  bool lowercase = true;
  std::uint32_t min_letters = 2;
  std::uint32_t max_tokens = 0xffffffffu; // of space and line
  bool fold = false;                      // letters without their accents (fold_tables.hpp)
  bool signs = false;                     // of word: C++, C# and .NET are words
  bool segment = false;                   // of word: scripts without spaces give pairs of characters
  std::size_t stem = no_stem;             // of word and given: a language of stem_languages()
  std::shared_ptr<const WordSet> stop{};  // of word and given: words that do not count, as they are before stemming
};

// Memory of one thread, reused for each text: after a few texts nothing more is allocated.
class TermScratch {
public:
  std::vector<std::size_t> starts; // word i (or character i) is [starts[i], starts[i + 1]) of the buffer
  Stemmers stemmers;

  char* room_for(std::size_t bytes) {
    if (bytes > size_ || buffer_ == nullptr) {
      buffer_ = std::make_unique_for_overwrite<char[]>(bytes);
      size_ = bytes;
    }
    return buffer_.get();
  }
  // Gives the memory of a huge text back.
  void trim() {
    if (size_ <= kept_bytes) return;
    buffer_.reset();
    size_ = 0;
    std::vector<std::size_t>().swap(starts);
  }

private:
  static constexpr std::size_t kept_bytes = std::size_t{1} << 20;
  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
};

} // namespace beamwood
