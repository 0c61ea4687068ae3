// The support of a query and the support of a chunk (or of one column) in; the rows both have out.
//
// The law: matches come in rising feature order, each once, so that the sum that follows them is the one sum.
// Every matcher below finds the same matches; they differ only in what they touch on the way. A support is a list of
// rising feature ids, and what a matcher may hold besides (a hash index, a dense lookup) says where in that list an id
// stands. The list may come from a damaged file: ids may then be anything, but no matcher reads or writes outside.
#pragma once
#include <cstdint>

#include "beamwood/engine/csr.hpp"

namespace beamwood {

struct Match {
  std::uint32_t row; // place in the support
  float value;       // the query's value of that feature
};

// The non-empty rows of a chunk, or the non-zeros of a column; with the words of its hash index when it has one.
struct Support {
  const std::uint32_t* feature;
  std::uint32_t count;
  const std::uint32_t* index;
  std::uint64_t index_words;
};

enum class Matcher : std::uint8_t { march, binary, hash, dense };

} // namespace beamwood
