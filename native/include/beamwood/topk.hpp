// Keys in, one by one; the best n of them out, in rank order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "beamwood/order.hpp"

namespace beamwood {

// Keeps the best n keys offered so far, and a few more: when its buffer is full, the worse part is dropped and the
// n-th best becomes the bar that later keys must beat. Keys are unique, so the order of offering does not matter.
class TopK {
public:
  void reset(std::size_t n) {
    n_ = n;
    keys_.clear();
    keys_.reserve(std::min<std::size_t>(room(), 4096));
    bar_ = kWorstKey;
  }

  // The score that a candidate must reach to be worth a key: lets a caller skip most candidates by one compare.
  Key bar() const noexcept { return bar_; }

  void offer(Key key) {
    if (key >= bar_) return;
    keys_.push_back(key);
    if (keys_.size() >= room()) shrink();
  }

  // Brings the bar up to date: it is then the n-th best key so far.
  void tighten() {
    if (keys_.size() > n_) shrink();
    else if (keys_.size() == n_ && bar_ == kWorstKey) bar_ = *std::max_element(keys_.begin(), keys_.end());
  }

  // The best n in rank order.
  const std::vector<Key>& ranked() {
    if (keys_.size() > n_) shrink();
    std::sort(keys_.begin(), keys_.end());
    return keys_;
  }

private:
  std::size_t room() const noexcept { return 2 * n_ + 64; }

  void shrink() {
    std::nth_element(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(n_ - 1), keys_.end());
    keys_.resize(n_);
    bar_ = keys_.back();
  }

  std::vector<Key> keys_;
  std::size_t n_ = 1;
  Key bar_ = kWorstKey;
};

} // namespace beamwood
