// Blocks of bytes in, sparse rows out: the numeric text formats of the field, one line "l,l f:v f:v" per row.
//
// The law: the rows do not depend on where the blocks were cut. A value is the float32 nearest to the double nearest to
// the decimal (what Python's float and numpy give); ids are in range, rise within a row and are not repeated. A line
// that breaks this leaves no trace in the rows and is described: its number, what was found, what was expected.
//
// Memory: arrays grow by realloc, which moves pages instead of copying them once arrays are large, and pages
// that are not yet written take no memory. So the peak is the result, plus one block and the longest line.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace beamwood {

// A growing array whose memory numpy can take over.
template <class T> class Grown {
public:
  Grown() = default;
  Grown(Grown&& other) noexcept { *this = std::move(other); }
  Grown& operator=(Grown&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~Grown() { std::free(memory_); }

  // Makes room so that `more` calls of put() need no check.
  void expect(std::size_t more) {
    if (room_ - size_ >= more) return;
    const std::size_t room = std::max(size_ + more, room_ + room_ / 2);
    void* const moved = std::realloc(memory_, room * sizeof(T));
    if (!moved) throw std::bad_alloc();
    memory_ = static_cast<T*>(moved);
    room_ = room;
  }
  void put(T value) noexcept { memory_[size_++] = value; }
  void cut(std::size_t size) noexcept { size_ = size; }
  std::size_t size() const noexcept { return size_; }
  T* data() noexcept { return memory_; }
  T* release() noexcept {
    size_ = room_ = 0;
    return std::exchange(memory_, nullptr);
  }

private:
  T* memory_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

// One format, and what its header promised.
struct RowFormat {
  bool svmlight = false;      // blank lines and `# comments` are no rows
  bool targets = false;       // the first word is one number (kept as it is), not a list of labels
  std::uint64_t rows = ~0ull; // no more rows than this (blank lines may follow)
  std::uint32_t features = 0x7FFFFFFF, labels = 0x7FFFFFFF; // ids are below these
};

struct BadLine {
  std::uint64_t line = 0;
  std::string found, expected;
};

namespace detail {

inline bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
inline bool is_digit(char c) noexcept { return static_cast<unsigned char>(c - '0') < 10; }

// Reads digits at p; false when there are none or the number is not below `limit`. A non-digit must stand behind.
inline bool parse_id(const char*& p, std::uint32_t limit, std::uint32_t& id) noexcept {
  const char* const start = p;
  std::uint64_t value = 0;
  for (; is_digit(*p); ++p)
    value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(*p - '0'), 1ull << 40);
  id = static_cast<std::uint32_t>(value);
  return p != start && value < limit;
}

// Reads a decimal number at p. Few digits: exact in a double, and one exact division is rounded as it should be.
inline bool parse_number(const char*& p, const char* end, double& value) noexcept {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const start = p;
  std::uint64_t digits = 0;
  std::ptrdiff_t count = 0, behind_point = 0;
  for (; is_digit(*p); ++p, ++count) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  if (*p == '.') {
    for (++p; is_digit(*p); ++p, ++behind_point) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  }
  if (count + behind_point == 0) return false;
  const bool exponent = *p == 'e' || *p == 'E';
  if (!exponent && count + behind_point <= 19 && digits < (1ull << 53)) {
    value = static_cast<double>(digits) / powers[behind_point];
  } else {
    const auto [stop, error] = std::from_chars(start, end, value);
    // Beyond double's range: infinity is refused by the caller, and what is too small for a double is 0 in float32.
    const bool tiny = exponent ? p[1] == '-' : behind_point > count;
    if (error == std::errc::result_out_of_range) value = tiny ? 0.0 : HUGE_VAL;
    p = stop;
  }
  if (negative) value = -value;
  return true;
}

// The word at p, short enough for a message, with bytes that are no printable ASCII as a question mark.
inline std::string word_at(const char* p, const char* end) {
  std::string word;
  for (; p != end && !is_blank(*p) && word.size() < 40; ++p) word += *p >= 32 && *p < 127 ? *p : '?';
  return word;
}

} // namespace detail

class RowParser {
public:
  RowParser(const RowFormat& format, bool skip_bad, std::uint64_t first_line,
            std::size_t longest_line = std::size_t{1} << 30)
      : format_(format), skip_bad_(skip_bad), longest_line_(longest_line), line_(first_line) {
    starts_of_next_row();
  }

  // Reads the lines of a block; the piece behind the last line end waits for the next block. False: a bad line was
  // met (see bad()) and reading is over.
  bool feed(std::string_view block) {
    if (!carry_.empty() && !complete_carry(block)) return false;
    const char* p = block.data();
    const char* const end = p + block.size();
    while (p != end) {
      const auto* stop = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
      if (!stop) break;
      if (!read_line(p, stop)) return false;
      p = stop + 1;
    }
    carry_.append(p, end);
    if (carry_.size() <= longest_line_) return true;
    ++line_; // the line that is being read
    return refuse("a line of more than 1 GiB", "lines of at most 1 GiB");
  }

  // Reads a last line without a line end.
  bool finish() {
    constexpr std::string_view line_end = "\n";
    return carry_.empty() || feed(line_end);
  }

  std::uint64_t bad_lines() const noexcept { return bad_lines_; }
  const std::vector<BadLine>& bad() const noexcept { return bad_; } // the first few
  std::uint64_t rows() const noexcept { return x_starts.size() - 1; }
  std::uint64_t seen() const noexcept { return seen_; } // rows, good and bad

  Grown<std::int64_t> x_starts, y_starts;
  Grown<std::int32_t> x_ids, y_ids;
  Grown<float> x_values;
  Grown<double> targets;

private:
  bool complete_carry(std::string_view& block) {
    const std::size_t stop = block.find('\n');
    if (stop == std::string_view::npos) return true; // the caller appends the block to the carry
    carry_.append(block.substr(0, stop + 1));
    block.remove_prefix(stop + 1);
    const std::string line = std::exchange(carry_, {});
    return read_line(line.data(), line.data() + line.size() - 1);
  }

  // One line [p, end), *end == '\n'.
  bool read_line(const char* p, const char* end) {
    ++line_;
    if (end != p && end[-1] == '\r') --end;
    if (format_.svmlight) {
      if (const auto* hash = static_cast<const char*>(std::memchr(p, '#', static_cast<std::size_t>(end - p))))
        end = hash;
      while (end != p && detail::is_blank(end[-1])) --end;
      if (p == end) return true;
    } else if (seen_ == format_.rows) {
      if (std::all_of(p, end, detail::is_blank)) return true;
      refuse(detail::word_at(p, end), "no more rows than the header says");
      ++bad_lines_;
      return skip_bad_;
    }
    ++seen_;
    if (parse_labels(p, end) && parse_features(p, end) && order_row()) {
      starts_of_next_row();
      return true;
    }
    x_ids.cut(static_cast<std::size_t>(x_starts.data()[rows()]));
    x_values.cut(x_ids.size());
    y_ids.cut(static_cast<std::size_t>(y_starts.data()[rows()]));
    targets.cut(format_.targets ? rows() : 0);
    ++bad_lines_;
    return skip_bad_;
  }

  void starts_of_next_row() {
    x_starts.expect(1), y_starts.expect(1);
    x_starts.put(static_cast<std::int64_t>(x_ids.size()));
    y_starts.put(static_cast<std::int64_t>(y_ids.size()));
  }

  // Notes what is wrong with the present line; the result is always false.
  bool refuse(std::string found, std::string expected) {
    if (bad_.size() < kMostTold) bad_.push_back({line_ - 1, std::move(found), std::move(expected)});
    return false;
  }

  // The first word, when it is not already a feature: labels between commas, or one number.
  bool parse_labels(const char*& p, const char* end) {
    if (format_.targets) return parse_target(p, end);
    if (p == end || detail::is_blank(*p)) return true;
    y_ids.expect(static_cast<std::size_t>(end - p) / 2 + 1);
    for (const char* const first = p;; ++p) {
      const char* const at = p;
      std::uint32_t id = 0;
      const bool good = detail::parse_id(p, format_.labels, id);
      if (at == first && p != at && p != end && *p == ':') return p = first, true;
      if (!good || (p != end && *p != ',' && !detail::is_blank(*p)))
        return refuse(detail::word_at(first, end), "label ids below " + std::to_string(format_.labels));
      y_ids.put(static_cast<std::int32_t>(id));
      if (p == end || *p != ',') return true;
    }
  }

  bool parse_target(const char*& p, const char* end) {
    while (p != end && detail::is_blank(*p)) ++p;
    const char* const at = p;
    double value = 0;
    if (p == end || !detail::parse_number(p, end, value) || (p != end && !detail::is_blank(*p)) ||
        !std::isfinite(value))
      return refuse(detail::word_at(at, end), "a number before the features");
    targets.expect(1);
    targets.put(value);
    return true;
  }

  bool parse_features(const char* p, const char* end) {
    const std::size_t most = static_cast<std::size_t>(end - p) / 3 + 1; // "1:1" is the shortest feature
    x_ids.expect(most), x_values.expect(most);
    for (;; ++p) {
      while (p != end && detail::is_blank(*p)) ++p;
      if (p == end) return true;
      const char* const at = p;
      std::uint32_t id = 0;
      if (!detail::parse_id(p, format_.features, id) || *p != ':')
        return refuse(detail::word_at(at, end),
                      "feature:value with a feature id below " + std::to_string(format_.features));
      double value = 0;
      if (!detail::parse_number(++p, end, value) || (p != end && !detail::is_blank(*p)))
        return refuse(detail::word_at(at, end), "feature:value with a decimal number");
      const float rounded = static_cast<float>(value);
      if (!std::isfinite(rounded)) return refuse(detail::word_at(at, end), "a value within the range of float32");
      x_ids.put(static_cast<std::int32_t>(id));
      x_values.put(rounded);
      if (p == end) return true;
    }
  }

  // Sorts the row if need be. Labels are a set; a feature that is there twice has no clear value.
  bool order_row() {
    auto* const labels = y_ids.data() + y_starts.data()[rows()];
    auto* const labels_end = y_ids.data() + y_ids.size();
    if (labels_end - labels > 1) {
      std::sort(labels, labels_end);
      y_ids.cut(static_cast<std::size_t>(std::unique(labels, labels_end) - y_ids.data()));
    }
    const auto first = static_cast<std::size_t>(x_starts.data()[rows()]);
    const auto* const ids = x_ids.data();
    std::size_t at = first + 1;
    while (at < x_ids.size() && ids[at - 1] < ids[at]) ++at;
    return at >= x_ids.size() || sort_features(first);
  }

  bool sort_features(std::size_t first) {
    std::vector<std::pair<std::int32_t, float>> row;
    for (std::size_t i = first; i < x_ids.size(); ++i) row.emplace_back(x_ids.data()[i], x_values.data()[i]);
    std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0 && row[i - 1].first == row[i].first)
        return refuse("feature " + std::to_string(row[i].first) + " twice", "each feature at most once per row");
      x_ids.data()[first + i] = row[i].first;
      x_values.data()[first + i] = row[i].second;
    }
    return true;
  }

  RowFormat format_;
  bool skip_bad_;
  std::size_t longest_line_; // bytes
  std::uint64_t line_;       // number of the next line
  std::uint64_t seen_ = 0, bad_lines_ = 0;
  static constexpr std::size_t kMostTold = 5;
  std::vector<BadLine> bad_;
  std::string carry_;
};

} // namespace beamwood
