// A text in, its terms out: the words, runs of words, or runs of letters that become features.
//
// The law: the terms are those of scikit-learn's CountVectorizer with the same options. The text is lower-cased as a
// whole first; a word is a longest run of \w of at least `min_letters` code points; a run of words is joined by one
// space; "char_wb" takes runs of code points out of each white-space separated word with a space on both sides.
// Two more are libpecos': "space" takes for words whatever stands between ASCII spaces, and "line" takes runs of code
// points out of the text as it stands. Of these only the first `max_tokens` words or code points count.
// What scikit-learn has not (accents folded, stems, signs, pairs of characters) is in split_words.hpp.
//
// The words are written side by side into one scratch buffer, so every term is a slice of that buffer and no term is
// ever copied. Slices stay valid until the scratch is used again.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "beamwood/text/split_words.hpp"

namespace beamwood {

namespace detail {

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
  char* const base = scratch.room_for(room_for_text(text.size(), rules));
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
    next_character(text, rules, p, [&](char32_t c) {
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
  char* const base = scratch.room_for(room_for_text(text.size(), rules));
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
  char* const base = scratch.room_for(room_for_text(text.size(), rules));
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
  case Splitter::given: return detail::emit_word_runs(detail::take_words(text, rules, scratch), scratch, rules, sink);
  case Splitter::word: return detail::emit_word_runs(detail::split_words(text, rules, scratch), scratch, rules, sink);
  }
}

} // namespace beamwood
