// The lists of a query in one tile in, what each label can come to at most, and the labels that may still win, out.
//
// A feature that many labels have is stored a second time (postings.hpp): a byte for each label, its weight in steps of
// 1/255 of the list's largest, rounded up. Vectors add up such lists many labels at once; the short lists are added one
// entry after the other. Sums are 16-bit numbers of a unit that the query's largest possible sum fills.
//
// The law: a bound is never too small. Each list adds its part rounded down, less than 1 unit below the true one, so the
// products of a label add up to less than (sum + number of lists) · unit; the steps before that are rounded up.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "beamwood/index/products.hpp"
#include "beamwood/isa.hpp"

namespace beamwood {

inline constexpr std::uint32_t kTogether = 64; // labels that the kernels take at once: counts are multiples of it

struct DenseKernels {
  // sums[i] = for all lists together code[i] * factor / 256, each rounded down.
  void (*add)(const std::uint8_t* const* codes, const std::uint16_t* factors, std::size_t lists, std::uint32_t count,
              std::uint16_t* sums) noexcept;
  // The largest of each kTogether sums.
  void (*tops)(const std::uint16_t* sums, std::uint32_t count, std::uint16_t* out) noexcept;
};

extern const DenseKernels kScalarDense;
#if defined(__x86_64__)
extern const DenseKernels kAvx2Dense;
inline constexpr KernelTables<DenseKernels> kDenseKernels{&kScalarDense, &kAvx2Dense};
#else
inline constexpr KernelTables<DenseKernels> kDenseKernels{&kScalarDense};
#endif

class DenseSums {
public:
  // Whether the lists of a tile are so long that bounds for all its labels cost less than to add them up.
  static bool pays(std::span<const PostingList* const> lists, std::uint32_t width) noexcept {
    std::uint64_t dense = 0;
    double most = 0;
    for (const PostingList* list : lists) {
      dense += list->codes ? list->piece.count : 0u;
      most += static_cast<double>(list->most);
    }
    return dense > width / 4 && lists.size() <= kMostLists && fits(most);
  }

  // Whether a list's codes bound its products: steps of very small numbers would be rounded to nothing.
  static bool bounds(const PostingList& list) noexcept { return list.codes && fits(static_cast<double>(list.most)); }

  // Above what one step of a list's codes stands for.
  static float step(const PostingList& list) noexcept {
    return static_cast<float>(static_cast<double>(list.most) * (1 + kUp) / 255);
  }

  // Adds up the lists of a tile, which pay. False: a list is damaged.
  bool add(const Postings& index, std::span<const PostingList* const> lists, std::uint32_t tile, Work& work) {
    count_ = (index.width(tile) + kTogether - 1) / kTogether * kTogether;
    sums_.resize(kTile), tops_.resize(count_ / kTogether);
    double most = 0;
    for (const PostingList* list : lists) most += static_cast<double>(list->most);
    unit_ = most * (1 + kUp) / kFull, lists_ = static_cast<double>(lists.size());
    codes_.clear(), factors_.clear();
    for (const PostingList* list : lists) {
      if (!list->codes) continue;
      const double factor = static_cast<double>(list->most) * (1 + kUp) / unit_ * (256.0 / 255.0);
      codes_.push_back(list->codes + static_cast<std::size_t>(tile) * kTile);
      factors_.push_back(static_cast<std::uint16_t>(factor + 1));
      work.blocks += 1, work.rows += count_, work.bytes += count_;
    }
    kernels_.add(codes_.data(), factors_.data(), codes_.size(), count_, sums_.data());
    const auto parts = static_cast<float>((1 + kUp) / unit_);
    for (const PostingList* list : lists) {
      const bool whole = list->codes || each_product(index, *list, work, [&](std::uint32_t place, float product) {
                           sums_[place] =
                               static_cast<std::uint16_t>(sums_[place] + static_cast<std::uint32_t>(product * parts));
                         });
      if (!whole) return false;
    }
    kernels_.tops(sums_.data(), count_, tops_.data());
    return true;
  }

  // The places of the k largest sums of allowed labels, in no order; fewer where there are not so many at hand.
  template <class Allowed> std::span<const std::uint16_t> best(std::uint32_t k, Allowed&& allowed) {
    if (tops_.size() < k) return {};
    ranked_ = tops_;
    std::nth_element(ranked_.begin(), ranked_.begin() + (k - 1), ranked_.end(), std::greater<>());
    if (ranked_[k - 1] == 0) return {};
    find(ranked_[k - 1]);
    std::erase_if(places_, [&](std::uint16_t place) { return !allowed(place); });
    if (places_.size() > k)
      std::nth_element(places_.begin(), places_.begin() + (k - 1), places_.end(),
                       [&](std::uint16_t a, std::uint16_t b) { return sums_[a] > sums_[b]; });
    return {places_.data(), std::min<std::size_t>(places_.size(), k)};
  }

  // Every place whose sum may reach `bar`, rising. grow: see index_search.hpp. False: all labels may.
  bool reaching(float bar, float grow, std::span<const std::uint16_t>& out) {
    const double least = static_cast<double>(bar) / (unit_ * static_cast<double>(grow)) - lists_ - 1;
    if (!(least >= 1)) return false;
    find(static_cast<std::uint16_t>(std::min(least, 65535.0)));
    out = places_;
    return true;
  }

  // Above what the products of a label come to.
  double bound(std::uint32_t place) const noexcept { return (static_cast<double>(sums_[place]) + lists_) * unit_; }

private:
  static bool fits(double most) noexcept { return most > 1e-25 && most < 1e37; }

  // The places of sums that are not below `least`, rising.
  void find(std::uint16_t least) {
    places_.clear();
    for (std::uint32_t group = 0; group < tops_.size(); ++group) {
      if (tops_[group] < least) continue;
      for (std::uint32_t place = group * kTogether; place < (group + 1) * kTogether; ++place)
        if (sums_[place] >= least) places_.push_back(static_cast<std::uint16_t>(place));
    }
  }

  static constexpr std::size_t kMostLists = 1000;
  static constexpr double kFull = 60000; // of 65,535: with what rounding up adds, no sum goes over
  static constexpr double kUp = 1e-6;    // more than what rounding of a weight, a product or a step can take away

  const DenseKernels& kernels_ = *kDenseKernels.on(best_isa());
  double unit_ = 1, lists_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint16_t> sums_, places_, tops_, ranked_, factors_;
  std::vector<const std::uint8_t*> codes_;
};

} // namespace beamwood
