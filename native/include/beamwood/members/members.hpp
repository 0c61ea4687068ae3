// The labels that the trees of a model list for a query in, the best k of trees and words together out.
//
// Candidates are the best labels of the trees and the best labels of the inverted lists. Every candidate's sum over the
// lists is exact, whichever member listed it; its score by the trees is the one that they listed it with, or none.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/index/index_search.hpp"
#include "beamwood/members/head.hpp"
#include "beamwood/sink/sinks.hpp"

namespace beamwood {

// Which members listed an answer: bits.
inline constexpr std::uint8_t kByTrees = 1, kByWords = 2;

// The sum of the first label with rows among the best k; 0 where these are all and none has. False: it lies beyond them.
template <class Ranked>
bool best_with_rows(const Head& head, const Ranked& ranked, std::uint32_t k, float& sum) noexcept {
  for (const Key key : ranked)
    if (head.has_rows(id_of(key))) return sum = score_of(key), true;
  return sum = 0.0f, ranked.size() < k;
}

// The best sum of all labels with rows; 0 where none has a word of the query. False: the arrays are damaged.
inline bool find_best_sum(IndexSearch& index, const Postings& postings, const Head& head, const Query& query,
                          float& sum) {
  for (std::uint64_t k = 1;; k *= 16) {
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(k, postings.labels));
    if (!index.run(postings, query, most, nullptr, true)) return false;
    if (best_with_rows(head, index.best().ranked(), most, sum) || most == postings.labels) return true;
  }
}

// What both members list for a query, ranked by the head.
class MemberCandidates {
public:
  struct Candidate {
    std::uint32_t label;
    float tree, sum;
    std::uint8_t by;
  };

  void clear() noexcept { candidates_.clear(); }
  void add_by_trees(std::uint32_t label, float score, float sum = 0.0f) {
    candidates_.push_back({label, score, sum, kByTrees});
  }
  void add_by_words(std::uint32_t label, float sum) { candidates_.push_back({label, 0.0f, sum, kByWords}); }

  // All are there: each label stands once from now on, labels rise.
  void unite() {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.label != b.label ? a.label < b.label : a.by < b.by;
    });
    std::size_t n = 0;
    for (const Candidate& one : candidates_) {
      if (n > 0 && candidates_[n - 1].label == one.label) {
        candidates_[n - 1].sum = one.sum, candidates_[n - 1].by |= one.by;
      } else {
        candidates_[n++] = one;
      }
    }
    candidates_.resize(n);
  }

  std::span<Candidate> all() noexcept { return candidates_; }

  // Fills one row of the answer. best: the best sum of all labels with rows. found: may be null.
  void rank(const Head& head, Path path, float best, std::uint32_t k, std::int64_t* labels, float* scores,
            std::uint8_t* found) {
    best_.reset(k);
    for (const Candidate& one : candidates_) {
      const bool listed = (one.by & kByTrees) != 0;
      best_.offer(key_of(head_score(head, path, one.label, listed, one.tree, one.sum, best), one.label));
    }
    write_row(best_, k, labels, scores);
    if (found)
      for (std::uint32_t i = 0; i < k; ++i) found[i] = labels[i] < 0 ? std::uint8_t{0} : by(labels[i]);
  }

private:
  std::uint8_t by(std::int64_t label) const noexcept {
    const auto at = std::lower_bound(candidates_.begin(), candidates_.end(), static_cast<std::uint32_t>(label),
                                     [](const Candidate& a, std::uint32_t b) { return a.label < b; });
    return at == candidates_.end() ? std::uint8_t{0} : at->by;
  }

  std::vector<Candidate> candidates_;
  TopK best_;
};

// Scratch memory of one worker.
class alignas(kApart) MemberSearch {
public:
  // Fills one row of the answer, and for each of its labels who listed it (found may be null). listed, tree_scores: the
  // `width` candidates of the trees, padded with -1. False: the model's arrays are damaged.
  bool run(const Forest& forest, const Query& query, std::uint32_t k, std::uint32_t width, const Filter* filter,
           const std::int64_t* listed, const float* tree_scores, std::int64_t* labels, float* scores,
           std::uint8_t* found) {
    if (!index_.run(forest.postings, query, width, filter, true)) return false;
    candidates_.clear();
    for (std::uint32_t i = 0; i < width && listed[i] >= 0; ++i) {
      const auto label = static_cast<std::uint32_t>(listed[i]);
      if (label < forest.labels) candidates_.add_by_trees(label, tree_scores[i]);
    }
    for (const Key key : index_.best().ranked()) candidates_.add_by_words(id_of(key), score_of(key));
    candidates_.unite();
    float best = 0.0f;
    if (!complete(forest.postings, query) || !best_sum(forest, query, width, filter, best)) return false;
    candidates_.rank(forest.head, forest.activation.path, best, k, labels, scores, found);
    return true;
  }

  // What words say in a part of a model: the best `width` labels by their sums, the sum of each label that the part's trees
  // list (-1: none), and the best sum of its labels with rows. False: the model's arrays are damaged.
  bool run_part(const Forest& forest, const Query& query, std::uint32_t width, const Filter* filter,
                std::span<const std::int64_t> listed, float* listed_sums, std::int64_t* labels, float* sums,
                float* best) {
    if (!index_.run(forest.postings, query, width, filter, true)) return false;
    write_row(index_.best(), width, labels, sums);
    if (!best_sum(forest, query, width, filter, *best)) return false;
    given_.clear();
    for (const std::int64_t label : listed) {
      if (label < 0) break;
      given_.push_back(static_cast<std::uint32_t>(label));
    }
    return given_.empty() || index_.score(forest.postings, query, given_, listed_sums);
  }

  Work take_work() noexcept { return std::exchange(index_.work, {}); }

private:
  // The best sum of all labels with rows. With a filter it is looked for by itself: a label's score does not depend on
  // filters.
  bool best_sum(const Forest& forest, const Query& query, std::uint32_t width, const Filter* filter, float& sum) {
    return (!filter && best_with_rows(forest.head, index_.best().ranked(), width, sum)) ||
           find_best_sum(index_, forest.postings, forest.head, query, sum);
  }

  // The sums of those that only the trees listed.
  bool complete(const Postings& index, const Query& query) {
    given_.clear();
    for (const auto& one : candidates_.all())
      if (one.by == kByTrees) given_.push_back(one.label);
    if (given_.empty()) return true;
    sums_.resize(given_.size());
    if (!index_.score(index, query, given_, sums_.data())) return false;
    std::size_t next = 0;
    for (auto& one : candidates_.all())
      if (one.by == kByTrees) one.sum = sums_[next++];
    return true;
  }

  IndexSearch index_;
  MemberCandidates candidates_;
  std::vector<std::uint32_t> given_;
  std::vector<float> sums_;
};

} // namespace beamwood
