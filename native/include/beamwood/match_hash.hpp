// Matcher `hash` (the paper's hash-map): every feature of the query is looked up in the hash slots of the support.
// Cost: h * nnz(x), with h about two steps. Extra memory: 32 bits for every 0.6 of a row.
//
// Slots are open addressing with linear probing. A slot is 0 when empty, else (tag, row + 1): the row takes as many
// low bits as the support needs, the tag (more bits of the hash) the rest, so that a foreign id is told apart
// without a look at the list. A support with s slots is entered at hash * s >> 32: no power of two is wasted.
#pragma once
#include <bit>

#include "beamwood/match.hpp"

namespace beamwood {

inline std::uint32_t hash_of(std::uint32_t feature) noexcept {
  feature = (feature ^ (feature >> 15)) * 0x2c1b3c6du;
  feature = (feature ^ (feature >> 12)) * 0x297a2d39u;
  return feature ^ (feature >> 15);
}

// Slots of a support of `rows` rows: five for three rows, and one more so that an empty one always remains.
inline std::uint64_t slots_for(std::uint64_t rows) noexcept { return rows ? rows + (2 * rows + 2) / 3 + 1 : 0; }

struct SlotLayout {
  std::uint32_t slots, row_mask;

  SlotLayout(std::uint32_t rows, std::uint32_t slot_count) noexcept
      : slots(slot_count), row_mask(static_cast<std::uint32_t>((std::uint64_t{1} << std::bit_width(rows)) - 1)) {}

  std::uint32_t entry(std::uint32_t hash) const noexcept {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * slots) >> 32);
  }
  // The low bits of a hash make the tag: its high bits already chose the entry.
  std::uint32_t tag(std::uint32_t hash) const noexcept { return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * (row_mask + std::uint64_t{1}))) & ~row_mask; }
};

// Fills zeroed slots with the rows of a support.
inline void fill_slots(const std::uint32_t* feature, std::uint32_t rows, std::uint32_t* slot,
                       std::uint32_t slot_count) noexcept {
  const SlotLayout layout(rows, slot_count);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t hash = hash_of(feature[row]);
    std::uint32_t at = layout.entry(hash);
    while (slot[at] != 0) at = at + 1 == slot_count ? 0 : at + 1;
    slot[at] = layout.tag(hash) | (row + 1);
  }
}

inline std::uint32_t match_hash(const Query& query, const Support& support, Match* out) noexcept {
  if (support.slot_count == 0) return 0;
  const SlotLayout layout(support.count, support.slot_count);
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < query.count; ++i) {
    const std::uint32_t feature = query.feature[i], hash = hash_of(feature);
    const std::uint32_t tag = layout.tag(hash);
    std::uint32_t at = layout.entry(hash);
    // At most slot_count steps: in a damaged file no slot may be empty.
    for (std::uint32_t step = 0; step < support.slot_count; ++step) {
      const std::uint32_t slot = support.slot[at];
      if (slot == 0) break;
      const std::uint32_t row = (slot & layout.row_mask) - 1;
      if ((slot & ~layout.row_mask) == tag && row < support.count && support.feature[row] == feature) {
        out[found++] = {row, query.value[i]};
        break;
      }
      at = at + 1 == support.slot_count ? 0 : at + 1;
    }
  }
  return found;
}

} // namespace beamwood
