// parse.hpp and print.hpp: rows of text in any pieces, bad lines described, hostile bytes, and the way back.
#include "beamwood/wire/parse.hpp"

#include <bit>

#include "beamwood/wire/print.hpp"
#include "bytes.hpp"

using namespace check;
using namespace beamwood;

namespace {

// The rows as print.hpp writes them, targets first.
std::string printed(RowParser& parser) {
  std::string out;
  for (std::size_t r = 0; r < parser.rows(); ++r) {
    const auto part = [&](auto& starts, auto& array) {
      const auto from = static_cast<std::size_t>(starts.data()[r]), to = static_cast<std::size_t>(starts.data()[r + 1]);
      return std::span(array.data() + from, to - from);
    };
    if (parser.targets.size() > 0) out.append(std::to_string(parser.targets.data()[r])).append("|");
    print_row(part(parser.y_starts, parser.y_ids), part(parser.x_starts, parser.x_ids),
              part(parser.x_starts, parser.x_values), out);
  }
  return out;
}

std::string parsed(std::string_view text, const RowFormat& format = {}) {
  RowParser parser(format, false, 1);
  const auto heap = on_heap(text);
  if (!parser.feed({heap.data(), heap.size()}) || !parser.finish())
    return std::string("line ").append(std::to_string(parser.bad()[0].line)).append(": ").append(parser.bad()[0].found);
  return printed(parser);
}

} // namespace

TEST(lines_become_rows) {
  CHECK(parsed("3,1,3 5:0.5 2:1e-3\n\n7 0:-2\r\n 1:1") == "1,3 2:0.001 5:0.5\n\n7 0:-2\n 1:1\n");
  CHECK(parsed("0:1 4:2\n") == " 0:1 4:2\n"); // a row without labels
  const RowFormat svm{.svmlight = true, .targets = true};
  CHECK(parsed("# head\n -1.5 1:2 # x\n\n2 \n", svm) == "-1.500000| 1:2\n2.000000|\n");
  CHECK(parsed("1 2:3\n  \n\n", {.rows = 1}) == "1 2:3\n");
}

TEST(values_are_the_nearest_float_to_the_nearest_double) {
  for (const char* text : {"0.1", "1e39", "16777217", "123456789012345678901234567890", "0.000000000000000000000000001",
                           "1e-400", "2.5e-324", "9007199254740993", "1.00000005960464477539", "+4", "5.", ".5"}) {
    const double expected = std::strtod(text, nullptr);
    const std::string line = std::string("0:") + text + "\n";
    RowParser parser({}, false, 1);
    const bool good = parser.feed(line);
    CLAIM(good == (std::fabs(expected) < 3.5e38), text);
    if (good) CHECK(parser.x_values.data()[0] == static_cast<float>(expected));
  }
}

TEST(a_bad_line_is_described_and_leaves_no_trace) {
  const RowFormat small{.features = 10, .labels = 5};
  CHECK(parsed("1 2:3\n9 1:1\n", small) == "line 2: 9");
  CHECK(parsed("1 10:3\n", small) == "line 1: 10:3");
  CHECK(parsed("1 2:x\n", small) == "line 1: 2:x");
  CHECK(parsed("1 2:1e\n", small) == "line 1: 2:1e");
  CHECK(parsed("1 2\n", small) == "line 1: 2");
  CHECK(parsed("1 2:1 2:3\n", small) == "line 1: feature 2 twice");
  CHECK(parsed("1,\xff\n", small) == "line 1: 1,?");
  CHECK(parsed("1 2:3\n1 1:1\n", {.rows = 1}) == "line 2: 1");
  CHECK(parsed("x 1:1\n", {.targets = true}) == "line 1: x");
  CHECK(parsed("1 1:1e99\n") == "line 1: 1:1e99");
  RowParser skipping(small, true, 1);
  CHECK(skipping.feed("1 2:3\n7 1:1\n2 4:4 4:5\n3 1:2\n"));
  CHECK(skipping.bad_lines() == 2 && skipping.seen() == 4);
  CHECK(printed(skipping) == "1 2:3\n3 1:2\n");
}

TEST(any_bytes_can_be_parsed_in_any_pieces) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random.chance(0.5)
                                 ? random_bytes(random, 300, "0123456789,::.. \n\n-eE#\r")
                                 : damaged(random, "1,2 3:0.25 7:1e-3\n\n4 1:1 9:12345678901234567890\n5 1:1#c\n");
    const RowFormat format{random.chance(0.5), random.chance(0.5), ~0ull, 1000, 1000};
    RowParser whole(format, true, 1), pieces(format, true, 1);
    const auto heap = on_heap(text);
    CHECK(whole.feed({heap.data(), heap.size()}) && whole.finish());
    for (std::size_t at = 0; at < text.size();) {
      const auto piece = on_heap(std::string_view(text).substr(at, random.between(1, 20)));
      CHECK(pieces.feed({piece.data(), piece.size()}));
      at += piece.size();
    }
    CHECK(pieces.finish());
    CHECK(whole.bad_lines() == pieces.bad_lines());
    CHECK(printed(whole) == printed(pieces));
  }
}

TEST(printed_values_read_back) {
  Random random;
  for (int round = 0; round < 40000; ++round) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    if (!std::isfinite(value)) continue;
    std::string text;
    print_value(value, text);
    text += '\n';
    const char* p = text.data();
    double read = 0;
    CHECK(detail::parse_number(p, text.data() + text.size() - 1, read) && *p == '\n');
    CHECK(static_cast<float>(read) == value);
  }
}

TEST(a_grown_array_moves_with_its_memory) {
  Grown<std::int32_t> from;
  for (std::int32_t i = 0; i < 100; ++i) from.expect(1), from.put(i);
  Grown<std::int32_t> to = std::move(from);
  CHECK(to.size() == 100 && to.data()[99] == 99);
  std::int32_t* const memory = to.release();
  CHECK(to.size() == 0 && to.data() == nullptr);
  std::free(memory);
}

TEST(a_line_that_is_too_long_is_named_by_its_own_number) {
  RowParser parser({}, false, 1, 16);
  CHECK(parser.feed("0 1:1\n0 1:1\n"));
  CHECK(!parser.feed("0 1:1 2:1 3:1 4:1 5:1"));
  CHECK(parser.bad()[0].line == 3);
}
