// A text in, one sparse row out: terms → columns → counts → tf-idf weights → norm, in blocks side by side.
//
// The law: a row depends on the text and the vocabulary only; ids rise, none twice; sums run in double over rising ids
// and each value is rounded to float32 once, at the end. Known terms are looked up in groups so that the cache misses
// of one group overlap. A block with `letters` also counts, for a word it does not know, the shares of the words that may
// have been meant (guess.hpp); a text whose words are all known has the same row with and without them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "beamwood/life/tally.hpp"
#include "beamwood/text/guess.hpp"
#include "beamwood/text/natural_log.hpp"
#include "beamwood/text/terms.hpp"
#include "beamwood/text/vocabulary.hpp"

namespace beamwood {

enum class Norm : std::uint8_t { none, l1, l2 };

struct WeighRules {
  bool binary = false;
  bool sublinear_tf = false;
  Norm norm = Norm::l2;
};

// Memory of one thread, reused for each text.
struct TextScratch {
  TermScratch terms;
  std::vector<std::uint32_t> found; // columns of one block, repeated as often as the term was seen
  std::vector<std::string_view> unknown;
  std::vector<Guess> guesses; // of one block, ids rising
  std::vector<double> weights;
  std::uint64_t had = 0, lacked = 0; // terms of all texts since they were last counted (Vectorizer::count)
};

namespace detail {

// Gathers terms and looks them up in groups: slots first, then candidates, then bytes.
class GroupedLookup {
public:
  // unknown: where terms go that the vocabulary does not have; nullptr: nowhere.
  GroupedLookup(const Vocabulary& vocabulary, std::vector<std::uint32_t>& found, std::vector<std::string_view>* unknown)
      : vocabulary_(vocabulary), found_(found), unknown_(unknown) {}

  void operator()(const char* bytes, std::size_t length) {
    const std::uint64_t hash = xxh3_64(bytes, length);
    vocabulary_.prefetch_slot(hash);
    group_[waiting_++] = {bytes, length, {hash}};
    if (waiting_ == group_.size()) flush();
  }
  // False: an array of the vocabulary is damaged.
  bool finish() {
    flush();
    return whole_;
  }
  std::size_t absent() const noexcept { return absent_; }

private:
  struct LookUp {
    const char* bytes;
    std::size_t length;
    Vocabulary::Probe probe;
  };

  void flush() {
    const auto group = std::span(group_).first(std::exchange(waiting_, 0));
    for (LookUp& term : group) {
      vocabulary_.advance(term.probe);
      if (term.probe.id < Vocabulary::damaged) vocabulary_.prefetch_term(term.probe.id);
    }
    for (const LookUp& term : group)
      if (term.probe.id < Vocabulary::damaged) vocabulary_.prefetch_bytes(term.probe.id);
    for (const LookUp& term : group) {
      const std::uint64_t id = vocabulary_.settle(term.probe, {term.bytes, term.length});
      if (id < Vocabulary::damaged) {
        found_.push_back(static_cast<std::uint32_t>(id));
      } else if (id == Vocabulary::absent) {
        ++absent_;
        if (unknown_ && unknown_->size() < Guesser::most_words) unknown_->push_back({term.bytes, term.length});
      }
      whole_ &= id != Vocabulary::damaged;
    }
  }

  const Vocabulary& vocabulary_;
  std::vector<std::uint32_t>& found_;
  std::vector<std::string_view>* unknown_;
  std::array<LookUp, 32> group_;
  std::size_t waiting_ = 0, absent_ = 0;
  bool whole_ = true;
};

inline double norm_of(std::span<const double> weights, Norm norm) noexcept {
  double sum = 0;
  for (const double w : weights) sum += norm == Norm::l2 ? w * w : std::abs(w);
  return norm == Norm::l2 ? std::sqrt(sum) : sum;
}

} // namespace detail

class Vectorizer {
public:
  struct Block {
    TermRules terms;
    WeighRules weigh;
    Vocabulary vocabulary;
    std::span<const std::uint32_t> letters{}; // for guesses; none: unknown words do not count
    std::shared_ptr<NearWords> near{};        // made by the vectorizer
  };

  // norm: of the whole row, once its blocks stand side by side, each with the norm of its own rules.
  explicit Vectorizer(std::vector<Block> blocks, Norm norm = Norm::none) : blocks_(std::move(blocks)), norm_(norm) {
    for (Block& block : blocks_) {
      columns_ += block.vocabulary.size();
      if (!block.letters.empty()) block.near = std::make_shared<NearWords>(block.vocabulary);
    }
    if (columns_ > Vocabulary::max_terms) throw std::invalid_argument("the blocks have more than 2^31 - 1 terms");
  }

  std::size_t columns() const noexcept { return columns_; }

