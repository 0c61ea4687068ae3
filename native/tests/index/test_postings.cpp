// index/: inverted lists of random rows against plain sums, and damaged ones, which may answer anything but only inside.
#include <algorithm>
#include <numeric>

#include "beamwood/index/build_postings.hpp"
#include "beamwood/index/index_search.hpp"
#include "check.hpp"

using namespace beamwood;
using check::Random;

namespace {

struct Rows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> features;
  std::vector<float> weights;
};

// Some features are in nearly every row, some in few; weights are few numbers, so that sums tie.
Rows random_rows(Random& random, std::uint32_t labels, std::uint32_t features, bool negative) {
  Rows rows;
  const float unit = random.chance(0.1) ? 1e-43f : 0.3f; // also numbers that are hardly more than none
  for (std::uint32_t label = 0; label < labels; ++label) {
    for (std::uint32_t f = 0; f < features; ++f)
      if (random.chance(0.9 / (1 + f))) {
        rows.features.push_back(static_cast<std::int32_t>(f));
        const float weight = static_cast<float>(random.between(1, 3)) * unit;
        rows.weights.push_back(negative && random.chance(0.3) ? -weight : weight);
      }
    rows.offsets.push_back(static_cast<std::int64_t>(rows.features.size()));
  }
  return rows;
}

struct Built {
  BuiltPostings arrays;
  Postings index;

  Built(const Rows& rows, std::uint32_t features, WeightKind kind, unsigned threads)
      : arrays(PostingsBuilder(rows.offsets, rows.features, rows.weights, features, kind).build({threads})) {
    index.features = features, index.labels = static_cast<std::uint32_t>(rows.offsets.size() - 1), index.kind = kind;
    look();
  }
  void look() {
    index.start = arrays.start, index.words = arrays.words, index.top = arrays.top, index.scale = arrays.scale;
    index.dense = arrays.dense, index.codes = arrays.codes;
  }
};

std::vector<float> plain_sums(const Rows& rows, const Query& query) {
  std::vector<float> sums(rows.offsets.size() - 1);
  for (std::size_t label = 0; label < sums.size(); ++label)
    for (std::uint32_t q = 0; q < query.count; ++q)
      for (auto i = rows.offsets[label]; i < rows.offsets[label + 1]; ++i)
        if (static_cast<std::uint32_t>(rows.features[static_cast<std::size_t>(i)]) == query.feature[q])
          sums[label] += query.value[q] * rows.weights[static_cast<std::size_t>(i)];
  return sums;
}

struct Asked {
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  Query query{};

  Asked(Random& random, std::uint32_t features, bool negative) {
    for (std::uint32_t f = 0; f < features; ++f)
      if (random.chance(0.5)) {
        feature.push_back(f);
        value.push_back(static_cast<float>(random.between(1, 2)) * (negative && random.chance(0.3) ? -1.0f : 1.0f));
      }
    query = {feature.data(), value.data(), static_cast<std::uint32_t>(feature.size())};
  }
};

} // namespace

TEST(inverted_lists_answer_as_plain_sums_do) {
  Random random;
  IndexSearch search;
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t labels = round % 20 == 0 ? kTile + 700 : random.between(1, 2000),
                        features = random.between(1, 9);
    const bool negative = random.chance(0.3);
    const Rows rows = random_rows(random, labels, features, negative);
    const Built built(rows, features, WeightKind::f32, random.between(1, 3));
    const Asked asked(random, features, random.chance(0.2));
    const std::vector<float> sums = plain_sums(rows, asked.query);
    const std::uint32_t k = random.between(1, 60);
    CHECK(search.run(built.index, asked.query, k, nullptr, false));
    TopK expected;
    expected.reset(std::min(k, labels));
    for (std::uint32_t label = 0; label < labels; ++label) expected.offer(key_of(sums[label], label));
    CHECK(search.best().ranked() == expected.ranked());
    std::vector<std::uint32_t> all(labels);
    std::iota(all.begin(), all.end(), 0u);
    std::vector<float> scores(labels);
    CHECK(search.score(built.index, asked.query, all, scores.data()));
    CHECK(scores == sums);
    std::reverse(all.begin(), all.end()); // back through the tiles
    CHECK(search.score(all, scores.data()));
    std::reverse(scores.begin(), scores.end());
    CHECK(scores == sums);
    CHECK(search.run(k, nullptr, false) && search.best().ranked() == expected.ranked()); // lists stand at their ends
  }
}

