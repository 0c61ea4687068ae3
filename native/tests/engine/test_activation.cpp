// activation.hpp: scores of single nodes against the C library in double, and the edges that the laws rest on.
#include <cmath>

#include "forests.hpp"

using namespace check;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What an activation is, said by the C library. It may differ in the last bit of the rounding to float32.
float expected(const Activation& a, float z) {
  const double x = z;
  const double margin = static_cast<float>(std::max(0.0, 1.0 - x));
  switch (a.kind) {
  case ActivationKind::identity: return z;
  case ActivationKind::sigmoid: return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
  case ActivationKind::hinge: return static_cast<float>(std::exp(-std::pow(margin, a.power)));
  case ActivationKind::log_sigmoid:
    return static_cast<float>(x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x)));
  case ActivationKind::log_hinge: return static_cast<float>(-std::pow(margin, a.power));
  }
  return 0;
}

bool within_one_step(float a, float b) {
  return a == b || std::nextafter(a, kInf) == b || std::nextafter(a, -kInf) == b;
}

const Activation kAll[] = {{ActivationKind::identity, 1, Path::last},     {ActivationKind::sigmoid, 1, Path::product},
                           {ActivationKind::hinge, 1, Path::product},     {ActivationKind::hinge, 2, Path::product},
                           {ActivationKind::hinge, 3, Path::product},     {ActivationKind::hinge, 7, Path::product},
                           {ActivationKind::log_sigmoid, 1, Path::sum},   {ActivationKind::log_hinge, 1, Path::sum},
                           {ActivationKind::log_hinge, 2, Path::log_exp}, {ActivationKind::log_hinge, 99, Path::sum}};

} // namespace

TEST(activations_agree_with_the_c_library_to_one_step) {
  Random random;
  for (const Activation& a : kAll) {
    for (int i = 0; i < 20000; ++i) {
      const float z = random.number() * (i % 3 == 0 ? 100.0f : 5.0f);
      CHECK(within_one_step(activate(a, z), expected(a, z)));
    }
  }
}

TEST(known_values) {
  CHECK(sigmoid_of(0.0f) == 0.5f);
  CHECK(hinge_of(1.0f, 3) == 1.0f);
  CHECK(hinge_of(0.0f, 3) == 0x1.78b564p-2f);    // 1/e
  CHECK(log_sigmoid_of(0.0f) == -0x1.62e43p-1f); // -ln 2
  CHECK(log_hinge_of(-1.0f, 2) == -4.0f);
  CHECK(log_hinge_of(-1.0f, 3) == -8.0f);
}

TEST(certainty_is_one_or_plus_zero) {
  for (const float sure : {1.0f, 2.0f, 1e30f, kInf}) {
    CHECK(hinge_of(sure, 3) == 1.0f);
    CHECK(std::bit_cast<std::uint32_t>(log_hinge_of(sure, 3)) == 0u);
  }
  for (const float sure : {200.0f, 1e30f, kInf}) {
    CHECK(sigmoid_of(sure) == 1.0f);
    CHECK(std::bit_cast<std::uint32_t>(log_sigmoid_of(sure)) == 0u);
  }
}

TEST(no_score_is_minus_zero_and_none_grows) {
  Random random;
  for (const Activation& a : kAll) {
    if (a.kind == ActivationKind::identity) continue;
    const float most = a.path == Path::product ? 1.0f : 0.0f;
    for (int i = 0; i < 20000; ++i) {
      const auto z = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
      if (std::isnan(z)) continue;
      const float score = activate(a, z);
      CHECK(score <= most);
      CHECK(std::bit_cast<std::uint32_t>(score) != 0x80000000u);
    }
  }
}

TEST(hopeless_is_zero_or_minus_infinity) {
  CHECK(std::bit_cast<std::uint32_t>(sigmoid_of(-kInf)) == 0u);
  CHECK(std::bit_cast<std::uint32_t>(hinge_of(-kInf, 2)) == 0u);
  CHECK(log_sigmoid_of(-kInf) == -kInf);
  CHECK(log_hinge_of(-kInf, 2) == -kInf);
  CHECK(leaf_score(Path::log_exp, -kInf) == 0.0f);
}

TEST(nan_stays_nan) {
  for (const Activation& a : kAll) {
    CHECK(std::isnan(activate(a, kNan)));
    CHECK(std::isnan(leaf_score(a.path, kNan)));
    CHECK(std::isnan(combine(a.path, kNan, activate(a, kNan))));
  }
}

TEST(every_kernel_activates_like_the_scalar_function) {
  Random random;
  for (const Isa isa : isas_here()) {
    for (const Activation& a : kAll) {
      for (const std::uint32_t width : {1u, 7u, 8u, 17u, 32u, 100u}) {
        std::vector<float> z(width), bias(width), out(width);
        for (std::uint32_t i = 0; i < width; ++i) {
          z[i] = random.chance(0.05) ? kInf : random.chance(0.05) ? kNan : random.number() * 4;
          bias[i] = random.chance(0.05) ? -kInf : random.number();
        }
        const float parent = a.path == Path::product ? 0.7f : -0.3f;
        for (const float* added : {static_cast<const float*>(nullptr), static_cast<const float*>(bias.data())}) {
          kernels_for(isa)->activate(a, z.data(), added, width, parent, out.data());
          for (std::uint32_t i = 0; i < width; ++i) {
            const float alone = combine(a.path, parent, activate(a, added ? z[i] + added[i] : z[i]));
            CHECK(key_of(out[i], i) == key_of(alone, i)); // bits, all NaN alike
          }
        }
      }
    }
  }
}

TEST(whoever_lies_below_the_lowest_z_does_not_reach_the_bar) {
  Random random;
  for (const Activation& a : kAll) {
    if (a.kind == ActivationKind::identity) continue;
    for (int i = 0; i < 20000; ++i) {
      const bool leaf = random.chance(0.5);
      const bool probable = a.path == Path::product || (leaf && a.path == Path::log_exp);
      const float parent = a.path == Path::product ? std::abs(random.number()) / 2 : -std::abs(random.number()) * 5;
      const float worst = random.chance(0.2) ? 1000.0f : 10.0f;
      const float z = random.number() * worst / 2;
      const float own = combine(a.path, parent, activate(a, z));
      const float bar = leaf ? leaf_score(a.path, own) : own; // the score of a sibling that reaches it exactly
      if (probable && !(bar > 0.0f)) continue;
      CHECK(lowest_z(a, parent, bar, leaf) <= static_cast<double>(z));
    }
  }
}

TEST(the_bound_of_a_sigmoid_is_close) {
  const Activation sigmoid{ActivationKind::sigmoid, 1, Path::product};
  for (float z = -20.0f; z < 0.0f; z += 0.01f)
    CHECK(lowest_z(sigmoid, 1.0f, sigmoid_of(z), false) > static_cast<double>(z) - 0.05 - 0.005 * std::abs(z));
}
