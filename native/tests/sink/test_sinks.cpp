// sinks.hpp: the sums of several trees, of labels as they come.
#include <cmath>
#include <map>

#include "forests.hpp"

using namespace check;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The law as it is written, nothing left out.
std::vector<Key> all_sums(const std::vector<Answer>& answers, std::size_t trees, std::size_t k) {
  std::map<std::uint32_t, float> sum;
  for (const Answer& a : answers) {
    const auto [at, fresh] = sum.try_emplace(a.label, 0.0f);
    at->second += a.score;
  }
  std::vector<Key> keys;
  for (const auto& [label, score] : sum) keys.push_back(key_of(score / static_cast<float>(trees) + 0.0f, label));
  std::sort(keys.begin(), keys.end());
  keys.resize(std::min(keys.size(), k));
  return keys;
}

float drawn(Random& random, int kind) {
  const auto unit = static_cast<float>(random.next() >> 40) * 0x1p-24f;
  switch (kind) {
  case 0: return unit;
  case 1: return std::exp(-20.0f * unit);                   // few large, most tiny
  case 2: return static_cast<float>(random.next() % 3) / 2; // many ties, many zeros
  case 3: return unit - 0.5f;
  case 4: return unit * 1e-44f;
  default: return random.next() % 50 ? unit : (random.next() % 2 ? kNan : kInf);
  }
}
} // namespace

TEST(labels_of_several_trees_are_summed_in_tree_order) {
  Random random;
  SumOfAnswers sum; // one for all: it grows, and forgets
  for (int round = 0; round < 1200; ++round) {
    const int kind = round % 6;
    const std::size_t trees = 2 + random.next() % 5, k = 1 + random.next() % 12;
    const std::size_t labels = 1 + random.next() % (round % 2 ? 3000 : 60);
    std::vector<Answer> answers;
    for (std::size_t t = 0; t < trees; ++t)
      for (std::uint32_t label = 0; label < labels; ++label)
        if (random.next() % 4) answers.push_back({label * 7919u % 1000003u, drawn(random, kind)});
    sum.run(answers, trees, static_cast<std::uint32_t>(k));
    CHECK(sum.best.ranked() == all_sums(answers, trees, k));
  }
}
