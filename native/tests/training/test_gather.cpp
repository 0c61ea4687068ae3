// gather.hpp: a parent's rows, renumbered, are its rows; the scratch memory is blank afterwards.
#include "problems.hpp"

using namespace check;
using namespace beamwood;

namespace {

struct Parent {
  Sparse x;
  std::vector<std::int32_t> reaching;
  std::vector<std::vector<std::int32_t>> positives;
};

Parent random_parent(Random& random) {
  Parent parent{random_sparse(random, random.between(1, 40), random.between(1, 50), random.between(0, 8)), {}, {}};
  for (std::size_t r = 0; r < parent.x.lines(); ++r)
    if (random.chance(0.6)) parent.reaching.push_back(static_cast<std::int32_t>(r));
  for (int child = 0; child < 3; ++child) {
    auto& rows = parent.positives.emplace_back();
    for (std::size_t r = 0; r < parent.x.lines(); ++r)
      if (random.chance(0.2)) rows.push_back(static_cast<std::int32_t>(r));
  }
  return parent;
}

Gathered gathered(Gatherer& gatherer, const Parent& parent, std::uint64_t seed) {
  const std::vector<std::span<const std::int32_t>> positives(parent.positives.begin(), parent.positives.end());
  Gathered out;
  gatherer.gather(parent.x.view(), parent.x.width, parent.reaching, positives, seed, out);
  for (std::size_t i = 0; i < out.rows(); ++i) CHECK(gatherer.local_row(out.row[i]) == i);
  gatherer.forget(out);
  return out;
}

// Row i as (feature of X → value), read back from the shared entries and the lone features.
std::map<std::int32_t, float> read_back(const Gathered& rows, std::size_t i) {
  std::map<std::uint32_t, std::uint32_t> feature_of;
  for (std::size_t f = 0; f < rows.feature.size(); ++f) feature_of[rows.number[f]] = rows.feature[f];
  std::map<std::int32_t, float> entries;
  for (auto e = rows.start[i]; e < rows.start[i + 1]; ++e)
    entries[static_cast<std::int32_t>(feature_of[rows.entry[e].feature])] = rows.entry[e].value;
  for (std::size_t l = 0; l < rows.lone.size(); ++l)
    if (rows.lone[l].row == i)
      entries[static_cast<std::int32_t>(feature_of[static_cast<std::uint32_t>(rows.shared + l)])] = rows.lone[l].value;
  return entries;
}

} // namespace

TEST(gathered_rows_are_the_rows_of_x) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const Parent parent = random_parent(random);
    Gatherer gatherer;
    const Gathered rows = gathered(gatherer, parent, 7);
    std::set<std::int32_t> expected(parent.reaching.begin(), parent.reaching.end());
    for (const auto& child : parent.positives) expected.insert(child.begin(), child.end());
    CHECK(std::set<std::int32_t>(rows.row.begin(), rows.row.end()) == expected);
    CHECK(rows.row.size() == expected.size());
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      CHECK(read_back(rows, i) == parent.x.line(static_cast<std::size_t>(rows.row[i])));
      CHECK(rows.reaches[i] == std::ranges::count(parent.reaching, rows.row[i]));
    }
  }
}

TEST(shared_features_come_first_the_most_frequent_ahead) {
  Random random;
  for (int round = 0; round < 100; ++round) {
    const Parent parent = random_parent(random);
    Gatherer gatherer;
    const Gathered rows = gathered(gatherer, parent, 7);
    std::vector<std::size_t> times(rows.shared, 0);
    for (const Entry& e : rows.entry) ++times[e.feature];
    for (std::size_t n = 0; n < times.size(); ++n) {
      CHECK(times[n] > 1);
      CHECK(n == 0 || times[n - 1] >= times[n]);
    }
    CHECK(rows.lone.size() == rows.feature.size() - rows.shared);
  }
}

TEST(a_gatherer_remembers_nothing_and_the_seed_draws_the_order) {
  Random random;
  Gatherer used;
  for (int round = 0; round < 100; ++round) {
    const Parent parent = random_parent(random);
    Gatherer fresh;
    const Gathered a = gathered(used, parent, 3), b = gathered(fresh, parent, 3);
    CHECK(a.row == b.row && a.number == b.number && a.start == b.start && a.feature == b.feature);
    Gatherer other;
    const Gathered c = gathered(other, parent, 4);
    CHECK(a.row.size() < 10 || a.row != c.row);
  }
}
