// Terms in, their column numbers out: an open-addressing hash over flat arrays that may live in a memory map.
//
//   terms    all terms' UTF-8 bytes, one behind the other
//   offsets  term i is terms[offsets[i] .. offsets[i + 1])
//   slots    2^m words: 0 is empty, else (upper half of the term's XXH3-64) << 32 | (i + 1); a term starts looking at
//            hash mod 2^m and goes on to the next slot
//   idf      the weight of each term, or nothing when all are 1
//
// The law: opening touches no page of the arrays, and a value read from them is compared with its bounds before it is
// followed. A damaged array ends a look-up with an error, never outside the arrays. The fingerprint in a slot means
// that an unknown term costs one cache line.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "beamwood/xxh3.hpp"

namespace beamwood {

inline std::uint64_t term_hash(const char* bytes, std::size_t length) noexcept { return xxh3_64(bytes, length); }

// The word that stands for term `id` in a slot.
inline std::uint64_t slot_word(std::uint64_t hash, std::uint64_t id) noexcept {
  return (hash & 0xFFFFFFFF00000000u) | (id + 1);
}

class Vocabulary {
public:
  static constexpr std::size_t max_terms = 0x7FFFFFFF; // columns of scipy matrices are int32

  // Only the lengths of the arrays are checked here; throws std::invalid_argument when they do not fit together.
  static Vocabulary checked(std::span<const std::uint8_t> terms, std::span<const std::uint64_t> offsets,
                            std::span<const std::uint64_t> slots, std::span<const double> idf) {
    if (offsets.empty()) throw std::invalid_argument("the vocabulary has no offsets");
    const std::size_t count = offsets.size() - 1;
    if (count > max_terms) throw std::invalid_argument("the vocabulary has more than 2^31 - 1 terms");
    if (!std::has_single_bit(slots.size()) || slots.size() <= count)
      throw std::invalid_argument("the vocabulary's hash has a wrong number of slots");
    if (!idf.empty() && idf.size() != count) throw std::invalid_argument("the vocabulary needs one idf a term");
    return {terms, offsets, slots, idf};
  }

  std::size_t size() const noexcept { return offsets_.size() - 1; }
  double idf(std::size_t id) const noexcept { return idf_.empty() ? 1.0 : idf_[id]; }

  void prefetch_slot(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void prefetch_term(std::uint64_t id) const noexcept {
    __builtin_prefetch(&offsets_[id]);
    if (!idf_.empty()) __builtin_prefetch(&idf_[id]);
  }
  void prefetch_bytes(std::uint64_t id) const noexcept {
    if (const std::uint64_t from = offsets_[id]; from < terms_.size()) __builtin_prefetch(&terms_[from]);
  }

  static constexpr std::uint64_t absent = ~std::uint64_t{0}, damaged = absent - 1;

  // Where a search stands: `step` slots looked at, `id` the next term with this fingerprint, `absent` or `damaged`.
  struct Probe {
    std::uint64_t hash;
    std::uint64_t step = 0;
    std::uint64_t id = absent;
  };

  // Moves the probe to its next candidate.
  void advance(Probe& probe) const noexcept {
    const std::uint64_t mask = slots_.size() - 1;
    for (; probe.step <= mask; ++probe.step) {
      const std::uint64_t slot = slots_[(probe.hash + probe.step) & mask];
      if (slot == 0) break;
      if ((slot ^ probe.hash) >> 32) continue;
      const std::uint64_t id = (slot & 0xFFFFFFFFu) - 1;
      probe.id = id < size() ? id : damaged;
      ++probe.step;
      return;
    }
    probe.id = absent;
  }

  // Compares the candidate's bytes and goes on until they are equal; returns the id, `absent` or `damaged`.
  std::uint64_t settle(Probe probe, const char* bytes, std::size_t length) const noexcept {
    while (probe.id < damaged) {
      const std::uint64_t from = offsets_[probe.id], to = offsets_[probe.id + 1];
      if (from > to || to > terms_.size()) return damaged;
      if (to - from == length && std::memcmp(terms_.data() + from, bytes, length) == 0) return probe.id;
      advance(probe);
    }
    return probe.id;
  }

private:
  Vocabulary(std::span<const std::uint8_t> terms, std::span<const std::uint64_t> offsets,
             std::span<const std::uint64_t> slots, std::span<const double> idf)
      : terms_(terms), offsets_(offsets), slots_(slots), idf_(idf) {}

  std::span<const std::uint8_t> terms_;
  std::span<const std::uint64_t> offsets_, slots_;
  std::span<const double> idf_;
};

// How many slots `terms` terms get: a power of two, at most half of it taken.
inline std::size_t slots_for(std::size_t terms) { return std::bit_ceil(2 * terms + 1); }

// Fills empty slots from the terms. The offsets must be sound (they were just made, or checked by the caller).
inline void fill_slots(std::span<const std::uint8_t> terms, std::span<const std::uint64_t> offsets,
                       std::span<std::uint64_t> slots) noexcept {
  const std::uint64_t mask = slots.size() - 1;
  for (std::size_t id = 0; id + 1 < offsets.size(); ++id) {
    const std::size_t length = offsets[id + 1] - offsets[id];
    const std::uint64_t hash = term_hash(reinterpret_cast<const char*>(terms.data()) + offsets[id], length);
    std::uint64_t at = hash & mask;
    while (slots[at] != 0) at = (at + 1) & mask;
    slots[at] = slot_word(hash, id);
  }
}

} // namespace beamwood
