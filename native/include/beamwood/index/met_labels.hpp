// Labels of a tile that were met, with their sums so far, in; those that may still win out.
//
// While lists are added the sums lie in an array with a place for each label of the tile. Then they are taken out of it, side
// by side, and what follows only walks over those: the large array is touched once for each label met, and its sums are
// zeros again.
//
// The law: a label is left out only if its sum and all that the lists not yet looked at can bring, times `grow`
// (index_search.hpp), stay below `need`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace beamwood {

class MetLabels {
public:
  std::uint32_t count() const noexcept { return count_; }
  std::span<const std::uint16_t> places() const noexcept { return {places_.data(), count_}; }
  std::uint16_t place(std::uint32_t c) const noexcept { return places_[c]; }
  // That of a label some way behind, whose memory is worth prefetching.
  std::uint16_t ahead_of(std::uint32_t c) const noexcept { return places_[std::min(c + kAhead, count_ - 1)]; }
  float sum(std::uint32_t c) const noexcept { return sums_[c]; } // once taken

  void clear() noexcept { count_ = 0; }
  // Room for so many more: write to it, then say how many there are.
  std::uint16_t* room(std::uint32_t more) {
    if (places_.size() <= count_ + more) places_.resize(count_ + more + 1), sums_.resize(places_.size());
    return places_.data();
  }
  float* sums() noexcept { return sums_.data(); }
  void set_count(std::uint32_t count) noexcept { count_ = count; }

  // What a label needs to stay.
  struct Bar {
    float rest, grow, need; // rest: what the lists not yet looked at can bring
    bool reached(float sum) const noexcept { return (sum + rest) * grow >= need; }
  };

  // Takes the sums of the labels met out of those of the tile, which are zeros again; keeps labels that may still win.
  void take(float* tile, Bar bar) {
    keep_if(bar, [&](std::uint32_t, std::uint16_t place) { return std::exchange(tile[place], 0.0f); });
  }
  // Puts them back, for a list that is added whole.
  void put(float* tile) const noexcept {
    for (std::uint32_t c = 0; c < count_; ++c) tile[places_[c]] = sums_[c];
  }
  // Adds product(c, place) to each and keeps those that may still win.
  template <class Product> void add(Bar bar, Product&& product) {
    keep_if(bar, [&](std::uint32_t c, std::uint16_t place) { return sums_[c] + product(c, place); });
  }

private:
  static constexpr std::uint32_t kAhead = 12;

  template <class Sum> void keep_if(Bar bar, Sum&& sum_of) {
    std::uint16_t* const places = places_.data();
    float* const sums = sums_.data();
    std::uint32_t n = 0;
    for (std::uint32_t c = 0; c < count_; ++c) {
      const std::uint16_t place = places[c];
      const float sum = sum_of(c, place);
      places[n] = place, sums[n] = sum;
      n += static_cast<std::uint32_t>(bar.reached(sum));
    }
    count_ = n;
  }

  std::uint32_t count_ = 0;
  std::vector<std::uint16_t> places_;
  std::vector<float> sums_;
};

} // namespace beamwood
