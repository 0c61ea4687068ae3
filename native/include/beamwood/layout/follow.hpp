// The rows of a query in a chunk in, those of them that go on in a child's chunk out: how a query goes down a cascade.
//
// A list is followed child by child. Where many children of a chunk are followed, or many rows, it pays to read what the
// records say about children only once: the links of the list, which lie side by side, mask behind mask, so that the
// rows that go on in one child are picked many at a time.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "beamwood/engine/csr.hpp"
#include "beamwood/engine/score.hpp"
#include "beamwood/layout/cascade.hpp"
#include "beamwood/layout/sets.hpp"

namespace beamwood {

inline constexpr std::uint32_t kMostMasks = 8; // of a wide chunk whose lists have links

// Part of a RowLists: the rows of a query in one chunk.
struct RowList {
  // From so many rows on, the records of a narrow chunk do not fit the nearest cache: then links are read.
  static constexpr std::size_t kLong = 400;
  static constexpr std::size_t kNoLinks = ~std::size_t{0};

  std::size_t begin = 0, end = 0;
  std::size_t links = kNoLinks; // where they begin, once they have been read
  std::uint32_t followed = 0;   // into so many children

  std::size_t size() const noexcept { return end - begin; }
};

// The rows of a query in some chunks, list behind list, in memory that grows and is kept.
struct RowLists {
  static constexpr std::size_t kSpare = 8; // numbers that vectors reach beyond a list's end

  std::vector<Placed> rows;
  std::size_t used = 0;
  // Links, for each 32 children of a chunk: which of them each row goes on in, and where the first of their offsets
  // lies, in half words from the start of the row's record.
  std::vector<std::uint32_t> children, offsets;
  std::size_t links_used = 0;
  std::vector<std::uint32_t> picked;

  void clear() noexcept { used = links_used = 0; }

  // Where a list of up to `count` rows may be written; what is kept of it is added to `used`.
  Placed* room(std::size_t count) {
    if (rows.size() < used + count) rows.resize(2 * (used + count));
    return rows.data() + used;
  }
  const Placed* at(std::size_t begin) const noexcept { return rows.data() + begin; }

