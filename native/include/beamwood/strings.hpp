// strings.hpp — many strings in, flat arrays out that are searched where they lie, also in a memory map: keys of labels
// and terms of texts.
//
//   bytes    all strings' UTF-8, one behind the other
//   offsets  string i is bytes[offsets[i] .. offsets[i + 1])
//   slots    open addressing: 0 is empty, else a word that holds i + 1. A string starts looking at the place that its
//            XXH3-64 gives and goes on to the next slot. Strings were put in by rising number.
//
// Words have two forms (FORMAT.md). KeySlots are 32 bits wide and two thirds full. TermSlots also hold half of the hash,
// so that a string that is not there, as many words of texts are, costs one cache line.
//
// The law: opening touches no page of the arrays, and a value read from them is compared with its bounds before it is
// followed. A damaged array ends a look-up with `damaged`, never outside the arrays.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/xxh3.hpp"

namespace beamwood {

// Thrown out of a call that met a value in a model's arrays which leads outside of them.
struct Damaged : std::exception {
  const char* what() const noexcept override { return "a model's arrays are damaged"; }
};

// Strings by number.
struct StringList {
  std::span<const std::uint8_t> bytes;
  std::span<const std::uint64_t> offsets; // at least one

  std::size_t size() const noexcept { return offsets.size() - 1; }

  // Nothing when the offsets lead outside; i must be below size().
  std::optional<std::string_view> at(std::size_t i) const noexcept {
    const std::uint64_t from = offsets[i], to = offsets[i + 1];
    if (from > to || to > bytes.size()) return {};
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + from, to - from);
  }
};

struct KeySlots {
  using Word = std::uint32_t;
  static constexpr std::size_t most = 0xFFFFFFFE; // strings
  static std::size_t count(std::size_t strings) noexcept { return strings * 3 / 2 + 1; }
  static bool fits(std::size_t slots, std::size_t strings) noexcept { return slots > strings; }
  static std::uint64_t place(std::uint64_t hash, std::uint64_t step, std::uint64_t slots) noexcept {
    const std::uint64_t at = hash % slots + step;
    return at < slots ? at : at - slots;
  }
  static Word word(std::uint64_t, std::uint64_t id) noexcept { return static_cast<Word>(id + 1); }
  static std::uint64_t id(Word word) noexcept { return std::uint64_t{word} - 1; }
  static bool may_be(Word, std::uint64_t) noexcept { return true; }
};

struct TermSlots {
  using Word = std::uint64_t;
  static constexpr std::size_t most = 0x7FFFFFFF;                                                   // strings
  static std::size_t count(std::size_t strings) noexcept { return std::bit_ceil(2 * strings + 1); } // at most half full
  static bool fits(std::size_t slots, std::size_t strings) noexcept {
    return std::has_single_bit(slots) && slots > strings;
  }
  static std::uint64_t place(std::uint64_t hash, std::uint64_t step, std::uint64_t slots) noexcept {
    return (hash + step) & (slots - 1);
  }
  static Word word(std::uint64_t hash, std::uint64_t id) noexcept { return (hash & 0xFFFFFFFF00000000u) | (id + 1); }
  static std::uint64_t id(Word word) noexcept { return (word & 0xFFFFFFFFu) - 1; }
  static bool may_be(Word word, std::uint64_t hash) noexcept { return (word ^ hash) >> 32 == 0; }
};

// Numbers by string. The slots must fit: Slots::fits(slots.size(), strings.size()).
template <class Slots> class StringTable {
public:
  using Word = typename Slots::Word;
  static constexpr std::uint64_t absent = ~std::uint64_t{0}, damaged = absent - 1;

  StringTable(StringList strings, std::span<const Word> slots) noexcept : strings_(strings), slots_(slots) {}

  std::size_t size() const noexcept { return strings_.size(); }
  std::size_t bytes() const noexcept { return strings_.bytes.size(); } // of all strings
  std::optional<std::string_view> at(std::size_t id) const noexcept { return strings_.at(id); }

  void prefetch_slot(std::uint64_t hash) const noexcept {
    __builtin_prefetch(&slots_[Slots::place(hash, 0, slots_.size())]);
  }
  void prefetch_offset(std::uint64_t id) const noexcept { __builtin_prefetch(&strings_.offsets[id]); }
  void prefetch_bytes(std::uint64_t id) const noexcept {
    if (const std::uint64_t from = strings_.offsets[id]; from < strings_.bytes.size())
      __builtin_prefetch(&strings_.bytes[from]);
  }

  // Where a search stands: `step` slots looked at, `id` the next string that may be it, `absent` or `damaged`.
  struct Probe {
    std::uint64_t hash;
    std::uint64_t step = 0;
    std::uint64_t id = absent;
  };

  // Moves the probe to its next candidate.
  void advance(Probe& probe) const noexcept {
    for (; probe.step < slots_.size(); ++probe.step) {
      const Word word = slots_[Slots::place(probe.hash, probe.step, slots_.size())];
      if (word == 0) break;
      if (!Slots::may_be(word, probe.hash)) continue;
      const std::uint64_t id = Slots::id(word);
      probe.id = id < size() ? id : damaged;
      ++probe.step;
      return;
    }
    probe.id = absent;
  }

  // Compares the candidate's bytes and goes on until they are equal; returns the id, `absent` or `damaged`.
  std::uint64_t settle(Probe probe, std::string_view text) const noexcept {
    while (probe.id < damaged) {
      const std::optional<std::string_view> candidate = strings_.at(probe.id);
      if (!candidate) return damaged;
      if (*candidate == text) return probe.id;
      advance(probe);
    }
    return probe.id;
  }

  std::uint64_t find(std::string_view text) const noexcept {
    Probe probe{xxh3_64(text.data(), text.size())};
    advance(probe);
    return settle(probe, text);
  }

private:
  StringList strings_;
  std::span<const Word> slots_;
};

// Two strings that are equal.
struct Twins {
  std::size_t first, second;
};

// Fills Slots::count(strings.size()) empty slots; stops at the first string that an earlier one equals.
// Throws Damaged when an offset leads outside. Hashes are computed in parallel; slots are the same for any number of
// threads, for strings are put in by rising number.
template <class Slots>
std::optional<Twins> fill_slots(const StringList& strings, std::span<typename Slots::Word> slots,
                                const Workers& workers = {}) {
  constexpr std::size_t kTask = 4096, kAhead = 16; // strings per task, and those whose slots are prefetched
  std::vector<std::uint64_t> hash(strings.size());
  parallel_for(workers, (hash.size() + kTask - 1) / kTask, [&](std::size_t task, unsigned) {
    for (std::size_t i = task * kTask; i < std::min(hash.size(), (task + 1) * kTask); ++i) {
      const std::optional<std::string_view> text = strings.at(i);
      if (!text) throw Damaged{};
      hash[i] = xxh3_64(text->data(), text->size());
    }
  });
  for (std::size_t id = 0; id < hash.size(); ++id) {
    if (id + kAhead < hash.size()) __builtin_prefetch(&slots[Slots::place(hash[id + kAhead], 0, slots.size())], 1);
    std::uint64_t at = Slots::place(hash[id], 0, slots.size());
    for (; slots[at] != 0; at = at + 1 == slots.size() ? 0 : at + 1) {
      const std::uint64_t other = Slots::id(slots[at]);
      if (hash[other] == hash[id] && strings.at(other) == strings.at(id)) return Twins{other, id};
    }
    slots[at] = Slots::word(hash[id], id);
  }
  return {};
}

} // namespace beamwood
