// compact.hpp and feature_numbers.hpp: halves and bytes decode as they should, and features are numbered once each.
#include <cmath>
#include <limits>

#include "beamwood/layout/feature_numbers.hpp"
#include "forests.hpp"

using namespace check;

namespace {

// What a half stands for, spelled out.
double value_of_half(std::uint32_t half) {
  const std::uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, int(exponent) - 25);
  return half >> 15 ? -size : size;
}

} // namespace

TEST(every_half_decodes_to_what_it_stands_for_and_comes_back) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const float found = half_to_float(static_cast<std::uint16_t>(half));
    if ((half & 0x7fffu) >= 0x7c00u) {
      CHECK(!std::isfinite(found));
      continue;
    }
    CHECK(double{found} == value_of_half(half) && std::signbit(found) == (half >> 15 != 0));
    CHECK(half_from_float(found) == half);
  }
}

TEST(floats_become_the_nearest_half_and_ties_go_to_even) {
  for (std::uint32_t half = 0; half < 0x7bffu; ++half) {
    const double low = value_of_half(half), high = value_of_half(half + 1);
    const auto middle = static_cast<float>((low + high) / 2); // exact: halves have 11 bits, floats 24
    CHECK(half_from_float(middle) == (half % 2 == 0 ? half : half + 1));
    CHECK(half_from_float(std::nextafter(middle, 0.0f)) == half);
    CHECK(half_from_float(-std::nextafter(middle, 1e9f)) == (0x8000u | (half + 1)));
  }
  CHECK(half_from_float(1e30f) == 0x7bffu && half_from_float(-std::numeric_limits<float>::max()) == 0xfbffu);
}

TEST(bytes_are_off_by_half_a_step_at_most) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    const float size = std::ldexp(1.0f, static_cast<int>(random.between(0, 230)) - 105);
    std::vector<float> weights(random.between(1, 40));
    float largest = 0;
    for (float& w : weights) largest = std::max(largest, std::fabs(w = random.number() * size));
    if (std::isinf(largest)) continue;
    const WeightCode code{WeightKind::u8, scale_for(largest)};
    std::vector<std::uint32_t> words(weight_words(WeightKind::u8, weights.size()));
    for (std::size_t i = 0; i < weights.size(); ++i) encode(code, words.data(), i, weights[i]);
    for (std::size_t i = 0; i < weights.size(); ++i)
      CHECK(std::fabs(double{decode(code, words.data(), i)} - weights[i]) <= 0.5001 * double{code.scale});
  }
  const float most = std::numeric_limits<float>::max();
  CHECK(std::isfinite(127.0f * scale_for(most)) && scale_for(0) > 0 && scale_for(most) > 0.99f * (most / 127));
}

// The chunks of a compact tree, found again from its threads, give the same answers as the threads do.
TEST(compact_cascades_and_the_chunks_made_from_them_agree) {
  Random random;
  for (int round = 0; round < 120; ++round) {
    Plan plan;
    plan.most_width = round % 3 == 0 ? 40 : 9;
    plan.layers = random.between(1, 3);
    const OwnedForest own(plain_forest(random, plan), round % 2 ? WeightKind::u8 : WeightKind::f16);
    const Forest cascade = own.view(Layout::cascade);
    OwnedForest chunked = own;
    std::vector<OwnedLayer> again;
    CHECK(chunks_again(cascade.trees[0], again, 1 + round % 2));
    for (std::size_t l = 0; l < again.size(); ++l) {
      OwnedLayer& layer = chunked.trees[0][l];
      layer.row_start = again[l].row_start;
      layer.word_start = again[l].word_start;
      layer.feature = again[l].feature;
      layer.offset = again[l].offset;
      layer.words = again[l].words;
      layer.index = hash_indices(layer.row_start, layer.feature);
    }
    const Rows rows(random, 4, plan.features, 0.5);
    SearchOptions options;
    options.choose = false;
    options.matcher = Matcher::hash;
    const Answers expected = search(chunked.view(Layout::chunk), rows.queries(), options);
    CHECK(expected.sound);
    for (const Isa isa : isas_here()) {
      options.isa = isa;
      CHECK(search(cascade, rows.queries(), options) == expected);
    }
  }
}

TEST(features_are_numbered_in_the_order_they_are_met) {
  Random random;
  FeatureNumbers numbers;
  for (int round = 0; round < 60; ++round) {
    numbers.clear();
    std::map<std::uint32_t, std::uint32_t> expected;
    for (std::uint32_t i = random.between(0, round % 10 ? 900 : 30000); i > 0; --i) {
      const std::uint32_t feature = round % 2 ? random.between(0, 500) : static_cast<std::uint32_t>(random.next());
      const auto found = expected.try_emplace(feature, static_cast<std::uint32_t>(expected.size())).first;
      CHECK(numbers[feature] == found->second);
    }
    CHECK(numbers.features().size() == expected.size());
    for (const auto& [feature, number] : expected) CHECK(numbers.features()[number] == feature);
  }
}
