// The labels that trees reached in, the rows of an answer out: scores of several trees put together, k kept, padded.
//
// The law: a label's scores are summed in tree order from +0, a tree that did not reach it adds nothing, and the sum is
// divided once by the number of trees.
//
// Wide leaves bring thousands of labels a query, of which few can win, and sorting them all costs more than a tree.
// Where no score is negative, a sum is at least its largest part and at most that part times the number of trees. Among
// the best k·trees scores there are k labels or more, so the worst of those scores is a bar that k sums reach; a label
// with no score of bar/trees cannot reach it and is left out unsummed. What is left is merged as ever: the bits of the
// answer cannot depend on what was left out.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "beamwood/engine/topk.hpp"

namespace beamwood {

struct Answer {
  std::uint32_t label;
  float score;
};

// A score that a label must reach in some tree if its sum is to reach `bar`, as a key; the worst key where rounding could
// lift a sum by too much. No score is negative.
inline Key hope_of(float bar, std::size_t trees) noexcept {
  if (trees > 1000 || !(bar >= 1e-30f && bar <= 1e30f)) return kWorstKey;
  const float share =
      bar / static_cast<float>(trees) * 0.999f; // a sum is rounded up by some trees · 2^-24 of it at most
  return key_of(share, 0xffffffffu);
}

namespace detail {

// Labels by a few bits of theirs; it may hold more than were put in, never fewer.
class LabelSieve {
public:
  void put(std::uint32_t label) noexcept { word(label) |= bit(label); }
  bool holds(std::uint32_t label) noexcept { return (word(label) & bit(label)) != 0; }

private:
  std::uint64_t& word(std::uint32_t label) noexcept { return words_[(label >> 6) % words_.size()]; }
  static std::uint64_t bit(std::uint32_t label) noexcept { return std::uint64_t{1} << (label % 64); }

  std::array<std::uint64_t, 256> words_{};
};

inline void leave_out_hopeless(std::vector<Answer>& answers, std::size_t trees, std::uint32_t k, TopK& ranker) {
  const std::size_t enough = std::size_t{k} * trees;
  if (answers.size() <= 2 * enough) return;
  ranker.reset(enough);
  bool comparable = true;
  for (const Answer& a : answers) {
    comparable &= a.score >= 0.0f; // false for NaN
    ranker.offer(key_of(a.score, a.label));
  }
  const float bar = score_of(ranker.ranked().back());
  const Key hope = hope_of(bar, trees);
  if (!comparable || hope == kWorstKey) return;
  LabelSieve hopeful;
  for (const Answer& a : answers)
    if (key_of(a.score, 0) <= hope) hopeful.put(a.label);
  std::erase_if(answers, [&](const Answer& a) { return !hopeful.holds(a.label); });
}

} // namespace detail

inline void merge_trees(std::vector<Answer>& answers, std::size_t trees, std::uint32_t k, TopK& ranker) {
  detail::leave_out_hopeless(answers, trees, k, ranker);
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
