// The children of several trees' chunks in, sums only; the labels that may be among the best k out, with all their scores.
//
// With several trees a label's scores are added up, so every child of the last beams counts. But few can win, and scores
// below 0 do not occur where this is used: a sum is at least its largest part and at most that part times the number of
// trees. Among the best k·trees scores met so far there are k labels or more, so the worst of those scores is one that k
// sums reach (answers.hpp). A label all of whose scores lie below that bar over the number of trees has no hope.
//
// So a walk need not activate children that cannot reach that: it hands over the chunk's sums and offers the others. When
// all trees are walked it is known which labels have hope, and of those every score is made, in the order of the trees.
// The law: they are the scores that would have been made at once, so the answer has the same bits. Should a score turn
// out not to be comparable (NaN), all are made.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/answers.hpp"
#include "beamwood/engine/score.hpp"
#include "beamwood/layout/forest.hpp"

namespace beamwood {

class Hope {
public:
  // Whether leaving labels out is exact for a forest: no score is negative, and what is below a bar is seen from sums.
  static bool applies(const Forest& forest) noexcept {
    const Path path = forest.activation.path;
    return forest.trees.size() > 1 && forest.activation.only_shrinks() &&
           (path == Path::product || path == Path::log_exp);
  }

  void reset(std::size_t trees, std::uint32_t k) {
    trees_ = trees;
    met_.clear(), chunks_.clear(), sums_.clear();
    best_.reset(trees * k);
    comparable_ = true;
    bar_ = kWorstKey;
  }

  // What a label's score must not be worse than to be worth an offer.
  Key bar() const noexcept { return bar_; }

  void offer(std::uint32_t label, float score) {
    comparable_ &= score >= 0.0f; // false for NaN
    if (key_of(score, 0) > bar_) return;
    met_.push_back({label, score});
    best_.offer(key_of(score, label));
  }

  // Takes over the sums of a chunk whose children have labels.
  void keep(const LayerShape& shape, const Siblings& siblings, float parent, const float* sums) {
    chunks_.push_back({shape.label.data() + siblings.begin,
                       shape.bias.empty() ? nullptr : shape.bias.data() + siblings.begin, siblings.width, parent,
                       sums_.size()});
    sums_.insert(sums_.end(), sums, sums + siblings.width);
  }

  // Brings the bar up to date.
  void raise() {
    best_.tighten();
    if (best_.bar() != kWorstKey && comparable_) bar_ = hope_of(score_of(best_.bar()), trees_);
  }

  // Appends every score of the labels that have hope, tree by tree. False: a label does not exist.
  bool settle(const Forest& forest, const Kernels& kernels, std::vector<Answer>& answers) {
    raise();
    bool sound = true;
    if (bar_ != kWorstKey && comparable_) {
      detail::LabelSieve hopeful;
      for (const Answer& a : met_)
        if (key_of(a.score, 0) <= bar_) hopeful.put(a.label);
      for (const Chunk& chunk : chunks_) sound = sound && some_of(chunk, hopeful, forest, answers);
      if (comparable_) return sound;
      answers.clear();
    }
    for (const Chunk& chunk : chunks_) sound = sound && all_of(chunk, forest, kernels, answers);
    return sound;
  }

private:
  struct Chunk {
    const std::uint32_t* label;
    const float* bias; // may be null
    std::uint32_t width;
    float parent;
    std::size_t sums; // where they begin
  };

  bool some_of(const Chunk& chunk, detail::LabelSieve& hopeful, const Forest& forest, std::vector<Answer>& answers) {
    const Activation& a = forest.activation;
    const float* const sums = sums_.data() + chunk.sums;
    for (std::uint32_t c = 0; c < chunk.width; ++c) {
      const std::uint32_t label = chunk.label[c];
      if (!hopeful.holds(label) || label == kNoLabel) continue;
      if (label >= forest.labels) return false;
      const float z = chunk.bias ? sums[c] + chunk.bias[c] : sums[c];
      const float score = leaf_score(a.path, combine(a.path, chunk.parent, activate(a, z)));
      comparable_ &= score >= 0.0f;
      answers.push_back({label, score});
    }
    return true;
  }

  bool all_of(const Chunk& chunk, const Forest& forest, const Kernels& kernels, std::vector<Answer>& answers) {
    scores_.resize(std::max<std::size_t>(scores_.size(), chunk.width));
    scores_of_children(kernels, forest.activation, sums_.data() + chunk.sums, chunk.bias, chunk.width, chunk.parent,
                       scores_.data());
    for (std::uint32_t c = 0; c < chunk.width; ++c) {
      if (chunk.label[c] == kNoLabel) continue;
      if (chunk.label[c] >= forest.labels) return false;
      answers.push_back({chunk.label[c], leaf_score(forest.activation.path, scores_[c])});
    }
    return true;
  }

  std::vector<Answer> met_; // that had hope when they were met
  std::vector<Chunk> chunks_;
  std::vector<float> sums_, scores_;
  TopK best_; // of all scores met, k·trees of them
  std::size_t trees_ = 1;
  Key bar_ = kWorstKey;
  bool comparable_ = true;
};

} // namespace beamwood
