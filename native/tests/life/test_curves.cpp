// Curves in, probabilities out: level at the ends, straight in between, one curve per group of ranks.
#include <array>
#include <limits>

#include "beamwood/life/curves.hpp"
#include "check.hpp"

using namespace beamwood;

TEST(curves_are_straight_between_knots_and_level_beyond) {
  const std::array<std::uint32_t, 2> ranks{0, 2};
  const std::array<float, 3> scores{0.0f, 1.0f, 3.0f};
  const std::array<float, 6> probabilities{0.2f, 0.4f, 0.8f, 0.0f, 0.25f, 0.5f};
  const Curves curves{ranks, scores, probabilities};
  const float infinite = std::numeric_limits<float>::infinity();
  CLAIM(curves.at(0, -5.0f) == 0.2f && curves.at(0, 0.0f) == 0.2f, "below");
  CLAIM(curves.at(1, 1.0f) == 0.4f && curves.at(1, 2.0f) == 0.6f, "the first group has two ranks");
  CLAIM(curves.at(2, 0.5f) == 0.125f && curves.at(99, 2.0f) == 0.375f, "the last one has all that follow");
  CLAIM(curves.at(0, 3.0f) == 0.8f && curves.at(0, infinite) == 0.8f, "above");
  CLAIM(curves.at(0, -infinite) == 0.0f && curves.at(0, std::numeric_limits<float>::quiet_NaN()) == 0.0f, "no answer");
  CLAIM(Curves{}.empty() && !curves.empty(), "empty");
}
