// Hostile bytes: damaged copies, each on the heap with exactly its size, so that a sanitizer sees a read one byte
// behind the end.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace check {

template <class Byte = char> std::vector<Byte> on_heap(std::string_view text) { return {text.begin(), text.end()}; }

// Up to `longest` bytes, three of four from the alphabet.
inline std::string random_bytes(Random& random, std::size_t longest, std::string_view alphabet) {
  std::string bytes(random.below(longest + 1), '\0');
  for (char& c : bytes)
    c = random.chance(0.75) ? alphabet[random.below(alphabet.size())] : static_cast<char>(random.next());
  return bytes;
}

// A copy with some bytes flipped, cut out, doubled or cut off.
inline std::string damaged(Random& random, std::string text) {
  for (std::uint32_t times = random.between(1, 4); times > 0 && !text.empty(); --times) {
    const std::size_t at = random.below(text.size());
    switch (random.below(5)) {
    case 0: text[at] = static_cast<char>(random.next()); break;
    case 1: text[at] = static_cast<char>(text[at] ^ (1 << random.below(8))); break;
    case 2: text.erase(at, random.between(1, 4)); break;
    case 3: text.insert(at, text.substr(random.below(text.size()), random.between(1, 8))); break;
    default: text.resize(at); break;
    }
  }
  return text;
}

} // namespace check
