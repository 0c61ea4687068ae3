// Features in, small numbers for them out, 0, 1, 2, … in the order they are first met: a hash table for one chunk.
//
// Builders gather the rows of a chunk by feature. A table over all features would be simpler, but with millions of them
// every look into it misses the caches, while the few hundred features of a chunk fit in the first.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace beamwood {

class FeatureNumbers {
public:
  // Forgets all features.
  void clear() {
    if (slots_.size() > 64 * (features_.size() + 16)) slots_.resize(1024); // a large chunk came before: do not carry on
    std::fill(slots_.begin(), slots_.end(), 0u);
    features_.clear();
  }

  // The number of a feature, which is met now or was before.
  std::uint32_t operator[](std::uint32_t feature) {
    if (features_.size() * 2 >= slots_.size()) grow();
    const std::uint32_t slot = slot_of(feature);
    if (slots_[slot] == 0) {
      features_.push_back(feature);
      slots_[slot] = static_cast<std::uint32_t>(features_.size());
    }
    return slots_[slot] - 1;
  }

  std::span<const std::uint32_t> features() const noexcept { return features_; }

private:
  // Where a feature is, or would be: a slot holds its number + 1, or 0.
  std::uint32_t slot_of(std::uint32_t feature) const noexcept {
    const auto last = static_cast<std::uint32_t>(slots_.size() - 1);
    std::uint32_t slot = feature * 0x9E3779B1u >> (32 - std::countr_one(last));
    while (slots_[slot] != 0 && features_[slots_[slot] - 1] != feature) slot = (slot + 1) & last;
    return slot;
  }

  void grow() {
    slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0u);
    for (std::uint32_t i = 0; i < features_.size(); ++i) slots_[slot_of(features_[i])] = i + 1;
  }

  std::vector<std::uint32_t> slots_, features_;
};

} // namespace beamwood
