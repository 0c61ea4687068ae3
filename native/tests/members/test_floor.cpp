// floor.hpp, members.hpp: what lies below a floor cannot win; answers are those of a search that looks at all labels.
#include "beamwood/members/floor.hpp"

#include <algorithm>
#include <numeric>

#include "beamwood/index/build_postings.hpp"
#include "beamwood/members/members.hpp"
#include "forests.hpp"

using namespace check;

namespace {

Head random_head(Random& random, std::span<const std::uint32_t> rows) {
  Head head;
  head.bias = random.chance(0.2) ? 12.0 : -static_cast<double>(random.below(5));
  head.trees = static_cast<double>(random.below(4)) * 0.25;
  head.words = static_cast<double>(random.below(5)) * (random.chance(0.2) ? 8.0 : 0.75);
  head.unlisted = -static_cast<double>(random.between(1, 12));
  const bool same = random.chance(0.5);
  head.rowless = same ? head.bias + head.trees * head.unlisted : -static_cast<double>(random.below(9));
  head.rowless_words = same ? head.words : static_cast<double>(random.below(6));
  head.candidates = 20, head.rows = rows;
  return head;
}

// Labels x features in, both as plain sums and as inverted lists. Weights are few numbers, so that sums tie.
struct Words {
  std::uint32_t labels, features;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> feature;
  std::vector<float> weight;
  BuiltPostings arrays;
  Forest forest;

  Words(Random& random, std::uint32_t labels_, std::uint32_t features_) : labels(labels_), features(features_) {
    for (std::uint32_t label = 0; label < labels; ++label) {
      for (std::uint32_t f = 0; f < features; ++f)
        if (random.chance(0.7 / (1 + f))) {
          feature.push_back(static_cast<std::int32_t>(f));
          weight.push_back(static_cast<float>(random.between(1, 4)) * (f > 3 ? 0.7f : 0.1f));
        }
      offsets.push_back(static_cast<std::int64_t>(feature.size()));
    }
    arrays = PostingsBuilder(offsets, feature, weight, features, WeightKind::f32).build({1});
    Postings& index = forest.postings;
    index.features = features, index.labels = forest.labels = labels, index.kind = WeightKind::f32;
    index.start = arrays.start, index.words = arrays.words, index.top = arrays.top, index.scale = arrays.scale;
    index.dense = arrays.dense, index.codes = arrays.codes, index.matched_only = true;
  }

  std::vector<float> sums(const Query& query) const {
    std::vector<float> out(labels);
    for (std::uint32_t label = 0; label < labels; ++label)
      for (std::uint32_t q = 0; q < query.count; ++q)
        for (auto i = static_cast<std::size_t>(offsets[label]); i < static_cast<std::size_t>(offsets[label + 1]); ++i)
          if (static_cast<std::uint32_t>(feature[i]) == query.feature[q]) out[label] += query.value[q] * weight[i];
    return out;
  }
};

struct Listed {
  std::vector<std::int64_t> labels;
  std::vector<float> scores;
};

// What the reference does: the whole lists of both, each label ranked by the head.
void check_answer(const Words& words, const Query& query, std::uint32_t k, std::uint32_t width, const Listed& listed,
                  const std::vector<std::int64_t>& labels, const std::vector<float>& scores,
                  const std::vector<std::uint8_t>* found) {
  const std::vector<float> sums = words.sums(query);
  const Head& head = words.forest.head;
  TopK by_words, expected;
  by_words.reset(width), expected.reset(k);
  float best = 0.0f;
  for (std::uint32_t label = 0; label < words.labels; ++label) {
    if (sums[label] > 0) by_words.offer(key_of(sums[label], label));
    if (head.has_rows(label)) best = std::max(best, sums[label]);
  }
  std::vector<std::uint8_t> by(words.labels);
  for (const Key key : by_words.ranked()) by[id_of(key)] |= kByWords;
  std::vector<double> evidence(words.labels, head.unlisted);
  for (std::size_t i = 0; i < listed.labels.size() && listed.labels[i] >= 0; ++i) {
    const auto label = static_cast<std::size_t>(listed.labels[i]);
    by[label] |= kByTrees, evidence[label] = evidence_of(head, Path::product, listed.scores[i]);
  }
  for (std::uint32_t label = 0; label < words.labels; ++label)
    if (by[label]) expected.offer(key_of(head_score(head, label, evidence[label], sums[label], best), label));
  const std::vector<Key>& ranked = expected.ranked();
  for (std::size_t i = 0; i < k; ++i) {
    CHECK(labels[i] == (i < ranked.size() ? static_cast<std::int64_t>(id_of(ranked[i])) : -1));
    if (i < ranked.size()) CHECK(scores[i] == score_of(ranked[i]));
    if (found && i < ranked.size()) CHECK((*found)[i] == by[id_of(ranked[i])]);
  }
}

} // namespace

