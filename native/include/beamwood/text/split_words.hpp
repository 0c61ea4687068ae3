// split_words.hpp — a text in, its words out, side by side in the scratch: lower-cased, folded, stemmed, without stop words.
//
// The law: with neither fold, signs, segment, stem nor stop, words are scikit-learn's (terms.hpp). Else, in this order:
//   fold      what lower-casing gives is replaced by what is left of it without accents; a mark alone is nothing at all,
//             so "e" and a combining accent are one letter
//   signs     "++" or "#" right behind a word, and a dot right before an ASCII letter at the start of the text or behind
//             white space or "(", belong to the word
//   segment   a run of characters of scripts that write no spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) is no
//             part of another word; its words are all pairs of neighbours, or the one character there is. Marks stay
//             with the character before them
//   stop      such words are as if they were not there
//   stem      of every word but those of segment
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "beamwood/text/term_rules.hpp"
#include "beamwood/text/unicode.hpp"

namespace beamwood::detail {

using AsciiTable = std::array<char, 128>;

// The byte to write for an ASCII word character, 0 for everything else.
constexpr AsciiTable ascii_words(bool lowercase) {
  AsciiTable table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = static_cast<char>(c);
  for (int c = 'a'; c <= 'z'; ++c) {
    table[static_cast<std::size_t>(c)] = static_cast<char>(c);
    table[static_cast<std::size_t>(c - 32)] = static_cast<char>(lowercase ? c : c - 32);
  }
  table['_'] = '_';
  return table;
}
inline constexpr AsciiTable ascii_words_lower = ascii_words(true), ascii_words_kept = ascii_words(false);

// Gives what becomes of the character at p to each() and moves p behind it.
template <class Each> void next_character(std::string_view text, const TermRules& rules, const char*& p, Each&& each) {
  const auto folded = [&](char32_t c) {
    if (rules.fold) {
      unicode::fold_one(c, rules.lowercase, each);
    } else {
      each(c);
    }
  };
  if (rules.lowercase) {
    unicode::lower_one(text, p, folded);
  } else {
    folded(unicode::decode(p, text.data() + text.size()));
  }
}

// A character grows by at most one byte when lowered, a broken byte becomes three, and each word but the last is followed
// by a byte that is not written; of scripts without spaces each character is written twice: four bytes per byte of text
// are more than enough, but for folds. A stem may be longer than its word.
inline std::size_t room_for_text(std::size_t bytes, const TermRules& rules) {
  const std::size_t written = (rules.fold ? 4 + unicode::fold_growth : 4) * bytes + 16;
  return rules.stem == TermRules::no_stem ? written : written + (written / 2 + 1) * Stemmers::growth;
}

// Writes "word word word " and fills starts with the start of each word and the end of the last. Words are short: copying
// byte by byte predicts best here.
class WordWriter {
public:
  WordWriter(std::size_t bytes, const TermRules& rules, TermScratch& scratch)
      : rules_(rules), scratch_(scratch), base_(scratch.room_for(room_for_text(bytes, rules))), out_(base_) {
    scratch.starts.assign(1, 0);
  }

  bool in_word() const noexcept { return letters_ != 0; }

  // Part of a word, whatever it is.
  void put(char byte) {
    if (run_) [[unlikely]]
      close();
    *out_++ = byte;
    ++letters_;
  }
  void put(char32_t c) {
    if (run_) [[unlikely]]
      close();
    out_ = unicode::encode(c, out_);
    ++letters_;
  }

  // Part of a word if it is a letter; else the word ends.
  void look_at(char32_t c) {
    const auto flags = unicode::record_of(c).flags;
    if (rules_.segment && (flags & (unicode::unspaced | unicode::mark))) {
      put_unspaced(c, flags);
    } else if (flags & unicode::word) {
      put(c);
    } else {
      end();
    }
  }

  void end() {
    if (letters_ + run_) close();
  }

