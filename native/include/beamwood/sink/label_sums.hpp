// Labels and numbers in, the sum of each label's numbers out, in the order in which labels were first met.
//
// The law: sums begin at +0 and are added in the order given.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "beamwood/layout/tree.hpp"

namespace beamwood {

class LabelSums {
public:
  // Makes room for so many numbers.
  void reset(std::size_t most) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * most, 128));
    if (table_.size() < size) table_.resize(size), met_.resize(size);
    shift_ = static_cast<unsigned>(64 - std::countr_zero(size));
    mask_ = size - 1;
  }

  // No label is kNoLabel. Whether one was met before cannot be foreseen, so that no branch asks for it.
  void add(std::uint32_t label, float number) noexcept {
    std::size_t at = (label * 0x9e3779b97f4a7c15ull) >> shift_;
    while (table_[at].label != label && table_[at].label != kNoLabel) at = (at + 1) & mask_;
    Slot& slot = table_[at];
    met_[count_] = static_cast<std::uint32_t>(at);
    count_ += slot.label == kNoLabel;
    slot = {label, slot.sum + number};
  }

  // Calls take(label, sum) for each label, and forgets it.
  template <class Take> void take_all(Take&& take) {
    for (std::size_t i = 0; i < count_; ++i) {
      Slot& slot = table_[met_[i]];
      take(slot.label, slot.sum);
      slot = {};
    }
    count_ = 0;
  }

private:
  struct Slot {
    std::uint32_t label = kNoLabel;
    float sum = 0.0f;
  };

  std::vector<Slot> table_;
  std::vector<std::uint32_t> met_; // slots
  std::size_t count_ = 0, mask_ = 0;
  unsigned shift_ = 0;
};

} // namespace beamwood
