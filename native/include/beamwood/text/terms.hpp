// A text in, its terms out: the words, runs of words, or runs of letters that become features.
//
// The law: the terms are those of scikit-learn's CountVectorizer with the same options. The text is lower-cased as a
// whole first; a word is a longest run of \w of at least `min_letters` code points; a run of words is joined by one
// space; "char_wb" takes runs of code points out of each white-space separated word with a space on both sides.
// Two more are libpecos': "space" takes for words whatever stands between ASCII spaces, and "line" takes runs of code
// points out of the text as it stands. Of these only the first `max_tokens` words or code points count.
//
// The words are written side by side into one scratch buffer, so every term is a slice of that buffer and no term is
// ever copied. Slices stay valid until the scratch is used again.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "beamwood/text/unicode.hpp"

namespace beamwood {

enum class Splitter : std::uint8_t { word, char_wb, space, line };

struct TermRules {
  Splitter splitter = Splitter::word;
  std::uint32_t min_n = 1, max_n = 1;
  bool lowercase = true;
  std::uint32_t min_letters = 2;
  std::uint32_t max_tokens = 0xffffffffu; // of space and line
};

// Memory of one thread, reused for each text: after a few texts nothing more is allocated.
class TermScratch {
public:
  std::vector<std::size_t> starts; // word i (or character i) is [starts[i], starts[i + 1]) of the buffer

  char* room_for(std::size_t bytes) {
    if (bytes > size_) {
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

namespace detail {

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

// Gives the (lower-cased) code points of the character at p to each() and moves p behind it.
template <class Each> void next_character(std::string_view text, bool lowercase, const char*& p, Each&& each) {
  if (lowercase) {
    unicode::lower_one(text, p, each);
  } else {
    each(unicode::decode(p, text.data() + text.size()));
  }
}

// Words are short: copying byte by byte predicts best here. A character grows by at most
// one byte when lowered, a broken byte becomes three, and each word but the last is followed by a byte that is not
// written: four bytes per byte of text are more than enough.
inline std::size_t room_for_text(std::size_t bytes) { return 4 * bytes + 16; }

// Writes "word word word " and fills starts with the start of each word and the end of the last.
inline const char* split_words(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  char* const base = scratch.room_for(room_for_text(text.size()));
  auto& starts = scratch.starts;
  starts.assign(1, 0);
  const AsciiTable& ascii = rules.lowercase ? ascii_words_lower : ascii_words_kept;
  char* out = base;
  std::uint32_t letters = 0;
  const auto close_word = [&] {
    if (letters >= rules.min_letters) {
      *out++ = ' ';
      starts.push_back(static_cast<std::size_t>(out - base));
    } else {
      out = base + starts.back();
    }
    letters = 0;
  };
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) {
      ++p;
      if (const char kept = ascii[byte]) {
        *out++ = kept;
        ++letters;
      } else if (letters) {
        close_word();
      }
    } else {
      next_character(text, rules.lowercase, p, [&](char32_t c) {
        if (unicode::is(c, unicode::word)) {
          out = unicode::encode(c, out);
          ++letters;
        } else if (letters) {
          close_word();
        }
      });
    }
  }
  if (letters) close_word();
  return base;
}

template <class Sink>
void emit_word_runs(const char* base, const TermScratch& scratch, const TermRules& rules, Sink& sink) {
  const auto& starts = scratch.starts;
  const std::size_t words = starts.size() - 1;
  for (std::size_t n = rules.min_n; n <= rules.max_n && n <= words; ++n) {
    for (std::size_t i = 0; i + n <= words; ++i) sink(base + starts[i], starts[i + n] - 1 - starts[i]);
  }
}

// All runs of letters of one padded word; a word shorter than n is given once, whole.
template <class Sink>
void emit_letter_runs(const char* base, const std::vector<std::size_t>& starts, const TermRules& rules, Sink& sink) {
  const std::size_t letters = starts.size() - 1;
  for (std::size_t n = rules.min_n; n <= rules.max_n; ++n) {
    if (n >= letters) {
      sink(base + starts.front(), starts.back() - starts.front());
      break;
    }
    for (std::size_t i = 0; i + n <= letters; ++i) sink(base + starts[i], starts[i + n] - starts[i]);
  }
}

template <class Sink>
void for_each_letter_run(std::string_view text, const TermRules& rules, TermScratch& scratch, Sink& sink) {
  char* const base = scratch.room_for(room_for_text(text.size()));
  char* out = base;
  auto& starts = scratch.starts;
  const auto begin_character = [&] { starts.push_back(static_cast<std::size_t>(out - base)); };
  const auto close_word = [&] {
    begin_character();
    *out++ = ' ';
    begin_character();
    emit_letter_runs(base, starts, rules, sink);
    starts.clear();
  };
  starts.clear();
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    next_character(text, rules.lowercase, p, [&](char32_t c) {
      if (unicode::is(c, unicode::space)) {
        if (!starts.empty()) close_word();
        return;
      }
      if (starts.empty()) {
        begin_character();
        *out++ = ' ';
      }
      begin_character();
      out = unicode::encode(c, out);
    });
  }
  if (!starts.empty()) close_word();
}

// Writes "word word word " as split_words does; a word is a longest run without an ASCII space.
inline const char* split_at_spaces(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  char* const base = scratch.room_for(room_for_text(text.size()));
  auto& starts = scratch.starts;
  starts.assign(1, 0);
  char* out = base;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end && starts.size() <= rules.max_tokens;) {
    for (; p != end && *p != ' '; ++p) *out++ = *p;
    if (out != base + starts.back()) {
      *out++ = ' ';
      starts.push_back(static_cast<std::size_t>(out - base));
    }
    if (p != end) ++p;
  }
  return base;
}

// Copies the text and fills starts with the start of each code point and the end of the last.
inline const char* split_characters(std::string_view text, const TermRules& rules, TermScratch& scratch) {
  char* const base = scratch.room_for(room_for_text(text.size()));
  auto& starts = scratch.starts;
  starts.assign(1, 0);
  char* out = base;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end && starts.size() <= rules.max_tokens;) {
    out = unicode::encode(unicode::decode(p, end), out);
    starts.push_back(static_cast<std::size_t>(out - base));
  }
  return base;
}

template <class Sink>
void emit_character_runs(const char* base, const TermScratch& scratch, const TermRules& rules, Sink& sink) {
  const auto& starts = scratch.starts;
  const std::size_t count = starts.size() - 1;
  for (std::size_t n = rules.min_n; n <= rules.max_n && n <= count; ++n)
    for (std::size_t i = 0; i + n <= count; ++i) sink(base + starts[i], starts[i + n] - starts[i]);
}

} // namespace detail

// Calls sink(bytes, length) for every term of the text, repeated terms included.
template <class Sink>
void for_each_term(std::string_view text, const TermRules& rules, TermScratch& scratch, Sink&& sink) {
  switch (rules.splitter) {
  case Splitter::char_wb: return detail::for_each_letter_run(text, rules, scratch, sink);
  case Splitter::line:
    return detail::emit_character_runs(detail::split_characters(text, rules, scratch), scratch, rules, sink);
  case Splitter::space:
    return detail::emit_word_runs(detail::split_at_spaces(text, rules, scratch), scratch, rules, sink);
  case Splitter::word: return detail::emit_word_runs(detail::split_words(text, rules, scratch), scratch, rules, sink);
  }
}

} // namespace beamwood
