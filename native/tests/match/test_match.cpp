// match_*.hpp: four ways to intersect two supports, one result; and none leaves memory when a support is damaged.
#include <functional>
#include <set>

#include "forests.hpp"

using namespace check;

namespace {

struct OwnedQuery {
  std::vector<std::uint32_t> feature;
  std::vector<float> value;

  OwnedQuery(Random& random, std::uint32_t count, std::uint32_t dimension) {
    std::set<std::uint32_t> chosen;
    while (chosen.size() < std::min(count, dimension)) chosen.insert(random.below(dimension));
    feature.assign(chosen.begin(), chosen.end());
    for (std::size_t i = 0; i < feature.size(); ++i) value.push_back(random.number());
    trim(value);
  }
  Query view() const { return {feature.data(), value.data(), static_cast<std::uint32_t>(feature.size())}; }
};

struct OwnedSupport {
  std::vector<std::uint32_t> feature, words;

  Support view() const {
    return {feature.data(), static_cast<std::uint32_t>(feature.size()), words.data(), words.size()};
  }
  void index() {
    words.assign(index_begin(feature.size(), 1), 0);
    fill_index(feature.data(), static_cast<std::uint32_t>(feature.size()), words.data(), words.size());
  }
};

// The matches of each matcher; room for one more than the query has features, as BlockRunner gives.
std::vector<Match> matches_of(Matcher matcher, const Query& query, const Support& support, std::uint32_t dimension) {
  std::vector<Match> out(query.count + std::size_t{1});
  std::uint32_t found = 0;
  DenseLookup lookup;
  switch (matcher) {
  case Matcher::march: found = match_march(query, support, out.data()); break;
  case Matcher::binary: found = match_binary(query, support, out.data()); break;
  case Matcher::hash: found = match_hash(query, support, out.data()); break;
  case Matcher::dense:
    lookup.prepare(dimension);
    if (lookup.enter(support, std::identity{})) {
      found = lookup.match(query, out.data());
      lookup.leave(support);
      std::vector<Match> again(query.count + std::size_t{1});
      CHECK(lookup.match(query, again.data()) == 0); // empty between chunks
    }
    break;
  }
  CHECK(found <= query.count);
  out.resize(found);
  return out;
}

bool same(const std::vector<Match>& a, const std::vector<Match>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Match& x, const Match& y) { return x.row == y.row && x.value == y.value; });
}

} // namespace

TEST(every_matcher_finds_the_common_features_in_rising_order) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t dimension = random.between(1, 400);
    const OwnedQuery query(random, random.below(dimension + 1), dimension);
    OwnedSupport support{OwnedQuery(random, random.below(dimension + 1), dimension).feature, {}};
    support.index();
    std::vector<Match> expected;
    for (std::size_t i = 0; i < query.feature.size(); ++i) {
      const auto at = std::find(support.feature.begin(), support.feature.end(), query.feature[i]);
      if (at != support.feature.end())
        expected.push_back({static_cast<std::uint32_t>(at - support.feature.begin()), query.value[i]});
    }
    for (const Matcher matcher : kMatchers)
      CHECK(same(matches_of(matcher, query.view(), support.view(), dimension), expected));
  }
}

TEST(marching_in_strides_finds_the_same) {
  Random random;
  for (int round = 0; round < 500; ++round) {
    const OwnedQuery few(random, random.below(20), 3000), many(random, random.between(200, 2000), 3000);
    OwnedSupport long_one{many.feature, {}}, short_one{few.feature, {}};
    long_one.index();
    short_one.index();
    for (const Matcher matcher : kMatchers) {
      CHECK(same(matches_of(matcher, few.view(), long_one.view(), 3000),
                 matches_of(Matcher::dense, few.view(), long_one.view(), 3000)));
      CHECK(same(matches_of(matcher, many.view(), short_one.view(), 3000),
                 matches_of(Matcher::dense, many.view(), short_one.view(), 3000)));
    }
  }
}

TEST(matchers_stay_inside_damaged_supports) {
  Random random;
  for (int round = 0; round < 5000; ++round) {
    const std::uint32_t dimension = random.between(1, 100);
    const OwnedQuery query(random, random.below(dimension + 1), dimension);
    OwnedSupport support{std::vector<std::uint32_t>(random.below(120)), {}};
    for (std::uint32_t& f : support.feature) // unsorted, doubled, now and then outside
      f = random.chance(0.05) ? static_cast<std::uint32_t>(random.next()) : random.below(dimension);
    support.index();
    for (std::uint32_t& word : support.words) // an index may say anything, and no slot may be empty
      if (random.chance(0.2)) word = static_cast<std::uint32_t>(random.next());
    if (random.chance(0.1)) std::fill(support.words.begin(), support.words.end(), 0xffffffffu);
    for (const Matcher matcher : kMatchers)
      for (const Match& match : matches_of(matcher, query.view(), support.view(), dimension))
        CHECK(match.row < support.feature.size());
  }
}

TEST(dense_reports_a_feature_outside_and_is_clean_afterwards) {
  Random random;
  const OwnedQuery query(random, 10, 10);
  const OwnedSupport damaged{{1, 3, 10}, {}}, honest{{2, 4}, {}};
  DenseLookup lookup;
  lookup.prepare(10);
  CHECK(!lookup.enter(damaged.view(), std::identity{}));
  CHECK(!lookup.enter(honest.view(), [](std::uint32_t j) { return j == 0 ? 0u : DenseLookup::kNowhere; }));
  CHECK(lookup.enter(honest.view(), std::identity{}));
  std::vector<Match> out(query.feature.size() + 1);
  CHECK(lookup.match(query.view(), out.data()) == 2);
  CHECK(out[0].row == 0 && out[1].row == 1);
}

TEST(a_hash_index_finds_every_row_of_large_supports) {
  Random random;
  for (const std::uint32_t rows : {1u, 2u, 3u, 255u, 256u, 257u, 70000u}) {
    const OwnedQuery all(random, rows, 1u << 24);
    OwnedSupport support{all.feature, {}};
    support.index();
    const HashIndex layout(rows, support.words.size());
    CHECK(std::find(support.words.begin() + layout.filter_words, support.words.end(), 0u) != support.words.end());
    CHECK(matches_of(Matcher::hash, all.view(), support.view(), 1u << 24).size() == rows);
  }
}
