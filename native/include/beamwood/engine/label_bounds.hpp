// Labels in, their numbers out, with the most and the least that the sum of each can come to (see sinks.hpp).
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace beamwood {

// Labels by number, with the most and the least that each can come to.
class LabelBounds {
public:
  // Room for so many labels, none of which is there.
  void reset(std::size_t most) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * most, 64));
    if (table_.size() < size) table_.resize(size);
    shift_ = static_cast<unsigned>(64 - std::countr_zero(size));
    mask_ = size - 1;
    std::fill_n(table_.begin(), size, kEmpty);
    label.clear(), most_.clear(), least_.clear();
    label.reserve(most), most_.reserve(most), least_.reserve(most);
  }

  std::uint32_t number_of(std::uint32_t wanted) {
    std::size_t at = (wanted * 0x9e3779b97f4a7c15ull) >> shift_;
    for (; table_[at] != kEmpty; at = (at + 1) & mask_)
      if (table_[at] >> 32 == wanted) return static_cast<std::uint32_t>(table_[at]);
    const auto number = static_cast<std::uint32_t>(label.size());
    table_[at] = std::uint64_t{wanted} << 32 | number;
    label.push_back(wanted), most_.push_back(0), least_.push_back(0);
    return number;
  }

  std::size_t size() const noexcept { return label.size(); }
  double most(std::uint32_t number) const noexcept { return most_[number]; }
  double least(std::uint32_t number) const noexcept { return least_[number]; }
  void may_add(std::uint32_t number, double score) noexcept { most_[number] += score; }
  void add(std::uint32_t number, double bound, double score) noexcept {
    most_[number] += score - bound;
    least_[number] += score;
  }

  std::vector<std::uint32_t> label; // by number

private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0}; // no label has this id
  std::vector<std::uint64_t> table_;
  std::vector<double> most_, least_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

} // namespace beamwood