TEST(known_sums_and_a_floor_change_no_answer_above_it) {
  Random random;
  IndexSearch search;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t labels = round % 40 == 0 ? kTile + 700 : random.between(1, 2000),
                        features = random.between(1, 9), k = random.between(1, 60);
    const Rows rows = random_rows(random, labels, features, random.chance(0.1));
    const Built built(rows, features, WeightKind::f32, 1);
    const Asked asked(random, features, false);
    const std::vector<float> sums = plain_sums(rows, asked.query);
    std::vector<Key> expected;
    std::vector<std::uint32_t> known;
    std::vector<float> known_sums;
    for (std::uint32_t label = 0; label < labels; ++label) {
      if (sums[label] > 0) expected.push_back(key_of(sums[label], label));
      if (random.chance(label % 7 == 0 ? 0.5 : 0.01)) known.push_back(label), known_sums.push_back(sums[label]);
    }
    std::sort(expected.begin(), expected.end());
    expected.resize(std::min<std::size_t>(expected.size(), k));
    const float middle = expected.empty() ? 1.0f : score_of(expected[random.below(expected.size())]);
    const float least = random.chance(0.5) ? middle : IndexSearch::kAnySum;
    CHECK(search.open(built.index, asked.query) && search.run(k, nullptr, true, least, {known, known_sums}));
    const auto below = [least](Key key) { return score_of(key) < least; };
    std::vector<Key> found = search.best().ranked();
    std::erase_if(found, below);
    std::erase_if(expected, below);
    CHECK(found == expected);
  }
}

TEST(labels_are_scored_in_any_order_of_tiles) {
  Rows rows; // the first feature is in the first tile only, the second in the other
  for (std::uint32_t label = 0; label < kTile + 9; ++label) {
    if (label == 3 || label == kTile + 5) rows.features.push_back(label > kTile), rows.weights.push_back(0.5f);
    rows.offsets.push_back(static_cast<std::int64_t>(rows.features.size()));
  }
  const Built built(rows, 2, WeightKind::f32, 1);
  const std::uint32_t features[] = {0, 1};
  const float values[] = {1.0f, 2.0f};
  const std::vector<std::uint32_t> labels{kTile + 5, 3, kTile + 5, 3};
  std::vector<float> scores(4);
  IndexSearch search;
  CHECK(search.score(built.index, {features, values, 2}, labels, scores.data()));
  CHECK(scores == (std::vector<float>{1.0f, 0.5f, 1.0f, 0.5f}));
}

TEST(inverted_lists_are_the_same_words_for_any_number_of_threads) {
  Random random;
  const Rows rows = random_rows(random, 3000, 9, true);
  for (const WeightKind kind : {WeightKind::f32, WeightKind::f16, WeightKind::u8}) {
    const Built one(rows, 9, kind, 1), four(rows, 9, kind, 4);
    CHECK(one.arrays.words == four.arrays.words && one.arrays.start == four.arrays.start);
    CHECK(one.arrays.top == four.arrays.top && one.arrays.scale == four.arrays.scale);
  }
}

TEST(vectors_add_up_codes_as_plain_loops_do) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t count = kTogether * random.between(1, 40), lists = random.between(0, 9);
    std::vector<std::vector<std::uint8_t>> codes(lists, std::vector<std::uint8_t>(count));
    std::vector<const std::uint8_t*> at;
    std::vector<std::uint16_t> factors;
    for (auto& list : codes) {
      for (auto& code : list) code = static_cast<std::uint8_t>(random.below(256));
      at.push_back(list.data());
      factors.push_back(static_cast<std::uint16_t>(random.below(60000 / lists)));
    }
    std::vector<std::uint16_t> expected(count), tops(count / kTogether);
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::uint32_t list = 0; list < lists; ++list)
        expected[i] = static_cast<std::uint16_t>(expected[i] + codes[list][i] * std::uint32_t{factors[list]} / 256);
    for (std::uint32_t i = 0; i < count; ++i) tops[i / kTogether] = std::max(tops[i / kTogether], expected[i]);
    for (const Isa isa : {Isa::scalar, best_isa()}) {
      const DenseKernels& kernels = *kDenseKernels.on(isa);
      std::vector<std::uint16_t> sums(count), largest(count / kTogether);
      kernels.add(at.data(), factors.data(), lists, count, sums.data());
      kernels.tops(sums.data(), count, largest.data());
      CHECK(sums == expected && largest == tops);
    }
  }
}

TEST(damaged_inverted_lists_are_never_followed_outside) {
  Random random;
  IndexSearch search;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t labels = round % 40 == 0 ? kTile + 700 : random.between(1, 2000),
                        features = random.between(1, 9);
    const Rows rows = random_rows(random, labels, features, random.chance(0.5));
    Built built(rows, features, static_cast<WeightKind>(random.below(3)), 1);
    for (std::uint32_t flips = random.between(1, 4); flips > 0; --flips) {
      if (random.chance(0.2)) {
        built.arrays.start[random.below(built.arrays.start.size())] =
            random.chance(0.5) ? random.next() : random.below(99);
      } else if (!built.arrays.words.empty()) {
        const std::size_t near = random.chance(0.5) ? 6 : built.arrays.words.size();
        built.arrays.words[random.below(std::min(near, built.arrays.words.size()))] =
            static_cast<std::uint16_t>(random.next());
      }
      built.arrays.top[random.below(features)] = random.number();
    }
    built.look();
    for (const bool negative : {false, true}) {
      const Asked asked(random, features, negative);
      if (search.run(built.index, asked.query, random.between(1, 60), nullptr, random.chance(0.5)))
        for (const Key key : search.best().ranked()) CHECK(id_of(key) < labels);
      const std::vector<std::uint32_t> some{0, labels - 1, labels / 2};
      std::vector<float> scores(some.size());
      search.score(built.index, asked.query, some, scores.data());
    }
  }
}
