// The labels that the trees of a model list for a query in, the best k of trees and words together out.
//
// Candidates are the best labels of the trees and the best labels of the inverted lists. Every candidate's sum over the
// lists is exact, whichever member listed it; its score by the trees is the one that they listed it with, or none. The
// lists are searched only for labels that may still be among the best k (floor.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/index/index_search.hpp"
#include "beamwood/members/floor.hpp"
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

// The best sum of all labels with rows, for the query that the index has open; 0 where none has a word of it. known: a
// sum that one of them has, or 0. False: the arrays are damaged.
inline bool find_best_sum(IndexSearch& index, const Head& head, std::uint32_t labels, float known, float& sum) {
  for (std::uint64_t k = 1;; k *= 16) {
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(k, labels));
    if (!index.run(most, nullptr, true, std::max(known, IndexSearch::kAnySum))) return false;
    const bool found = best_with_rows(head, index.best().ranked(), most, sum);
    sum = std::max(sum, known);
    if (found || most == labels) return true;
  }
}

// What both members list for a query, ranked by the head: first the trees' labels, then those of the words.
class MemberCandidates {
public:
  struct Candidate {
    std::uint32_t label;
    std::uint8_t by;
    float sum;
    double evidence; // what the trees say (head.hpp)
  };

  void clear() noexcept { candidates_.clear(), listed_ = 0; }
  void add_by_trees(std::uint32_t label, double evidence, float sum = 0.0f) {
    candidates_.push_back({label, kByTrees, sum, evidence});
  }
  // The trees have listed all theirs, each once: they rise from now on.
  std::span<Candidate> listed() {
    listed_ = candidates_.size();
    std::sort(candidates_.begin(), candidates_.end(), rising);
    return candidates_;
  }
  void add_by_words(const Head& head, std::uint32_t label, float sum) {
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(listed_);
    const Candidate own{label, kByWords, sum, head.unlisted};
    const auto at = std::lower_bound(candidates_.begin(), end, own, rising);
    if (at != end && at->label == label) at->by |= kByWords;
    else candidates_.push_back(own);
  }

  // Fills one row of the answer. best: the best sum of all labels with rows. found: may be null.
  void rank(const Head& head, float best, std::uint32_t k, std::int64_t* labels, float* scores, std::uint8_t* found) {
    best_.reset(k);
    for (const Candidate& one : candidates_)
      best_.offer(key_of(head_score(head, one.label, one.evidence, one.sum, best), one.label));
    write_row(best_, k, labels, scores);
    if (!found) return;
    std::sort(candidates_.begin(), candidates_.end(), rising);
    for (std::uint32_t i = 0; i < k; ++i) found[i] = labels[i] < 0 ? std::uint8_t{0} : by(labels[i]);
  }

private:
  static bool rising(const Candidate& a, const Candidate& b) noexcept { return a.label < b.label; }

  std::uint8_t by(std::int64_t label) const noexcept {
    const Candidate own{static_cast<std::uint32_t>(label), 0, 0, 0};
    const auto at = std::lower_bound(candidates_.begin(), candidates_.end(), own, rising);
    return at == candidates_.end() ? std::uint8_t{0} : at->by;
  }

  std::vector<Candidate> candidates_;
  std::size_t listed_ = 0;
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
    const Head& head = forest.head;
    candidates_.clear();
    for (std::uint32_t i = 0; i < width && listed[i] >= 0; ++i) {
      const auto label = static_cast<std::uint32_t>(listed[i]);
      if (label < forest.labels)
        candidates_.add_by_trees(label, evidence_of(head, forest.activation.path, tree_scores[i]));
    }
    const auto by_trees = candidates_.listed();
    float best = 0.0f; // so far: of those
    if (!index_.open(forest.postings, query) || !add_sums(head, by_trees, best)) return false;
    if (filter && !find_best_sum(index_, head, forest.labels, best, best)) return false;
    const float least = least_sum(forest, k, by_trees, best, filter != nullptr, found != nullptr);
    if (!index_.run(width, filter, true, least, {given_, sums_})) return false;
    for (const Key key : index_.best().ranked())
      if (score_of(key) >= least) candidates_.add_by_words(head, id_of(key), score_of(key));
    if (!filter && !best_sum(forest, width, best)) return false;
    candidates_.rank(head, best, k, labels, scores, found);
    return true;
  }

  // What words say in a part of a model: the best `width` labels by their sums, the sum of each label that the part's trees
  // list (-1: none), and the best sum of its labels with rows. False: the model's arrays are damaged.
  bool run_part(const Forest& forest, const Query& query, std::uint32_t width, const Filter* filter,
                std::span<const std::int64_t> listed, float* listed_sums, std::int64_t* labels, float* sums,
                float* best) {
    if (!index_.run(forest.postings, query, width, filter, true)) return false;
    write_row(index_.best(), width, labels, sums);
    *best = 0.0f;
    const bool sound =
        filter ? find_best_sum(index_, forest.head, forest.labels, 0.0f, *best) : best_sum(forest, width, *best);
    if (!sound) return false;
    given_.clear();
    for (const std::int64_t label : listed) {
      if (label < 0) break;
      given_.push_back(static_cast<std::uint32_t>(label));
    }
    return index_.score(given_, listed_sums);
  }

  Work take_work() noexcept { return std::exchange(index_.work, {}); }

private:
  // The best sum of all labels with rows, after a search without a filter. best: the best one known, in and out.
  bool best_sum(const Forest& forest, std::uint32_t width, float& best) {
    float sum = 0.0f;
    if (!best_with_rows(forest.head, index_.best().ranked(), width, sum))
      return find_best_sum(index_, forest.head, forest.labels, best, best);
    best = std::max(best, sum);
    return true;
  }

  // The sums of labels that the trees listed. best: of those with rows.
  bool add_sums(const Head& head, std::span<MemberCandidates::Candidate> listed, float& best) {
    given_.clear();
    for (const auto& one : listed) given_.push_back(one.label);
    sums_.resize(given_.size());
    if (!index_.score(given_, sums_.data())) return false;
    for (std::size_t i = 0; i < listed.size(); ++i) {
      listed[i].sum = sums_[i];
      if (head.has_rows(given_[i])) best = std::max(best, sums_[i]);
    }
    return true;
  }

  // How small a sum must be looked for. known: best is that of all labels. all_said: who listed an answer is asked for,
  // so those of the trees must be found among the words' too.
  float least_sum(const Forest& forest, std::uint32_t k, std::span<const MemberCandidates::Candidate> listed,
                  float best, bool known, bool all_said) {
    const QueryLists& lists = index_.lists();
    if (!(best > 0.0f) || lists.negative() || !forest.postings.bias.empty()) return IndexSearch::kAnySum;
    floor_.start(forest.head, static_cast<double>(best), known ? static_cast<double>(best) : lists.most());
    for (const auto& one : listed) floor_.add(one.label, one.evidence, static_cast<double>(one.sum));
    float least = floor_.least(k, IndexSearch::kAnySum);
    for (const auto& one : listed)
      if (all_said && one.sum > 0.0f) least = std::min(least, one.sum);
    return least;
  }

  IndexSearch index_;
  MemberCandidates candidates_;
  WordFloor floor_;
  std::vector<std::uint32_t> given_;
  std::vector<float> sums_;
};

} // namespace beamwood
