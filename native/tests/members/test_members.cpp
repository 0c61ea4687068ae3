// members.hpp: candidates of trees and words stand once each, ranked by the head, and say who listed them.
#include "beamwood/members/members.hpp"

#include "forests.hpp"

using namespace check;

TEST(a_label_that_both_members_list_stands_once) {
  Head head;
  head.trees = 1, head.words = 5, head.unlisted = -9, head.candidates = 20;
  MemberCandidates candidates;
  const double said = evidence_of(head, Path::product, 0.5f);
  candidates.add_by_trees(9, said, 0.25f);
  candidates.add_by_trees(4, said, 1.0f);
  CHECK(candidates.listed().size() == 2u);
  candidates.add_by_words(head, 4, 1.0f);
  std::int64_t labels[3];
  float scores[3];
  std::uint8_t found[3];
  candidates.rank(head, 1.0f, 3, labels, scores, found);
  CHECK(labels[0] == 4 && labels[1] == 9 && labels[2] == -1);
  CHECK(found[0] == (kByTrees | kByWords) && found[1] == kByTrees && found[2] == 0);
  CHECK(scores[0] == head_score(head, 4, said, 1.0f, 1.0f));
  CHECK(scores[1] == head_score(head, 9, said, 0.25f, 1.0f));
  candidates.clear();
  CHECK(candidates.listed().empty());
}

TEST(the_best_sum_is_that_of_a_label_with_rows) {
  const std::uint32_t rows[] = {0, 3, 0};
  Head head;
  head.rows = rows;
  float sum = -1.0f;
  CHECK(best_with_rows(head, std::vector<Key>{key_of(3.0f, 0), key_of(2.0f, 1)}, 2, sum) && sum == 2.0f);
  CHECK(!best_with_rows(head, std::vector<Key>{key_of(3.0f, 0), key_of(2.0f, 2)}, 2, sum)); // it lies beyond these
  CHECK(best_with_rows(head, std::vector<Key>{key_of(3.0f, 0)}, 2, sum) && sum == 0.0f);    // these are all
}
