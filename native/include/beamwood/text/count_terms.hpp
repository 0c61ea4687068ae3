// Texts in, every different term with the number of texts and of places it was seen in out: what fitting needs.
//
// The law: the result is the same for any number of threads and any cut of the texts into calls. Each worker counts
// into tables of its own; tables are added up at the end (whole numbers, so order cannot matter) and terms are sorted
// by bytes, which for UTF-8 is the order of code points and thus Python's order of str.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "beamwood/parallel.hpp"
#include "beamwood/text/terms.hpp"
#include "beamwood/text/vocabulary.hpp"

namespace beamwood {

// What is known of one term while counting.
struct TermCount {
  std::uint64_t hash;
  const char* bytes;
  std::uint64_t places;
  std::uint32_t length, texts, last_text;
};

// A growing hash of terms; it owns the terms' bytes.
class TermTable {
public:
  TermTable() = default;
  TermTable(TermTable&&) = default;
  TermTable& operator=(TermTable&&) = default;

  // Two steps towards a term whose cache misses may overlap with those of others.
  void prefetch_slot(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void prefetch_term(std::uint64_t hash) const noexcept {
    const std::uint64_t slot = slots_[hash & (slots_.size() - 1)];
    if (slot) __builtin_prefetch(&terms_[(slot & 0xFFFFFFFFu) - 1]);
  }

  // Adds one use of a term in text number `text`.
  void add(std::uint64_t hash, const char* bytes, std::size_t length, std::uint32_t text) {
    TermCount& term = find_or_make(hash, bytes, length);
    ++term.places;
    term.texts += term.last_text != text;
    term.last_text = text;
  }

  // Adds the counts of another table that saw other texts, and empties it.
  void absorb(TermTable&& other) {
    for (const TermCount& term : other.terms_) {
      TermCount& mine = find_or_make(term.hash, term.bytes, term.length);
      mine.places += term.places;
      mine.texts += term.texts;
    }
    other = TermTable();
  }

  std::span<const TermCount> terms() const noexcept { return terms_; }

private:
  static constexpr std::uint32_t no_text = 0xFFFFFFFFu;

  TermCount& find_or_make(std::uint64_t hash, const char* bytes, std::size_t length) {
    const std::uint64_t mask = slots_.size() - 1;
    std::uint64_t at = hash & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
      if ((slots_[at] ^ hash) >> 32) continue;
      TermCount& term = terms_[(slots_[at] & 0xFFFFFFFFu) - 1];
      if (term.hash == hash && term.length == length && std::memcmp(term.bytes, bytes, length) == 0) return term;
    }
    if (terms_.size() >= Vocabulary::max_terms) throw std::length_error("more than 2^31 - 1 different terms");
    slots_[at] = TermSlots::word(hash, terms_.size());
    terms_.push_back({hash, keep(bytes, length), 0, static_cast<std::uint32_t>(length), 0, no_text});
    if (2 * terms_.size() >= slots_.size()) grow();
    return terms_.back();
  }

  void grow() {
    slots_.assign(2 * slots_.size(), 0);
    const std::uint64_t mask = slots_.size() - 1;
    for (std::size_t id = 0; id < terms_.size(); ++id) {
      std::uint64_t at = terms_[id].hash & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = TermSlots::word(terms_[id].hash, id);
    }
  }

  // Copies the bytes into a page that never moves.
  const char* keep(const char* bytes, std::size_t length) {
    if (length > left_) {
      left_ = std::max(page_bytes, length);
      pages_.push_back(std::make_unique_for_overwrite<char[]>(left_));
      next_ = pages_.back().get();
    }
    char* const kept = next_;
    std::memcpy(kept, bytes, length);
    next_ += length;
    left_ -= length;
    return kept;
  }

  static constexpr std::size_t page_bytes = std::size_t{1} << 16;
  std::vector<TermCount> terms_;
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1024);
  std::vector<std::unique_ptr<char[]>> pages_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

// The sorted terms of one block, ready to become a vocabulary.
struct SortedTerms {
  std::vector<std::uint8_t> terms;
  std::vector<std::uint64_t> offsets;
  std::vector<double> texts, places;
};

class TermCounter {
public:
  explicit TermCounter(std::vector<TermRules> blocks) : blocks_(std::move(blocks)) {}
  TermCounter(TermCounter&&) = default;
  TermCounter& operator=(TermCounter&&) = default;