  // Gives a list room for links of chunks with so many masks.
  void make_links(RowList& list, std::size_t masks) {
    list.links = links_used;
    links_used += masks * list.size();
    if (children.size() < links_used + kSpare)
      for (auto* const numbers : {&children, &offsets}) numbers->resize(2 * links_used + kSpare);
    if (picked.size() < list.size() + kSpare) picked.resize(2 * list.size() + kSpare);
  }
};

// The features of a query in, its rows in the root's chunk out; their records are prefetched. Returns how many; `out` has
// room for all, and one more.
inline std::size_t root_rows(const CascadeWeights& top, const Query& query, const CascadeChunk& chunk,
                             Placed* out) noexcept {
  const Placed* const first = out;
  for (std::uint32_t i = 0; i < query.count; ++i) {
    const std::uint32_t at = top.root[query.feature[i]];
    const bool there = at != kNoRow;
    *out = {at, query.value[i]};
    prefetch(chunk, at & (0u - std::uint32_t{there}));
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

// Rows of a chunk with masks, as `follow_all`. Whether a row goes on cannot be foreseen, so that no branch asks for it:
// a wrong guess would be found out only when the record has come from memory, and all that was begun behind it is lost.
// widest: 8, 16 or 32 slots.
template <WeightKind kind, std::uint32_t widest, bool paged>
inline std::size_t follow_masked(const CascadeChunk& parent, const Pages& pages, std::uint32_t child,
                                 const Placed* rows, std::size_t count, const CascadeChunk& chunk,
                                 Placed* out) noexcept {
  constexpr MaskForm form(widest, true);
  const Placed* const first = out;
  const std::uint32_t* const words = parent.words;
  const std::uint64_t word_count = parent.word_count;
  const CascadeChunk to = chunk;
  const std::uint32_t below = (1u << child) - 1;
  PageTurner turner(pages, child);
  for (const Placed* row = rows; row != rows + count; ++row) {
    if (row->offset >= word_count) continue; // accumulate has reported the damage
    const std::uint32_t* const record = words + row->offset;
    const std::uint32_t mask = form.children(record), there = mask >> child & 1;
    const auto nth = static_cast<std::uint64_t>(std::popcount(mask & below));
    const auto weights = static_cast<std::uint64_t>(std::popcount(form.weights(record)));
    std::uint32_t place = half_word(record, form.place(weight_words(kind, weights), nth));
    if constexpr (paged) place |= turner.upper(row->offset);
    *out = {place, row->value};
    prefetch(to, place & (0u - there));
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

// Calls function<kind of weights, widest>() for the form of a narrow chunk's records.
template <class Function> inline std::size_t with_form(WeightKind kind, std::uint32_t width, const Function& function) {
  const auto of_kind = [&]<WeightKind known>() {
    return width <= 8    ? function.template operator()<known, 8>()
           : width <= 16 ? function.template operator()<known, 16>()
                         : function.template operator()<known, 32>();
  };
  switch (kind) {
  case WeightKind::f32: return of_kind.template operator()<WeightKind::f32>();
  case WeightKind::f16: return of_kind.template operator()<WeightKind::f16>();
  case WeightKind::u8: break;
  }
  return of_kind.template operator()<WeightKind::u8>();
}

// Rows of a chunk of 33 to 128 siblings, as `follow_all`.
template <WeightKind kind>
inline std::size_t follow_sets(const CascadeChunk& parent, const Pages& pages, const SetForm form, std::uint32_t child,
                               const Placed* rows, std::size_t count, const CascadeChunk& chunk, Placed* out) noexcept {
  const Placed* const first = out;
  const std::uint32_t* const words = parent.words;
  const std::uint64_t word_count = parent.word_count;
  const CascadeChunk to = chunk;
  const ChildInSets look(child);
  PageTurner turner(pages, child);
  for (const Placed* row = rows; row != rows + count; ++row) {
    if (row->offset >= word_count) continue; // accumulate has reported the damage
    const std::uint32_t* const record = words + row->offset;
    const std::uint64_t n = *record & 0xffffu, m = *record >> 16;
    const std::uint64_t set = 1 + form.words(n), size = set + form.words(m) + weight_words(kind, n);
    const std::uint64_t inside = row->offset + size + (m + 1) / 2 <= word_count;
    const Place place = look.find(form, record + (set & (0 - inside)), m);
    const std::uint64_t there = std::uint64_t{place.there} & inside;
    const std::uint32_t lower = half_word(record, (2 * size + place.nth) & (0 - there));
    const std::uint32_t at = lower | turner.upper(row->offset);
    *out = {at, row->value};
    prefetch(to, at & (0u - static_cast<std::uint32_t>(there)));
    out += there;
  }
  return static_cast<std::size_t>(out - first);
}

// Rows of a wide chunk, as `follow_all`.
inline std::size_t follow_all_wide(const CascadeChunk parent, const Pages& pages, const std::uint32_t width,
                                   const std::uint32_t child, const Placed* const rows, const std::size_t count,
                                   const CascadeChunk chunk, Placed* const out) noexcept {
  const SetForm form(width);
  if (width <= 128) {
    switch (parent.code.kind) {
    case WeightKind::f32: return follow_sets<WeightKind::f32>(parent, pages, form, child, rows, count, chunk, out);
    case WeightKind::f16: return follow_sets<WeightKind::f16>(parent, pages, form, child, rows, count, chunk, out);
    case WeightKind::u8: return follow_sets<WeightKind::u8>(parent, pages, form, child, rows, count, chunk, out);
    }
  }
  PageTurner turner(pages, child);
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Placed row = rows[i];
    if (row.offset >= parent.word_count) continue; // accumulate has reported the damage
    const std::uint32_t lower = follow_wide(parent, row.offset, form, child), there = lower != kNoRow;
    const std::uint32_t at = lower | turner.upper(row.offset);
    out[found] = {at, row.value};
    prefetch(chunk, at & (0u - there));
    found += there;
  }
  return found;
}

// The rows of a query in a parent's chunk in, those of them that go on in one child's chunk out; their records are
// prefetched. Returns how many; `out` has room for all, and one more.
inline std::size_t follow_all(const CascadeChunk& parent, std::uint32_t width, std::uint32_t child, const Placed* rows,
                              std::size_t count, const CascadeChunk& chunk, Placed* out) noexcept {
  Pages pages;
  if (!parent.pages(width, pages)) return 0; // accumulate has reported the damage
  if (width > kMaskWidth) return follow_all_wide(parent, pages, width, child, rows, count, chunk, out);
  const auto masked = [&]<WeightKind kind, std::uint32_t widest>() {
    return pages.turns == 0 ? follow_masked<kind, widest, false>(parent, pages, child, rows, count, chunk, out)
                            : follow_masked<kind, widest, true>(parent, pages, child, rows, count, chunk, out);
  };
  return with_form(parent.code.kind, width, masked);
}

// Reads the links of a list of rows of a narrow chunk.
template <WeightKind kind, std::uint32_t widest>
inline void read_links(const CascadeChunk& chunk, const RowList& list, RowLists& lists) noexcept {
  constexpr MaskForm form(widest, true);
  const Placed* const rows = lists.at(list.begin);
  std::uint32_t* const children = lists.children.data() + list.links;
  std::uint32_t* const offsets = lists.offsets.data() + list.links;
  for (std::size_t i = 0, count = list.size(); i < count; ++i) {
    const bool inside = rows[i].offset < chunk.word_count; // or accumulate has reported the damage
    const std::uint32_t* const record = chunk.words + (inside ? rows[i].offset : 0);
    const auto weights = static_cast<std::uint64_t>(std::popcount(form.weights(record)));
    children[i] = inside ? form.children(record) : 0;
    offsets[i] = 2 * static_cast<std::uint32_t>(form.words + weight_words(kind, weights));
  }
}

// The same for a wide chunk: its sets become masks.
inline void read_wide_links(const CascadeChunk& chunk, std::uint32_t width, const RowList& list,
                            RowLists& lists) noexcept {
  const SetForm form(width);
  const Placed* const rows = lists.at(list.begin);
  const std::size_t count = list.size();
  std::uint32_t* const children = lists.children.data() + list.links;
  std::uint32_t* const offsets = lists.offsets.data() + list.links;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t mask[kMostMasks] = {};
    std::uint64_t half = 0;
    if (rows[i].offset < chunk.word_count) {
      const std::uint32_t* const record = chunk.words + rows[i].offset;
      const std::uint64_t n = *record & 0xffffu, m = *record >> 16, set = 1 + form.words(n);
      const std::uint64_t size = set + form.words(m) + weight_words(chunk.code.kind, n);
      const bool inside = rows[i].offset + size + (m + 1) / 2 <= chunk.word_count;
      if (inside && form.bits(m)) std::copy_n(record + set, form.bitmap_words, mask);
      for (std::uint64_t j = 0; inside && !form.bits(m) && j < m; ++j) {
        const std::uint32_t child = half_word(record + set, j);
        if (child < width) mask[child / 32] |= 1u << (child % 32);
      }
      std::uint64_t set_bits = 0;
      for (const std::uint32_t one : mask) set_bits += static_cast<unsigned>(std::popcount(one));
      if (set_bits != m) std::fill(std::begin(mask), std::end(mask), 0u); // a damaged set leads nowhere
      half = 2 * size;
    }
    for (std::uint32_t word = 0; word < form.bitmap_words; ++word) {
      children[word * count + i] = mask[word];
      offsets[word * count + i] = static_cast<std::uint32_t>(half);
      half += static_cast<unsigned>(std::popcount(mask[word]));
    }
  }
}

// As `follow_all`, by the links of the list.
template <bool first_in_head>
inline std::size_t follow_links(const Kernels& kernels, const CascadeChunk& parent, const Pages& pages,
                                std::uint32_t child, const RowList& list, RowLists& lists, const CascadeChunk& chunk,
                                Placed* out) noexcept {
  const CascadeChunk to = chunk;
  const std::uint32_t* const words = parent.words;
  const Placed* const rows = lists.at(list.begin);
  const std::size_t masks = list.links + child / kMaskWidth * list.size();
  const std::uint32_t* const children = lists.children.data() + masks;
  const std::uint32_t* const offsets = lists.offsets.data() + masks;
  const std::uint32_t* const picked = lists.picked.data();
  const std::uint32_t bit = child % kMaskWidth, below = (1u << bit) - 1;
  PageTurner turner(pages, child);
  const auto rows_here = static_cast<std::uint32_t>(list.size());
  const std::uint32_t count = kernels.pick(children, rows_here, bit, lists.picked.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t row = picked[i];
    const auto nth = static_cast<std::uint64_t>(std::popcount(children[row] & below));
    std::uint64_t half = offsets[row] + nth;
    if constexpr (first_in_head) half = nth == 0 ? 1 : half - 1;
    const std::uint32_t place = half_word(words + rows[row].offset, half) | turner.upper(rows[row].offset);
    out[i] = {place, rows[row].value};
    prefetch(to, place);
  }
  return count;
}

[[gnu::noinline]] inline std::size_t follow_with_links(const Kernels& kernels, const CascadeChunk& parent,
                                                       std::uint32_t width, std::uint32_t child, RowList& list,
                                                       RowLists& lists, const CascadeChunk& chunk, Placed* out) {
  Pages pages;
  if (!parent.pages(width, pages)) return 0; // accumulate has reported the damage
  const bool unread = list.links == RowList::kNoLinks;
  if (unread) lists.make_links(list, (width + kMaskWidth - 1) / kMaskWidth);
  if (width > kMaskWidth) {
    if (unread) read_wide_links(parent, width, list, lists);
    return follow_links<false>(kernels, parent, pages, child, list, lists, chunk, out);
  }
  const auto narrow = [&]<WeightKind kind, std::uint32_t widest>() {
    if (unread) read_links<kind, widest>(parent, list, lists);
    return follow_links<MaskForm(widest, true).first_in_head>(kernels, parent, pages, child, list, lists, chunk, out);
  };
  return with_form(parent.code.kind, width, narrow);
}

// As `follow_all`, in the quicker way.
[[gnu::always_inline]] inline std::size_t follow_list(const Kernels& kernels, const CascadeChunk& parent,
                                                      std::uint32_t width, std::uint32_t child, RowList& list,
                                                      RowLists& lists, const CascadeChunk& chunk, Placed* out) {
  const bool again = list.followed++ > 0;
  const bool links = width <= kMaskWidth ? list.size() >= RowList::kLong : again && width <= kMostMasks * kMaskWidth;
  return links ? follow_with_links(kernels, parent, width, child, list, lists, chunk, out)
               : follow_all(parent, width, child, lists.at(list.begin), list.size(), chunk, out);
}

} // namespace beamwood
