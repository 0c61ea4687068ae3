// Labels in, numbers out: 0, 1, 2 … in the order in which labels are first met.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace beamwood {

class LabelNumbers {
public:
  // Forgets all labels; so many are expected.
  void reset(std::size_t expected = 0) {
    labels_.clear();
    make_table(2 * expected);
  }

  std::size_t size() const noexcept { return labels_.size(); }
  std::uint32_t label(std::size_t number) const noexcept { return labels_[number]; }

  std::uint32_t number_of(std::uint32_t label) {
    std::size_t at = slot_of(label);
    if (table_[at] != kEmpty) return static_cast<std::uint32_t>(table_[at]);
    const auto number = static_cast<std::uint32_t>(labels_.size());
    table_[at] = std::uint64_t{label} << 32 | number;
    labels_.push_back(label);
    if (2 * labels_.size() > mask_) grow();
    return number;
  }

private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0}; // no label has this id

  // Where a label is, or would be.
  std::size_t slot_of(std::uint32_t label) const noexcept {
    std::size_t at = (label * 0x9e3779b97f4a7c15ull) >> shift_;
    while (table_[at] != kEmpty && table_[at] >> 32 != label) at = (at + 1) & mask_;
    return at;
  }

  void make_table(std::size_t least) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(least, 128));
    if (table_.size() < size) table_.resize(size);
    shift_ = static_cast<unsigned>(64 - std::countr_zero(size));
    mask_ = size - 1;
    std::fill_n(table_.begin(), size, kEmpty);
  }

  void grow() {
    make_table(4 * labels_.size());
    for (std::uint32_t number = 0; number < labels_.size(); ++number)
      table_[slot_of(labels_[number])] = std::uint64_t{labels_[number]} << 32 | number;
  }

  std::vector<std::uint64_t> table_;
  std::vector<std::uint32_t> labels_; // by number
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

} // namespace beamwood
