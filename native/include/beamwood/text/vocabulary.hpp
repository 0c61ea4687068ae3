// vocabulary.hpp — terms in, their column numbers and weights out: a string table and, where not all are 1, an idf each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "beamwood/strings.hpp"

namespace beamwood {

class Vocabulary : public StringTable<TermSlots> {
public:
  static constexpr std::size_t max_terms = TermSlots::most; // columns of scipy matrices are int32

  // Only the lengths of the arrays are checked here; throws std::invalid_argument when they do not fit together.
  static Vocabulary checked(std::span<const std::uint8_t> terms, std::span<const std::uint64_t> offsets,
                            std::span<const std::uint64_t> slots, std::span<const double> idf) {
    if (offsets.empty()) throw std::invalid_argument("the vocabulary has no offsets");
    const std::size_t count = offsets.size() - 1;
    if (count > max_terms) throw std::invalid_argument("the vocabulary has more than 2^31 - 1 terms");
    if (!TermSlots::fits(slots.size(), count))
      throw std::invalid_argument("the vocabulary's hash has a wrong number of slots");
    if (!idf.empty() && idf.size() != count) throw std::invalid_argument("the vocabulary needs one idf per term");
    return {{terms, offsets}, slots, idf};
  }

  double idf(std::size_t id) const noexcept { return idf_.empty() ? 1.0 : idf_[id]; }

  void prefetch_term(std::uint64_t id) const noexcept {
    prefetch_offset(id);
    if (!idf_.empty()) __builtin_prefetch(&idf_[id]);
  }

private:
  Vocabulary(StringList terms, std::span<const std::uint64_t> slots, std::span<const double> idf)
      : StringTable(terms, slots), idf_(idf) {}

  std::span<const double> idf_;
};

} // namespace beamwood
