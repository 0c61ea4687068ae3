// stem.hpp — a word in, its stem out, in the languages of the Snowball project (native/third_party/snowball).
//
// The law: a stem depends on the word and the language only. A word of more than `longest_word` bytes is its own stem, and
// so is one whose stem would be empty or more than `growth` bytes longer.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

struct SN_env;

namespace beamwood {

// Names in alphabetical order; a language is known by its place here. Models name it by its name.
std::span<const std::string_view> stem_languages() noexcept;

// Stemmers of one thread, each made when it is first needed.
class Stemmers {
public:
  static constexpr std::size_t longest_word = 255, growth = 8;

  Stemmers();
  ~Stemmers();
  Stemmers(Stemmers&&) noexcept;
  Stemmers& operator=(Stemmers&&) noexcept;

  // Writes the stem over the word, which has room for `growth` more bytes, and returns its length.
  std::size_t stem(std::size_t language, char* word, std::size_t length);

private:
  struct Close {
    std::size_t language;
    void operator()(SN_env* stemmer) const noexcept;
  };
  std::vector<std::unique_ptr<SN_env, Close>> stemmers_;
};

} // namespace beamwood
