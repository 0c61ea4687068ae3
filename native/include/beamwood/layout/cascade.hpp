// Layout `cascade` (ours): rows that point to the same feature's rows in the children's chunks. Views only.
//
// A query walks down the tree, so the answer to "where is feature j in this chunk?" was known one layer above. Each
// record holds, besides its weights, for every child whose own chunk has this feature the place of its record there.
// Only the root has an index (feature -> record); below it nothing is searched, hashed or compared, and no feature ids
// are stored:
//
//      root index:  feature 7 --.
//                               v
//      root chunk   [weights of 7 | child 2: +40 | child 5: +96]
//                                        |
//      chunk of 2   ...  +40 [weights of 7 | child 0: +12 ...]
//
// Where a child's chunk has a feature that its parent's lacks, the parent gets a record without weights, so that the
// thread never breaks. Rows keep rising feature order, so the sum law holds; and since a child's rows are those of its
// parent that go on there, in the same order, the features of all rows can be found again from the root down.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "beamwood/engine/csr.hpp"
#include "beamwood/engine/score.hpp"
#include "beamwood/layout/pages.hpp"
#include "beamwood/layout/record.hpp"
#include "beamwood/layout/sets.hpp"
#include "beamwood/layout/tree.hpp"

namespace beamwood {

inline constexpr std::uint32_t kNoRow = 0xffffffffu; // in the root index: no record for this feature

struct CascadeChunk {
  const std::uint32_t* words;
  std::uint64_t word_count;
  WeightCode code;
  bool paged = false;

  RecordForm form(std::uint32_t width, bool cascade) const noexcept { return {width, cascade, code}; }

  // False when its turns leave the chunk.
  [[gnu::always_inline]] bool pages(std::uint32_t width, Pages& out) const noexcept {
    out = {};
    if (!paged) return true;
    if (word_count == 0) return false;
    out = {words + 1, *words};
    return out.turns <= 0xffffu && Pages::words(out.turns, width) <= word_count;
  }
};

struct CascadeWeights {
  std::span<const std::uint64_t> start; // parents + 1: twice where each chunk's words begin, + 1 when it is paged
  std::span<const std::uint32_t> words;
  std::span<const std::uint32_t> root; // top layer only: for each feature the offset of its record, or kNoRow
  WeightKind kind = WeightKind::f32;
  std::span<const float> scale; // of bytes: one a chunk

  // False when the offsets leave the array.
  bool at(std::uint32_t parent, CascadeChunk& out) const noexcept {
    const std::uint64_t begin = start[parent] >> 1, end = start[parent + 1] >> 1;
    if (begin > end || end > words.size() - kTailWords) return false;
    out = {words.data() + begin,
           end - begin,
           {kind, kind == WeightKind::u8 ? scale[parent] : 1.0f},
           (start[parent] & 1) != 0};
    return true;
  }
};

// The lower bits of a row's place in the chunk of one child of a wide chunk, or kNoRow; `at` lies inside the chunk.
[[gnu::always_inline]] inline std::uint32_t follow_wide(const CascadeChunk& chunk, std::uint32_t at,
                                                        const SetForm& form, std::uint32_t child) noexcept {
  const std::uint32_t* const record = chunk.words + at;
  const std::uint64_t n = *record & 0xffffu, m = *record >> 16, set = 1 + form.words(n);
  const std::uint64_t size = set + form.words(m) + weight_words(chunk.code.kind, n);
  if (at + size + (m + 1) / 2 > chunk.word_count) return kNoRow;
  const Place place = form.bits(m) ? place_in_bitmap(record + set, child) : place_in_list(record + set, m, child);
  const bool there = place.there && place.nth < m; // a bitmap of more bits than it says leads nowhere
  const std::uint64_t i = there ? place.nth : 0;
  const std::uint32_t found = half_word(record + size, i);
  return there ? found : kNoRow;
}

// The row's place in the chunk of one child, or kNoRow when that chunk does not have the feature. `pages` are the chunk's.
[[gnu::always_inline]] inline std::uint32_t follow(const CascadeChunk& chunk, const Pages& pages, std::uint32_t at,
                                                   std::uint32_t width, std::uint32_t child) noexcept {
  if (at >= chunk.word_count) return kNoRow;
  std::uint32_t found;
  if (width <= kMaskWidth) {
    const MaskForm form(width, true);
    const std::uint32_t* const record = chunk.words + at;
    const std::uint32_t mask = form.children(record), bit = 1u << child;
    const auto weights = static_cast<std::uint64_t>(std::popcount(form.weights(record)));
    const auto nth = static_cast<std::uint64_t>(std::popcount(mask & (bit - 1)));
    found = half_word(record, form.place(weight_words(chunk.code.kind, weights), nth));
    if ((mask & bit) == 0) found = kNoRow;
  } else {
    found = follow_wide(chunk, at, SetForm(width), child);
  }
  return found == kNoRow || pages.turns == 0 ? found : found | pages.upper(at, child);
}

// Prefetches a record that will be read soon.
[[gnu::always_inline]] inline void prefetch(const CascadeChunk& chunk, std::uint32_t at) noexcept {
  const std::uint32_t* const record = chunk.words + at;
  __builtin_prefetch(record);
  __builtin_prefetch(record + 16);
}

// The rows of a query in some chunks, list behind list, in memory that grows and is kept. A row's lead is what its record
// in a narrow chunk says about children, side by side with those of other rows.
struct RowLists {
  std::vector<Placed> rows;
  std::vector<std::uint32_t> children, offsets; // leads: the child mask; where the offsets begin, in words of the chunk
  std::vector<std::uint32_t> picked;
  std::size_t used = 0;

