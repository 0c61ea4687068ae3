// The body of a request in, the [index, value] pairs of its `features` and a bound on its other values out.
//
// The law: pairs that are read here are those that the full reader of the server would find, number for number; where
// one of them is not plain, none is read and its place is told. A body that is no JSON is left to the full reader: only
// strings, brackets and commas are looked at here, so that what that reader will have to make can be bounded first.
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace beamwood {

struct FeaturePairs {
  std::vector<std::int64_t> ids;
  std::vector<float> values;
  std::size_t from = 0, to = 0;   // where they stand in the body; the same place when none were read
  std::size_t others = 0;         // at least as many as there are values beside them
  std::optional<std::size_t> odd; // the first that is not plain, where there is one
  bool twice = false;             // whether there are several fields of that name
};

class PairReader {
public:
  explicit PairReader(std::string_view body) : start_(body.data()), p_(start_), end_(start_ + body.size()) {}

  FeaturePairs read() {
    FeaturePairs found;
    for (std::size_t depth = 0; p_ < end_;) {
      const char c = *p_;
      if (c == '"') {
        const std::string_view text = string();
        if (depth == 1 && text == "features" && takes(':')) field(found);
        continue;
      }
      found.others += c == ',' || c == '[' || c == '{';
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && depth > 0) --depth;
      ++p_;
    }
    return found;
  }

private:
  void field(FeaturePairs& found) {
    skip_space();
    if (found.to || found.odd) return void(found.twice = true);
    const char* const from = p_;
    if (!takes('[')) return;
    if (!takes(']')) {
      do {
        if (!pair(found)) {
          found.odd = found.ids.size();
          p_ = from; // and are counted like all others
          return;
        }
      } while (takes(','));
      if (!takes(']')) return void((found.odd = found.ids.size(), p_ = from));
    }
    found.from = static_cast<std::size_t>(from - start_), found.to = static_cast<std::size_t>(p_ - start_);
  }

  bool pair(FeaturePairs& found) {
    std::string_view index, value;
    bool whole = false, any = false;
    double number = 0.0;
    std::int64_t id = 0;
    if (!takes('[') || !token(index, whole) || !whole || !takes(',') || !token(value, any) || !takes(']')) return false;
    const auto read = std::from_chars(index.data(), index.data() + index.size(), id);
    if (read.ec != std::errc{} || id >= std::int64_t{1} << 31) return false;
    const auto measured = std::from_chars(value.data(), value.data() + value.size(), number);
    if (measured.ec != std::errc{} || !(std::abs(number) <= std::numeric_limits<float>::max())) return false;
    found.ids.push_back(id);
    found.values.push_back(static_cast<float>(number));
    return true;
  }

  // A number as JSON writes it. whole: it has digits only.
  bool token(std::string_view& out, bool& whole) {
    skip_space();
    const char* const from = p_;
    whole = !next_is('-');
    if (!whole) ++p_;
    const char* const first = p_;
    if (!digits() || (*first == '0' && p_ - first > 1)) return false;
    if (next_is('.')) {
      ++p_, whole = false;
      if (!digits()) return false;
    }
    if (next_is('e') || next_is('E')) {
      ++p_, whole = false;
      if (next_is('+') || next_is('-')) ++p_;
      if (!digits()) return false;
    }
    out = {from, static_cast<std::size_t>(p_ - from)};
    return true;
  }

  bool digits() {
    const char* const from = p_;
    while (p_ < end_ && *p_ >= '0' && *p_ <= '9') ++p_;
    return p_ > from;
  }
  bool next_is(char c) const { return p_ < end_ && *p_ == c; }
  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
  }
  bool takes(char c) {
    skip_space();
    if (!next_is(c)) return false;
    ++p_;
    return true;
  }

  // What stands between two quotes, as it is written.
  std::string_view string() {
    const char* const from = ++p_;
    while (p_ < end_ && *p_ != '"') p_ += *p_ == '\\' && end_ - p_ > 1 ? 2 : 1;
    const std::string_view text{from, static_cast<std::size_t>(p_ - from)};
    if (p_ < end_) ++p_;
    return text;
  }

  const char *start_, *p_, *end_;
};

} // namespace beamwood
