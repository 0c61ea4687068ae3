// The shape of one layer: which nodes are whose children, which carry labels, and their biases. Views only.
//
// Siblings lie side by side: the children of node p of the layer above are child_start[p] .. child_start[p + 1]. A
// node without children is a leaf and carries a label; leaves may lie in any layer. The arrays may be a memory map of
// a file nobody has read yet, so what is followed is checked when it is followed, one compare each.
#pragma once
#include <cstdint>
#include <span>

namespace beamwood {

inline constexpr std::uint32_t kNoLabel = 0xffffffffu;
inline constexpr std::uint32_t kMaxWidth = 65535; // siblings a chunk may have

struct Siblings {
  std::uint32_t begin, width;
};

struct LayerShape {
  std::uint32_t nodes = 0;
  std::span<const std::uint32_t> child_start; // parents + 1
  std::span<const std::uint32_t> label;       // a label or kNoLabel for each node; empty: all nodes are inner ones
  std::span<const float> bias;                // one a node, added last; empty: none

  std::uint32_t parents() const noexcept { return static_cast<std::uint32_t>(child_start.size() - 1); }

  // A bit for each of up to 32 siblings that has no label, the first one lowest.
  std::uint32_t inner(const Siblings& some) const noexcept {
    std::uint32_t mask = 0;
    for (std::uint32_t c = 0; c < some.width; ++c) mask |= std::uint32_t{label[some.begin + c] == kNoLabel} << c;
    return mask;
  }

  // False when the offsets are not those of an honest tree.
  bool children(std::uint32_t parent, Siblings& out) const noexcept {
    const std::uint32_t begin = child_start[parent], end = child_start[parent + 1];
    out = {begin, end - begin};
    return begin <= end && end <= nodes && end - begin <= kMaxWidth;
  }
};

} // namespace beamwood