  // Appends the text's row to ids (rising) and values. Allocates only while the vectors and the scratch still grow.
  // Returns false, with ids and values as they were, when the vocabulary's arrays are damaged.
  // guess: false for texts that a model learns from, where an unknown word is one that was left out on purpose.
  [[nodiscard]] bool append_one(std::string_view utf8, TextScratch& scratch, std::vector<std::uint32_t>& ids,
                                std::vector<float>& values, bool guess = true) const {
    const std::size_t before = ids.size();
    std::uint32_t first_column = 0;
    bool whole = true;
    for (const Block& block : blocks_) {
      whole = whole && append_block(block, first_column, utf8, scratch, ids, values, guess);
      first_column += static_cast<std::uint32_t>(block.vocabulary.size());
    }
    scratch.terms.trim();
    if (!whole) ids.resize(before), values.resize(before);
    if (norm_ != Norm::none) divide_by_norm(std::span(values).subspan(before), scratch);
    return whole;
  }

  // The same for a row of its own: ids and values are cleared first. Text with no known term gives an empty row.
  [[nodiscard]] bool transform_one(std::string_view utf8, TextScratch& scratch, std::vector<std::uint32_t>& ids,
                                   std::vector<float>& values) const {
    ids.clear();
    values.clear();
    return append_one(utf8, scratch, ids, values);
  }

  // Adds the terms of a scratch's texts to those of all queries so far.
  void count(TextScratch& scratch) const noexcept {
    terms_->add(std::exchange(scratch.had, 0), std::exchange(scratch.lacked, 0));
  }
  TermTally& terms() const noexcept { return *terms_; }

private:
  static bool append_block(const Block& block, std::uint32_t first_column, std::string_view utf8, TextScratch& scratch,
                           std::vector<std::uint32_t>& ids, std::vector<float>& values, bool guess) {
    scratch.found.clear();
    scratch.unknown.clear();
    scratch.guesses.clear();
    detail::GroupedLookup lookup(block.vocabulary, scratch.found,
                                 guess && !block.letters.empty() ? &scratch.unknown : nullptr);
    for_each_term(utf8, block.terms, scratch.terms, lookup);
    if (!lookup.finish() || !append_guesses(block, scratch)) return false;
    scratch.had += scratch.found.size();
    scratch.lacked += lookup.absent();
    std::sort(scratch.found.begin(), scratch.found.end());
    scratch.weights.clear();
    const auto& found = scratch.found;
    const auto& guesses = scratch.guesses;
    for (std::size_t at = 0, guessed = 0; at != found.size() || guessed != guesses.size();) {
      const bool seen = at != found.size() && (guessed == guesses.size() || found[at] <= guesses[guessed].id);
      const std::uint32_t id = seen ? found[at] : guesses[guessed].id;
      const std::size_t first = at;
      while (at != found.size() && found[at] == id) ++at;
      double times = static_cast<double>(at - first);
      for (; guessed != guesses.size() && guesses[guessed].id == id; ++guessed) times += guesses[guessed].share;
      const double weight = weigh(block, id, times);
      if (!std::isfinite(weight)) return false;
      scratch.weights.push_back(weight);
      ids.push_back(first_column + id);
    }
    const double norm = block.weigh.norm == Norm::none ? 0 : detail::norm_of(scratch.weights, block.weigh.norm);
    for (const double w : scratch.weights) values.push_back(static_cast<float>(norm > 0 ? w / norm : w));
    return true;
  }

  // What the unknown words of one block may have meant. False: the vocabulary's arrays are damaged.
  static bool append_guesses(const Block& block, TextScratch& scratch) {
    if (scratch.unknown.empty()) return true;
    Guesser guesser(block.vocabulary, block.letters, block.near.get());
    for (const std::string_view word : scratch.unknown)
      if (!guesser.append(word, scratch.guesses)) return false;
    std::sort(scratch.guesses.begin(), scratch.guesses.end(), [](const Guess& a, const Guess& b) {
      return a.id != b.id ? a.id < b.id : a.share < b.share; // so that their sum has one order
    });
    return true;
  }

  void divide_by_norm(std::span<float> values, TextScratch& scratch) const {
    scratch.weights.assign(values.begin(), values.end());
    const double norm = detail::norm_of(scratch.weights, norm_);
    if (norm > 0)
      for (float& v : values) v = static_cast<float>(static_cast<double>(v) / norm);
  }

  // times: how often the term was seen, and the shares of guesses that it may have been meant.
  static double weigh(const Block& block, std::uint32_t id, double times) noexcept {
    double tf = block.weigh.binary ? std::min(1.0, times) : times;
    if (block.weigh.sublinear_tf && tf > 1) tf = 1.0 + natural_log(tf);
    return tf * block.vocabulary.idf(id);
  }

  std::vector<Block> blocks_;
  Norm norm_;
  std::size_t columns_ = 0;
  std::shared_ptr<TermTally> terms_ = std::make_shared<TermTally>();
};

} // namespace beamwood
