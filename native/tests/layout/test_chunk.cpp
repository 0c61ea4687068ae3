// chunk.hpp and column.hpp: from columns to chunks and back, bit for bit, at every width; damaged arrays are reported.
#include "forests.hpp"

using namespace check;

namespace {

PlainLayer one_chunk(Random& random, std::uint32_t width, std::uint32_t features, double density) {
  PlainLayer layer;
  layer.child_start = {0, width};
  layer.label.resize(width);
  std::iota(layer.label.begin(), layer.label.end(), 0u);
  for (std::uint32_t node = 0; node < width; ++node) {
    auto& column = layer.column.emplace_back();
    for (std::uint32_t f = 0; f < features; ++f)
      if (random.chance(density)) column[f] = random.chance(0.1) ? -0.0f : random.number();
  }
  return layer;
}

// owned_layer goes through chunks to columns: what comes out must be what went in.
bool round_trip(const PlainLayer& plain, std::uint32_t features, unsigned threads) {
  const OwnedLayer own = owned_layer(plain, features, threads);
  const CscArrays csc(plain);
  return std::equal(csc.start.begin(), csc.start.end(), own.column_start.begin(), own.column_start.end(),
                    [](std::int64_t a, std::uint64_t b) { return static_cast<std::uint64_t>(a) == b; }) &&
         std::equal(csc.feature.begin(), csc.feature.end(), own.column_feature.begin(), own.column_feature.end(),
                    [](std::int32_t a, std::uint32_t b) { return static_cast<std::uint32_t>(a) == b; }) &&
         same_bits(csc.weight, own.column_weight);
}

// A small sound layer of two chunks (mask records, then wide ones) to be damaged.
OwnedLayer sound_layer(std::uint32_t width) {
  Random random;
  PlainLayer plain = one_chunk(random, 2 * width, 20, 0.5);
  plain.child_start = {0, width, 2 * width};
  return owned_layer(plain, 20);
}

bool readable(const OwnedLayer& layer) {
  std::vector<std::uint64_t> start(layer.nodes + std::size_t{1});
  return measure_columns(layer.shape(), layer.source(20), start, Workers{2});
}

} // namespace

TEST(columns_come_back_bit_for_bit_at_every_width) {
  Random random;
  for (const std::uint32_t width : {1u, 2u, 7u, 8u, 9u, 16u, 17u, 31u, 32u, 33u, 34u, 64u, 257u, 1000u})
    for (const unsigned threads : {1u, 2u}) {
      CHECK(round_trip(one_chunk(random, width, 30, 0.3), 30, threads));
      CHECK(round_trip(one_chunk(random, width, 30, 1.0), 30, threads)); // full rows
      CHECK(round_trip(one_chunk(random, width, 30, 0.0), 30, threads)); // no weights at all
    }
  CHECK(round_trip(one_chunk(random, kMaxWidth, 3, 0.5), 3, 1));
}

TEST(trees_come_back_bit_for_bit) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    Plan plan;
    plan.most_width = random.chance(0.5) ? 6 : 40;
    const PlainForest forest = plain_forest(random, plan);
    for (const PlainLayer& layer : forest.trees[0]) CHECK(round_trip(layer, plan.features, 2));
  }
}

TEST(rows_of_a_chunk_rise_and_the_words_end_with_zeros) {
  Random random;
  const OwnedLayer own = owned_layer(one_chunk(random, 40, 50, 0.4), 50);
  CHECK(std::is_sorted(own.feature.begin(), own.feature.end()));
  CHECK(std::adjacent_find(own.feature.begin(), own.feature.end()) == own.feature.end());
  CHECK(std::all_of(own.words.end() - kTailWords, own.words.end(), [](std::uint32_t w) { return w == 0; }));
}

TEST(offsets_that_leave_the_arrays_are_reported) {
  for (const std::uint32_t width : {8u, 40u}) {
    CHECK(readable(sound_layer(width)));
    const auto broken = [&](auto&& damage) {
      OwnedLayer layer = sound_layer(width);
      damage(layer);
      return !readable(layer);
    };
    const std::uint64_t huge[] = {1u << 20,  0xffffffffu, 1ull << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 63,
                                  1ull << 63};
    for (const std::uint64_t value : huge)
      for (const std::size_t at : {0u, 1u, 2u}) {
        CHECK(broken([&](OwnedLayer& l) { l.row_start[at] = value; }));
        CHECK(broken([&](OwnedLayer& l) { l.word_start[at] = value; }));
        CHECK(broken([&](OwnedLayer& l) { l.child_start[at] = static_cast<std::uint32_t>(value); }) ||
              value >> 32 != 0);
      }
    CHECK(broken([](OwnedLayer& l) { l.offset[3] = 0xffffffffu; }));
    CHECK(broken([](OwnedLayer& l) { l.offset[3] = static_cast<std::uint32_t>(l.word_start[1]); }));
    CHECK(broken([](OwnedLayer& l) { std::swap(l.child_start[1], l.child_start[2]); }));
  }
  OwnedLayer wide = sound_layer(40);
  wide.words[wide.offset[0]] = 0xffffffffu; // a record that claims four billion weights
  CHECK(!readable(wide));
}

TEST(a_chunk_wider_than_the_limit_is_reported) {
  LayerShape shape;
  const std::vector<std::uint32_t> child_start{0, kMaxWidth + 1};
  shape.nodes = kMaxWidth + 1;
  shape.child_start = child_start;
  Siblings siblings;
  CHECK(!shape.children(0, siblings));
}
