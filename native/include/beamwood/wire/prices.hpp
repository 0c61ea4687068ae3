// Times that questions took in, what the next one of their kind is expected to take out.
//
// The law: a price follows the median of its kind in small steps, so that times that are far too long, for the machine
// was busy, do not move it.
#pragma once
#include <cstddef>
#include <vector>

namespace beamwood {

class Prices {
public:
  static constexpr double untimed = 1e6;    // nanoseconds: of a kind that was never timed
  static constexpr double is_short = 150e3; // handing a question over and back costs about as much

  // The number of a new kind.
  std::size_t add() {
    prices_.push_back(0.0);
    return prices_.size() - 1;
  }
  std::size_t size() const noexcept { return prices_.size(); }

  // Nanoseconds of one question.
  double of(std::size_t kind) const { return prices_[kind] > 0.0 ? prices_[kind] : untimed; }

  void learn(std::size_t kind, double took) {
    double& price = prices_[kind];
    if (price > 0.0) price *= took > price ? dearer : took < price / 2 ? much_cheaper : 1 / dearer;
    else price = took > least ? took : least;
  }

private:
  static constexpr double dearer = 1.04, much_cheaper = 0.75; // the first time of a kind is often far too long
  static constexpr double least = 1.0;

  std::vector<double> prices_;
};

} // namespace beamwood
