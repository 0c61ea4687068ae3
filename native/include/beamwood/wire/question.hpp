// The body or the query string of a search in, what it asks out: a quick way for the plain questions most requests are.
//
// The law: a question that is read here means the same to the full reader of the server, and lies within its limits.
// Everything else (other fields, numbers out of range, a field given twice, what is no JSON, no UTF-8) is no plain
// question: nothing comes out, and the full reader has to look at it and say what is wrong.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "beamwood/text/unicode.hpp"

namespace beamwood {

struct Question {
  std::string text, model;       // an empty name means the usual model
  std::uint32_t k = 0, beam = 0; // no beam: the model's own
};

class QuestionReader {
public:
  QuestionReader(std::uint32_t k, std::uint32_t beam, std::uint32_t most_k, std::uint32_t most_beam)
      : k_(k), beam_(beam), most_k_(most_k), most_beam_(most_beam) {}

  // {"text": "…", "k": 10, "beam": 10, "model": "…"} in any order; all but the text may be left out.
  std::optional<Question> read(std::string_view body) const {
    Cursor at{body.data(), body.data() + body.size()};
    Question asked{{}, {}, k_, beam_};
    Seen seen;
    if (!at.takes('{')) return std::nullopt;
    do {
      std::string_view name;
      if (!at.name(name) || !at.takes(':')) return std::nullopt;
      const bool good = name == "text"    ? once(seen.text) && at.string(asked.text)
                        : name == "k"     ? once(seen.k) && at.skip_space() && at.whole(most_k_, asked.k)
                        : name == "beam"  ? once(seen.beam) && at.skip_space() && at.whole(most_beam_, asked.beam)
                        : name == "model" ? once(seen.model) && at.string(asked.model) && !asked.model.empty()
                                          : false;
      if (!good) return std::nullopt;
    } while (at.takes(','));
    if (!seen.text || !at.takes('}') || !at.ends() || !is_utf8(asked.text) || !is_utf8(asked.model))
      return std::nullopt;
    return asked;
  }

  // q=…&k=10&beam=10&model=… in any order; all but q may be left out.
  std::optional<Question> read_query(std::string_view query) const {
    Question asked{{}, {}, k_, beam_};
    Seen seen;
    while (true) {
      const std::size_t length = query.find('&');
      const std::string_view pair = query.substr(0, length);
      const std::size_t equals = pair.find('=');
      if (equals == pair.npos) return std::nullopt;
      const std::string_view name = pair.substr(0, equals), value = pair.substr(equals + 1);
      Cursor digits{value.data(), value.data() + value.size()};
      const bool good = name == "q"   ? once(seen.text) && decoded(value, asked.text)
                        : name == "k" ? once(seen.k) && digits.whole(most_k_, asked.k) && digits.p == digits.end
                        : name == "beam"
                            ? once(seen.beam) && digits.whole(most_beam_, asked.beam) && digits.p == digits.end
                        : name == "model" ? once(seen.model) && decoded(value, asked.model) && !asked.model.empty()
                                          : false;
      if (!good) return std::nullopt;
      if (length == query.npos) break;
      query.remove_prefix(length + 1);
    }
    if (!seen.text || !is_utf8(asked.text) || !is_utf8(asked.model)) return std::nullopt;
    return asked;
  }

private:
  // Walks over a body. Whatever it does not know is false.
  struct Cursor {
    const char *p, *end;

    bool skip_space() {
      while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) ++p;
      return true;
    }
    bool ends() {
      skip_space();
      return p == end;
    }
    bool takes(char c) {
      skip_space();
      if (p == end || *p != c) return false;
      ++p;
      return true;
    }
    // A string of letters and underscores.
    bool name(std::string_view& out) {
      if (!takes('"')) return false;
      const char* const begin = p;
      while (p < end && ((*p >= 'a' && *p <= 'z') || *p == '_')) ++p;
      out = {begin, static_cast<std::size_t>(p - begin)};
      return p < end && *p++ == '"';
    }
    bool string(std::string& out) {
      if (!takes('"')) return false;
      while (p < end) {
        const char* const run = p;
        while (p < end && static_cast<unsigned char>(*p) >= 0x20 && *p != '"' && *p != '\\') ++p;
        out.append(run, p);
        if (p == end || static_cast<unsigned char>(*p) < 0x20) return false;
        if (*p++ == '"') return true;
        if (!escaped(out)) return false;
      }
      return false;
    }
    // What follows a backslash.
    bool escaped(std::string& out) {
      constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      if (p == end) return false;
      const char c = *p++;
      if (const std::size_t i = letters.find(c); i != letters.npos) return out += meant[i], true;
      char32_t high = 0, low = 0;
      if (c != 'u' || !four_digits(high)) return false;
      if (high >= 0xD800 && high < 0xE000) { // the first half of a character beyond 16 bits, if the second one follows
        if (high >= 0xDC00 || end - p < 2 || *p++ != '\\' || *p++ != 'u') return false;
        if (!four_digits(low) || low < 0xDC00 || low >= 0xE000) return false;
        high = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
      }
      char bytes[4];
      out.append(bytes, unicode::encode(high, bytes));
      return true;
    }
    bool four_digits(char32_t& out) {
      if (end - p < 4) return false;
      out = 0;
      for (const char* const last = p + 4; p < last; ++p) {
        if (digit(*p) < 0) return false;
        out = out << 4 | static_cast<char32_t>(digit(*p));
      }
      return true;
    }
    // From 1 to most, without sign, fraction and exponent.
    bool whole(std::uint32_t most, std::uint32_t& out) {
      const char* const begin = p;
      std::uint64_t value = 0;
      while (p < end && *p >= '0' && *p <= '9' && p - begin < 10)
        value = value * 10 + static_cast<unsigned>(*p++ - '0');
      const bool goes_on = p < end && (*p == '.' || *p == 'e' || *p == 'E' || (*p >= '0' && *p <= '9'));
      if (p == begin || *begin == '0' || goes_on || value > most) return false;
      out = static_cast<std::uint32_t>(value);
      return true;
    }
  };

  struct Seen {
    bool text = false, k = false, beam = false, model = false;
  };
  static bool once(bool& seen) { return !seen && (seen = true); }

  static int digit(char c) {
    const char low = static_cast<char>(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
  }

  // A value of a query string: + is a space, %41 is A.
  static bool decoded(std::string_view value, std::string& out) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const char c = value[i];
      if (c == '%') {
        const int high = i + 2 < value.size() ? digit(value[i + 1]) : -1, low = high < 0 ? -1 : digit(value[i + 2]);
        if (low < 0) return false;
        out += static_cast<char>(high << 4 | low);
        i += 2;
      } else if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7F) {
        return false;
      } else {
        out += c == '+' ? ' ' : c;
      }
    }
    return true;
  }

  static bool is_utf8(std::string_view text) {
    const char *p = text.data(), *const end = p + text.size();
    while (p < end) {
      const char* const at = p;
      const char32_t c = unicode::decode(p, end);
      if ((c >= 0xD800 && c < 0xE000) || (c == unicode::replacement && p - at != 3)) return false;
    }
    return true;
  }

  std::uint32_t k_, beam_, most_k_, most_beam_;
};

} // namespace beamwood
