// The head: its logarithm, and that scores never fall when a member's score rises.
#include "beamwood/members/head.hpp"

#include <cmath>

#include "forests.hpp"

using namespace check;

namespace {

// Of a label that the trees list with a score, or do not.
float score_of_label(const Head& head, Path path, bool listed, float tree, float sum, float best) {
  return head_score(head, 0, listed ? evidence_of(head, path, tree) : head.unlisted, sum, best);
}

} // namespace

TEST(the_logarithm_is_within_two_units_in_the_last_place) {
  for (double x = 1e-300; x < 1e300; x *= 1.0371) {
    const double ours = log_of(x), theirs = std::log(x);
    CHECK(std::abs(ours - theirs) <= 4e-16 * std::abs(theirs) + 4e-16);
  }
  CHECK(log_of(1.0) == 0.0);
}

TEST(a_score_never_falls_when_one_of_a_member_rises) {
  Head head;
  head.bias = -2.5, head.trees = 0.5, head.words = 3.5, head.unlisted = -9, head.rowless = -6, head.rowless_words = 4,
  head.candidates = 20;
  for (const Path path : {Path::last, Path::product, Path::sum, Path::log_exp})
    for (float fixed = 0.0f; fixed <= 1.0f; fixed += 0.125f) {
      float by_trees = 0, by_words = 0;
      for (float rising = 0.0f; rising <= 1.0f; rising += 0.001f) {
        const float a = score_of_label(head, path, true, rising, fixed, 1.0f);
        const float b = score_of_label(head, path, true, fixed, rising, 1.0f);
        CHECK(a >= by_trees && b >= by_words);
        CHECK(a >= score_of_label(head, path, false, 0.0f, fixed, 1.0f) || path == Path::last || path == Path::sum);
        by_trees = a, by_words = b;
      }
    }
}

TEST(labels_without_rows_count_by_their_words_whatever_the_trees_say) {
  const std::uint32_t rows[] = {0, 1};
  Head head;
  head.trees = 1, head.words = 1, head.unlisted = -9, head.candidates = 20, head.rows = rows;
  head.rowless = -6, head.rowless_words = 4;
  const auto score = [&](bool listed, float tree, float sum, float best) {
    return score_of_label(head, Path::product, listed, tree, sum, best);
  };
  CHECK(score(true, 0.9f, 0.3f, 1.0f) == score(false, 0.0f, 0.3f, 1.0f));
  float before = 0;
  for (float sum = 0.0f; sum <= 2.0f; sum += 0.0625f) { // it may have better words than every label with rows
    CHECK(score(false, 0.0f, sum, 1.0f) > before);
    before = score(false, 0.0f, sum, 1.0f);
  }
  CHECK(score(false, 0.0f, 5.0f, 1.0f) == before && score(false, 0.0f, 0.1f, 0.0f) == before);
  CHECK(score(false, 0.0f, 0.0f, 0.0f) == score(false, 0.0f, 0.0f, 1.0f));
}
