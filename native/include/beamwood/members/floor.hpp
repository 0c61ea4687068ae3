// The candidates of the trees in, what a label that only the words list must come to out.
//
// With k candidates of the trees there are k answers, and the least of them is a floor: a label that only the words list
// needs a sum that brings its final score there. All final scores are lines in c (head.hpp), so with b the best sum of all
// labels with rows a label passes a candidate i only if its own sum is at least
//
//   (words_i · sum_i + b · (start_i - start)) / words          start: the head's z without words
//
// b is not known before the words are searched, but it lies between the best sum of the candidates and what all lists
// together can bring. The line is least at one of the two ends.
//
// The law: the floor is never too high. Scores are rounded to float32 and at equal ones the smaller label wins, so a floor
// lies kNear below in z, which is more than one step of float32 for every z from kLow to kHigh; no z counts more than
// kHigh, and below kLow there is no floor.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "beamwood/members/head.hpp"

namespace beamwood {

// Scratch memory of one worker.
class WordFloor {
public:
  // best, most: what the best sum of all labels with rows lies between.
  void start(const Head& head, double best, double most) {
    head_ = &head, best_ = best, most_ = most;
    needs_.clear();
  }

  // One of the trees' candidates, with what the trees say of it (head.hpp) and its sum.
  void add(std::uint32_t label, double evidence, double sum) {
    const bool rows = head_->has_rows(label);
    const double start = rows ? head_->bias + head_->trees * evidence : head_->rowless;
    const double words = rows ? head_->words : head_->rowless_words;
    const Line with_rows{head_->bias + head_->trees * head_->unlisted, head_->words};
    const Line rowless{head_->rowless, head_->rowless_words};
    const double counted = rows ? sum : std::min(sum, 2 * best_);
    needs_.push_back(std::min(need(with_rows, start, words * counted), need(rowless, start, words * counted)));
  }

  // With how small a sum a label may still be among the best k; at least `any`.
  float least(std::uint32_t k, float any) {
    if (needs_.size() < k) return any;
    std::nth_element(needs_.begin(), needs_.begin() + (k - 1), needs_.end(), std::greater<>());
    const double need = std::min(needs_[k - 1], best_) * (1 - 1e-6);
    return need > static_cast<double>(any) ? static_cast<float>(need) : any;
  }

private:
  static constexpr double kNear = 2e-4, kLow = -80, kHigh = 8;
  struct Line {
    double start, words;
  };

  // What a label of this line needs to pass one that begins at `start` and whose words add `by_words` / b.
  double need(const Line& line, double start, double by_words) const noexcept {
    if (!(line.words > 0) || !(start > kLow) || !std::isfinite(start)) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const double b : {best_, most_})
      least = std::min({least, by_words + b * (start - kNear - line.start), b * (kHigh - kNear - line.start)});
    return least / line.words;
  }

  const Head* head_ = nullptr;
  double best_ = 0, most_ = 0;
  std::vector<double> needs_;
};

} // namespace beamwood