  // Counts these texts (they need not outlive the call).
  void add(std::span<const std::string_view> texts, const Workers& workers) {
    constexpr std::size_t texts_per_task = 128;
    if (texts.size() > 0xFFFFFFFEu - seen_) throw std::length_error("more than 2^32 - 2 texts");
    const std::size_t tasks = (texts.size() + texts_per_task - 1) / texts_per_task;
    while (counters_.size() < std::max<std::size_t>(1, std::min<std::size_t>(workers.threads, tasks)))
      counters_.push_back({std::vector<TermTable>(blocks_.size()), {}});
    parallel_for(workers, tasks, [&](std::size_t task, unsigned worker) {
      const std::size_t end = std::min(texts.size(), (task + 1) * texts_per_task);
      for (std::size_t i = task * texts_per_task; i < end; ++i)
        count_one(texts[i], seen_ + static_cast<std::uint32_t>(i), counters_[worker]);
    });
    seen_ += static_cast<std::uint32_t>(texts.size());
  }

  std::uint32_t texts() const noexcept { return seen_; }

  // The terms of one block that are in at least `fewest` and at most `most` texts. The block's counts are used up.
  SortedTerms finish(std::size_t block, double fewest, double most) {
    if (counters_.empty()) return {{}, {0}, {}, {}};
    TermTable all = std::move(counters_.front().tables[block]);
    for (std::size_t worker = 1; worker < counters_.size(); ++worker)
      all.absorb(std::move(counters_[worker].tables[block]));
    std::vector<Ordered> order;
    for (const TermCount& term : all.terms())
      if (term.texts >= fewest && term.texts <= most) order.push_back({head_of(term), &term});
    std::sort(order.begin(), order.end());
    return lay_out(order);
  }

private:
  struct PerWorker { // what one worker writes to
    std::vector<TermTable> tables;
    TermScratch scratch;
  };

  // A term with its first eight bytes as a number: most comparisons end there.
  struct Ordered {
    std::uint64_t head;
    const TermCount* term;
    bool operator<(const Ordered& other) const noexcept {
      if (head != other.head) return head < other.head;
      const int order = std::memcmp(term->bytes, other.term->bytes, std::min(term->length, other.term->length));
      return order != 0 ? order < 0 : term->length < other.term->length;
    }
  };

  static std::uint64_t head_of(const TermCount& term) noexcept {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < 8; ++i)
      head = head << 8 | (i < term.length ? static_cast<unsigned char>(term.bytes[i]) : 0u);
    return head;
  }

  void count_one(std::string_view text, std::uint32_t number, PerWorker& mine) const {
    struct Seen {
      std::uint64_t hash;
      const char* bytes;
      std::size_t length;
    };
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      TermTable& table = mine.tables[block];
      Seen group[32];
      std::size_t waiting = 0;
      const auto flush = [&] {
        const auto ready = std::span(group).first(std::exchange(waiting, 0));
        for (const Seen& seen : ready) table.prefetch_term(seen.hash);
        for (const Seen& seen : ready) table.add(seen.hash, seen.bytes, seen.length, number);
      };
      for_each_term(text, blocks_[block], mine.scratch, [&](const char* bytes, std::size_t length) {
        const std::uint64_t hash = xxh3_64(bytes, length);
        table.prefetch_slot(hash);
        group[waiting++] = {hash, bytes, length};
        if (waiting == std::size(group)) flush();
      });
      flush();
    }
    mine.scratch.trim();
  }

  static SortedTerms lay_out(std::span<const Ordered> order) {
    SortedTerms out;
    out.offsets.reserve(order.size() + 1);
    out.offsets.push_back(0);
    for (const Ordered& next : order) {
      out.terms.insert(out.terms.end(), next.term->bytes, next.term->bytes + next.term->length);
      out.offsets.push_back(out.terms.size());
      out.texts.push_back(next.term->texts);
      out.places.push_back(static_cast<double>(next.term->places));
    }
    return out;
  }

  std::vector<TermRules> blocks_;
  std::vector<PerWorker> counters_;
  std::uint32_t seen_ = 0;
};

} // namespace beamwood
