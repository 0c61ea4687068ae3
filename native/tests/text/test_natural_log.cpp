// natural_log.hpp: the double nearest to the logarithm, by sums, products and quotients only.
#include "beamwood/text/natural_log.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "check.hpp"

using namespace check;
using namespace beamwood;

TEST(known_logarithms_are_rounded_right) {
  CHECK(natural_log(1) == 0);
  CHECK(natural_log(2) == 0x1.62e42fefa39efp-1);
  CHECK(natural_log(3) == 0x1.193ea7aad030bp+0);
  CHECK(natural_log(10) == 0x1.26bb1bbb55516p+1);
  // Where a C library was seen to be a unit off; worked out with 50 digits.
  CHECK(natural_log(9170) == 9.12369256525051);
  CHECK(natural_log(136837) == 11.826545715437012);
  CHECK(natural_log(141614) == 11.86086032541093);
}

TEST(logarithms_of_counts_and_shares_are_those_of_the_library_but_for_a_unit) {
  for (std::uint32_t i = 1; i < 300000; ++i) {
    for (const double x : {static_cast<double>(i), 1 + i * 1e-5}) {
      const double ours = natural_log(x), theirs = std::log(x);
      const bool near = ours >= std::nextafter(theirs, -1e9) && ours <= std::nextafter(theirs, 1e9);
      CHECK(near);
      CHECK(static_cast<float>(1 + ours) == static_cast<float>(1 + theirs));
    }
  }
}

TEST(what_has_no_logarithm_stays_what_it_is) {
  CHECK(natural_log(0) == 0);
  CHECK(std::isnan(natural_log(std::numeric_limits<double>::quiet_NaN())));
  CHECK(std::isinf(natural_log(std::numeric_limits<double>::infinity())));
}
