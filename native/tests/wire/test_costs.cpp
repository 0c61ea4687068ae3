// costs.hpp: an estimate follows the median of its kind; long texts and many hits are more units of work.
#include "beamwood/wire/costs.hpp"
#include "check.hpp"

using namespace check;
using namespace beamwood;

TEST(an_estimated_cost_follows_the_median) {
  Costs costs;
  const std::size_t kind = costs.add();
  CHECK(costs.size() == 1);
  CHECK(costs.of(kind, 30) == Costs::untimed);
  costs.learn(kind, 9e5);
  Random random;
  for (int round = 0; round < 2000; ++round) costs.learn(kind, random.chance(0.1) ? 1e7 : 1e4);
  CHECK(costs.of(kind, 1) > 5e3); // one in ten that takes far longer does not matter
  CHECK(costs.of(kind, 1) < 2e4);
}

TEST(the_first_time_of_a_kind_is_not_believed_before_the_second) {
  Costs costs;
  const std::size_t cold = costs.add(), slow = costs.add();
  costs.learn(cold, 1e8); // code that was not loaded yet
  CHECK(costs.of(cold, 1) == Costs::untimed);
  costs.learn(cold, 1e4);
  CHECK(costs.of(cold, 3) == 3e4);
  costs.learn(slow, 2e7);
  costs.learn(slow, 3e7);
  CHECK(costs.of(slow, 1) == 2e7);
}

TEST(units_of_work_grow_with_queries_bytes_and_hits) {
  const double one = Costs::units(1, 0, 0);
  CHECK(Costs::units(2, 0, 0) > one);
  CHECK(Costs::units(1, 1000, 0) > one);
  CHECK(Costs::units(1, 0, 100) > one);
}
