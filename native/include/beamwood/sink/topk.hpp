// Keys in, one by one; the best n of them out, in rank order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "beamwood/engine/order.hpp"

namespace beamwood {

// A few keys are kept in rank order, and the bar that later keys must beat is the n-th best at any time. Many are kept
// in disorder with some more: when the buffer is full, the worse part is dropped and the n-th best becomes the bar. Keys
// are unique, so the order of offering does not matter.
class TopK {
public:
  void reset(std::size_t n) {
    n_ = n;
    keys_.clear();
    keys_.reserve(std::min<std::size_t>(room(), 4096));
    bar_ = kWorstKey;
  }

  // What a candidate must be better than to be worth an offer: lets a caller skip most candidates by one compare.
  Key bar() const noexcept { return bar_; }

  void offer(Key key) {
    if (key >= bar_) return;
    if (n_ <= kFew) {
      insert(key);
    } else {
      keys_.push_back(key);
      if (keys_.size() >= room()) shrink();
    }
  }

  // Brings the bar up to date: it is then the n-th best key so far.
  void tighten() {
    if (keys_.size() > n_) shrink();
    else if (keys_.size() == n_ && bar_ == kWorstKey) bar_ = *std::max_element(keys_.begin(), keys_.end());
  }

  // The best n in rank order.
  const std::vector<Key>& ranked() {
    if (n_ <= kFew) return keys_;
    if (keys_.size() > n_) shrink();
    std::sort(keys_.begin(), keys_.end());
    return keys_;
  }

private:
  static constexpr std::size_t kFew = 48;

  std::size_t room() const noexcept { return 2 * n_ + 64; }

  void insert(Key key) {
    bool behind = false; // as where the best come first
    if (keys_.size() < n_) {
      behind = keys_.empty() || keys_.back() < key;
      keys_.push_back(behind ? key : kWorstKey);
    }
    if (!behind) put(key);
    if (keys_.size() == n_) bar_ = keys_.back();
  }

  // Where a key belongs cannot be foreseen, so that no branch asks for it: each place takes the middle one of its key, the
  // one before it, and the new one.
  void put(Key key) noexcept {
    Key* const keys = keys_.data();
    for (std::size_t at = keys_.size() - 1; at > 0; --at) keys[at] = std::max(keys[at - 1], std::min(keys[at], key));
    keys[0] = std::min(keys[0], key);
  }

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