  const char* base() const noexcept { return base_; }

private:
  // The word that is open ends here, and stays if it counts.
  void close() {
    char* const word = base_ + scratch_.starts.back();
    bool counts = run_ != 0 || letters_ >= rules_.min_letters;
    if (counts && rules_.stop) counts = !rules_.stop->has({word, static_cast<std::size_t>(out_ - word)});
    if (counts && rules_.stem != TermRules::no_stem && run_ == 0)
      out_ = word + scratch_.stemmers.stem(rules_.stem, word, static_cast<std::size_t>(out_ - word));
    if (counts) {
      *out_++ = ' ';
      scratch_.starts.push_back(static_cast<std::size_t>(out_ - base_));
    } else {
      out_ = word;
    }
    letters_ = run_ = 0;
  }

  void put_unspaced(char32_t c, std::uint8_t flags) {
    if (flags & unicode::mark) {
      if (run_ == 0) return end();
      out_ = unicode::encode(c, out_); // it stays with the character before it
      return;
    }
    if (letters_) close();
    std::uint32_t length = run_;
    if (length == 2) { // the pair is whole, and its second half begins the next
      const char* const half = second_;
      const auto bytes = static_cast<std::size_t>(out_ - half);
      close();
      std::memmove(out_, half, bytes);
      out_ += bytes;
      length = 1;
    }
    second_ = out_;
    out_ = unicode::encode(c, out_);
    run_ = length + 1;
  }

  const TermRules& rules_;
  TermScratch& scratch_;
  char* const base_;
  char* out_;
  char* second_ = nullptr;    // of an open pair, where its last character is
  std::uint32_t letters_ = 0; // of the open word
  std::uint32_t run_ = 0;     // characters in the open pair; 0: there is none
};

// How many bytes at p, which is no letter, belong to the word that is open or that begins here: see signs.
inline std::size_t signs_at(std::string_view text, const char* p, bool in_word) {
  const char* const end = text.data() + text.size();
  if (in_word && (*p == '+' || *p == '#')) {
    const char* after = p + 1;
    if (*p == '+') {
      if (after == end || *after != '+') return 0;
      ++after;
    }
    const auto bytes = static_cast<std::size_t>(after - p);
    if (after == end) return bytes;
    if (*after == '+' || *after == '#' || unicode::is(unicode::decode(after, end), unicode::word)) return 0;
    return bytes;
  }
  if (in_word || *p != '.' || p + 1 == end) return 0;
  if (p != text.data() && p[-1] != '(') {
    const auto before = static_cast<unsigned char>(p[-1]); // char has a sign on some machines and none on others
    if (before >= 0x80 || !unicode::is(before, unicode::space)) return 0;
  }
  const char next = static_cast<char>(p[1] | 0x20);
  return next >= 'a' && next <= 'z' ? 1 : 0;
}

inline const char* split_words(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  WordWriter words(text.size(), rules, scratch);
  const AsciiTable& ascii = rules.lowercase ? ascii_words_lower : ascii_words_kept;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const auto byte = static_cast<unsigned char>(*p);
    if (byte >= 0x80) {
      next_character(text, rules, p, [&](char32_t c) { words.look_at(c); });
    } else if (const char kept = ascii[byte]) {
      words.put(kept);
      ++p;
    } else if (const std::size_t signs = rules.signs ? signs_at(text, p, words.in_word()) : 0) {
      for (const char* const after = p + signs; p != after; ++p) words.put(*p);
    } else {
      words.end();
      ++p;
    }
  }
  words.end();
  return words.base();
}

// The same for words that a tokenizer has found: what stands between `given_between`, if it is anything.
inline const char* take_words(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  WordWriter words(text.size(), rules, scratch);
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    if (*p == given_between) {
      words.end();
      ++p;
    } else {
      next_character(text, rules, p, [&](char32_t c) { words.put(c); });
    }
  }
  words.end();
  return words.base();
}

} // namespace beamwood::detail