  static constexpr std::size_t kSpare = 8; // numbers that vectors reach beyond a list's end

  // Where a list of up to `count` rows may be written; what is kept of it is added to `used`.
  Placed* room(std::size_t count) {
    if (rows.size() < used + count) rows.resize(2 * (used + count));
    return rows.data() + used;
  }
  void room_for_leads() {
    if (children.size() < rows.size() + kSpare)
      for (auto* const list : {&children, &offsets, &picked}) list->resize(rows.size() + kSpare);
  }
  const Placed* at(std::size_t begin) const noexcept { return rows.data() + begin; }
};

// Part of a RowLists: the rows of a query in one chunk.
struct RowList {
  // From so many rows on, their records do not fit the nearest cache: then leads are read once for all children.
  static constexpr std::size_t kLong = 400;

  std::size_t begin = 0, end = 0;
  bool leads = false; // have been read

  std::size_t size() const noexcept { return end - begin; }
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
// called for. Returns how many; `out` has room for all, and one more.
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

// Reads the leads of a list.
template <WeightKind kind, std::uint32_t widest>
inline void read_leads(const CascadeChunk& chunk, const RowList& list, RowLists& lists) noexcept {
  constexpr MaskForm form(widest, true);
  const Placed* const rows = lists.at(list.begin);
  std::uint32_t* const children = lists.children.data() + list.begin;
  std::uint32_t* const offsets = lists.offsets.data() + list.begin;
  for (std::size_t i = 0, count = list.size(); i < count; ++i) {
    const bool inside = rows[i].offset < chunk.word_count; // or accumulate has reported the damage
    const std::uint32_t at = inside ? rows[i].offset : 0;
    const std::uint32_t* const record = chunk.words + at;
    const auto weights = static_cast<std::uint64_t>(std::popcount(form.weights(record)));
    children[i] = inside ? form.children(record) : 0;
    offsets[i] = at + form.words + static_cast<std::uint32_t>(weight_words(kind, weights));
  }
}

// The same as follow_masked for long lists: the rows that go on are picked by their leads, many at a time.
template <bool first_in_head>
inline std::size_t follow_leads(const Kernels& kernels, const CascadeChunk& parent, const Pages& pages,
                                std::uint32_t child, const RowList& list, RowLists& lists, const CascadeChunk& chunk,
                                Placed* out) noexcept {
  const CascadeChunk to = chunk;
  const std::uint32_t* const words = parent.words;
  const Placed* const rows = lists.at(list.begin);
  const std::uint32_t* const children = lists.children.data() + list.begin;
  const std::uint32_t* const offsets = lists.offsets.data() + list.begin;
  const std::uint32_t* const picked = lists.picked.data();
  const std::uint32_t below = (1u << child) - 1;
  PageTurner turner(pages, child);
  const auto rows_here = static_cast<std::uint32_t>(list.size());
  const std::uint32_t count = kernels.pick(children, rows_here, child, lists.picked.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t row = picked[i];
    const auto nth = static_cast<std::uint64_t>(std::popcount(children[row] & below));
    std::uint64_t half = 2 * std::uint64_t{offsets[row]} + nth;
    if constexpr (first_in_head) half = nth == 0 ? 2 * std::uint64_t{rows[row].offset} + 1 : half - 1;
    const std::uint32_t place = half_word(words, half) | turner.upper(rows[row].offset);
    out[i] = {place, rows[row].value};
    prefetch(to, place);
  }
  return count;
}

// The same as follow_all for a long list of rows of a narrow chunk.
[[gnu::noinline]] inline std::size_t follow_long(const Kernels& kernels, const CascadeChunk& parent,
                                                 std::uint32_t width, std::uint32_t child, RowList& list,
                                                 RowLists& lists, const CascadeChunk& chunk, Placed* out) {
  Pages pages;
  if (!parent.pages(width, pages)) return 0; // accumulate has reported the damage
  const auto leads = [&]<WeightKind kind, std::uint32_t widest>() {
    if (!list.leads) lists.room_for_leads(), read_leads<kind, widest>(parent, list, lists);
    list.leads = true;
    return follow_leads<MaskForm(widest, true).first_in_head>(kernels, parent, pages, child, list, lists, chunk, out);
  };
  return with_form(parent.code.kind, width, leads);
}

// The same for a list of any length.
[[gnu::always_inline]] inline std::size_t follow_list(const Kernels& kernels, const CascadeChunk& parent,
                                                      std::uint32_t width, std::uint32_t child, RowList& list,
                                                      RowLists& lists, const CascadeChunk& chunk, Placed* out) {
  return list.size() >= RowList::kLong && width <= kMaskWidth
             ? follow_long(kernels, parent, width, child, list, lists, chunk, out)
             : follow_all(parent, width, child, lists.at(list.begin), list.size(), chunk, out);
}

} // namespace beamwood