TEST(a_label_below_the_floor_is_never_among_the_best) {
  Random random;
  WordFloor floor;
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t count = random.between(1, 20), k = random.between(1, count);
    std::vector<std::uint32_t> rows(count + 2);
    for (auto& one : rows) one = random.chance(0.2) ? 0 : 1;
    rows[count] = 1, rows[count + 1] = 0; // two labels that only the words may list
    const Head head = random_head(random, rows);
    std::vector<float> sums(count);
    std::vector<double> evidence(count);
    float least_best = 0.0f;
    for (std::uint32_t i = 0; i < count; ++i) {
      sums[i] = random.chance(0.2) ? 0.0f : 0.01f * static_cast<float>(random.below(300));
      evidence[i] = head.unlisted * (0.01 * static_cast<double>(random.below(101)));
      if (rows[i]) least_best = std::max(least_best, sums[i]);
    }
    if (!(least_best > 0.0f)) continue;
    const double most = static_cast<double>(least_best) * (1.0 + 0.1 * static_cast<double>(random.below(30)));
    floor.start(head, static_cast<double>(least_best), most);
    for (std::uint32_t i = 0; i < count; ++i) floor.add(i, evidence[i], static_cast<double>(sums[i]));
    const float least = floor.least(k, IndexSearch::kAnySum);
    CHECK(least <= least_best);
    for (const double part : {0.0, 0.3, 1.0}) { // wherever the best sum lies
      const auto best = static_cast<float>(static_cast<double>(least_best) + part * (most - least_best) * 0.999999);
      TopK ranked;
      ranked.reset(k);
      for (std::uint32_t i = 0; i < count; ++i)
        ranked.offer(key_of(head_score(head, i, evidence[i], sums[i], best), i));
      const float below = std::nextafter(least, 0.0f);
      for (const std::uint32_t label : {count, count + 1})
        if (below > 0.0f) CHECK(head_score(head, label, head.unlisted, below, best) < score_of(ranked.ranked().back()));
    }
  }
}

TEST(trees_and_words_answer_as_a_search_of_all_labels_does) {
  Random random;
  MemberSearch search;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t labels = round % 100 == 0 ? kTile + 300 : random.between(1, 900);
    Words words(random, labels, random.between(1, 9));
    std::vector<std::uint32_t> rows(labels, 1);
    if (random.chance(0.4))
      for (auto& one : rows) one = random.chance(0.3) ? 0 : 1;
    words.forest.head = random_head(random, rows);
    words.forest.activation.path = Path::product;
    std::vector<std::uint32_t> feature;
    std::vector<float> value;
    for (std::uint32_t f = 0; f < words.features; ++f)
      if (random.chance(0.7)) feature.push_back(f), value.push_back(random.chance(0.05) ? -1.0f : 1.5f);
    const Query query{feature.data(), value.data(), static_cast<std::uint32_t>(feature.size())};
    const std::uint32_t k = random.between(1, 30), width = std::min(std::max(k, 20u), labels);
    Listed listed{std::vector<std::int64_t>(width, -1), std::vector<float>(width)};
    for (std::uint32_t i = 0, next = 0; i < width && random.chance(0.97); ++i) {
      next += random.between(1, std::max(1u, labels / width));
      if (next >= labels) break;
      listed.labels[i] = next, listed.scores[i] = static_cast<float>(random.below(11)) * 0.1f;
    }
    for (const bool asked : {false, true}) {
      std::vector<std::int64_t> got(k);
      std::vector<float> scores(k);
      std::vector<std::uint8_t> found(k);
      CHECK(search.run(words.forest, query, k, width, nullptr, listed.labels.data(), listed.scores.data(), got.data(),
                       scores.data(), asked ? found.data() : nullptr));
      check_answer(words, query, k, width, listed, got, scores, asked ? &found : nullptr);
    }
  }
}
