// order.hpp and topk.hpp: one total order of scores and ids.
#include <cmath>

#include "beamwood/sink/topk.hpp"
#include "forests.hpp"

using namespace check;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
} // namespace

TEST(keys_rise_as_scores_fall) {
  const float falling[] = {kInf, 3e38f, 1.0f, 0x1p-126f, 1e-45f, 0.0f, -1e-45f, -0x1p-126f, -1.0f, -3e38f, -kInf, kNan};
  for (std::size_t i = 0; i + 1 < std::size(falling); ++i) CHECK(key_of(falling[i], 9) < key_of(falling[i + 1], 3));
}

TEST(equal_scores_are_ordered_by_id) {
  for (const float score : {0.0f, 1.0f, -1.0f, -kInf, kInf, kNan}) {
    CHECK(key_of(score, 0) < key_of(score, 1));
    CHECK(key_of(score, 7) < key_of(score, 0xfffffffeu));
  }
}

TEST(every_nan_is_the_same_and_last) {
  const auto negative = std::bit_cast<float>(0xffc00001u), signalling = std::bit_cast<float>(0x7f800001u);
  CHECK(key_of(negative, 4) == key_of(kNan, 4));
  CHECK(key_of(signalling, 4) == key_of(kNan, 4));
  CHECK(key_of(-kInf, 0xfffffffeu) < key_of(negative, 0));
  CHECK(key_of(kNan, 0xfffffffeu) < kWorstKey);
}

TEST(a_key_gives_back_its_score_and_id) {
  Random random;
  for (int i = 0; i < 10000; ++i) {
    const auto score = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    const auto id = static_cast<std::uint32_t>(random.next());
    const Key key = key_of(score, id);
    CHECK(id_of(key) == id);
    if (std::isnan(score)) CHECK(std::isnan(score_of(key)));
    else CHECK(std::bit_cast<std::uint32_t>(score_of(key)) == std::bit_cast<std::uint32_t>(score));
  }
}

TEST(key_order_is_the_plain_order_of_candidates) {
  Random random;
  const float some[] = {0.0f, 1.0f, -1.0f, 0.5f, kInf, -kInf, kNan, 1e-45f};
  for (int i = 0; i < 20000; ++i) {
    const Candidate a{random.below(4), some[random.below(8)]}, b{random.below(4), some[random.below(8)]};
    CHECK((key_of(a.score, a.id) < key_of(b.score, b.id)) == ranks_before(a, b));
  }
}

TEST(topk_keeps_the_best_of_any_stream) {
  Random random;
  TopK keeper;
  for (const std::size_t n : {1u, 2u, 10u, 48u, 49u, 100u}) {
    for (const std::size_t offered : {0u, 1u, 9u, 10u, 11u, 300u, 5000u}) {
      std::vector<Key> all;
      for (std::size_t i = 0; i < offered; ++i)
        all.push_back(key_of(random.chance(0.1) ? kNan : random.number(), static_cast<std::uint32_t>(i)));
      keeper.reset(n);
      for (const Key key : all) keeper.offer(key);
      std::sort(all.begin(), all.end());
      all.resize(std::min(n, all.size()));
      CHECK(keeper.ranked() == all);
    }
  }
}
