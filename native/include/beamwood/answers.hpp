// The labels that trees reached in, the rows of an answer out: scores of several trees put together, k kept, padded.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "beamwood/topk.hpp"

namespace beamwood {

struct Answer {
  std::uint32_t label;
  float score;
};

// Several trees: a label's scores are summed in tree order from +0 and divided once by the number of trees.
inline void merge_trees(std::vector<Answer>& answers, std::size_t trees, std::uint32_t k, TopK& ranker) {
  std::stable_sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) { return a.label < b.label; });
  ranker.reset(k);
  for (std::size_t i = 0; i < answers.size();) {
    const std::uint32_t label = answers[i].label;
    float sum = 0.0f;
    for (; i < answers.size() && answers[i].label == label; ++i) sum += answers[i].score;
    // + 0: a tiny negative mean may round to -0, and the order law has one zero.
    ranker.offer(key_of(sum / static_cast<float>(trees) + 0.0f, label));
  }
}

// The row of one query: k labels and scores in rank order, padded with -1 and -inf.
inline void write_row(TopK& ranker, std::uint32_t k, std::int64_t* labels, float* scores) {
  const std::vector<Key>& ranked = ranker.ranked();
  for (std::uint32_t i = 0; i < k; ++i) {
    const bool there = i < ranked.size();
    labels[i] = there ? std::int64_t{id_of(ranked[i])} : -1;
    scores[i] = there ? score_of(ranked[i]) : -std::numeric_limits<float>::infinity();
  }
}

} // namespace beamwood
