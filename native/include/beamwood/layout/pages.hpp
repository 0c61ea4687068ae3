// Where a record lies in, the upper bits of its offsets out: offsets have 16 bits, chunks may be longer.
//
// The rows that go on in one child's chunk lie there in the order in which they lie here, so their places rise: it is
// enough to know from which place here on they have left each page of 65,536 words there. A chunk with a child chunk of
// several pages begins with these turns: their number q for each slot, then q for each, rising, 0xffffffff where there
// are none left.
#pragma once
#include <cstdint>

namespace beamwood {

struct Pages {
  const std::uint32_t* turn = nullptr; // of the first slot; null: offsets of 16 bits reach everything
  std::uint32_t turns = 0;             // a slot

  static constexpr std::uint64_t words(std::uint64_t turns, std::uint64_t slots) noexcept {
    return turns == 0 ? 0 : 1 + turns * slots;
  }

  [[gnu::always_inline]] std::uint32_t upper(std::uint32_t at, std::uint32_t slot) const noexcept {
    std::uint32_t page = 0;
    for (std::uint32_t i = 0; i < turns; ++i) page += turn[std::uint64_t{slot} * turns + i] <= at;
    return page << 16;
  }
};

// The same for one slot's rows, asked for one behind the other.
class PageTurner {
public:
  [[gnu::always_inline]] PageTurner(const Pages& pages, std::uint32_t slot) noexcept
      : turn_(pages.turn + std::uint64_t{slot} * pages.turns), end_(turn_ + pages.turns) {}

  [[gnu::always_inline]] std::uint32_t upper(std::uint32_t at) noexcept {
    while (turn_ != end_ && *turn_ <= at) ++turn_, page_ += 1u << 16;
    return page_;
  }

private:
  const std::uint32_t *turn_, *end_;
  std::uint32_t page_ = 0;
};

} // namespace beamwood
