// Times that questions took in, what the next one of their kind is expected to take out.
//
// The law: an estimate follows the median of its kind in small steps, so that times that are far too long, for the
// machine was busy, do not move it. The first time of a kind is often such a one, for its code and data are cold: it is
// not believed beyond what an untimed kind is taken for, until the second one has confirmed it. An estimate is one of a
// unit of work: a long text, many texts and many hits are many units.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace beamwood {

class Costs {
public:
  static constexpr double untimed = 1e6;    // nanoseconds: of a question whose kind was never timed
  static constexpr double is_short = 150e3; // handing a question over and back takes about as long

  // Units of work of some queries with so many bytes of text in all, of which each asks for k hits.
  static double units(double queries, double bytes, double k) noexcept {
    return queries * (1.0 + k / hits_per_unit) + bytes / bytes_per_unit;
  }

  // The number of a new kind.
  std::size_t add() {
    costs_.push_back(0.0);
    firsts_.push_back(0.0);
    return costs_.size() - 1;
  }
  std::size_t size() const noexcept { return costs_.size(); }

  // Nanoseconds of a question with so many units; of one of a kind that was never timed, whatever its units are.
  double of(std::size_t kind, double units) const { return costs_[kind] > 0.0 ? costs_[kind] * units : untimed; }

  void learn(std::size_t kind, double took) {
    double& cost = costs_[kind];
    double& first = firsts_[kind];
    if (cost == 0.0) {
      first = std::max(took, least);
      cost = std::min(first, untimed);
    } else if (first > 0.0) {
      cost = std::min(first, std::max(took, least));
      first = 0.0;
    } else {
      cost *= took > cost ? dearer : took < cost / 2 ? much_cheaper : 1 / dearer;
    }
  }

private:
  static constexpr double dearer = 1.04, much_cheaper = 0.75;
  static constexpr double least = 1.0;
  static constexpr double hits_per_unit = 32.0, bytes_per_unit = 256.0; // about as long as a short search

  std::vector<double> costs_;
  std::vector<double> firsts_; // the first time of a kind, until there is a second
};

} // namespace beamwood
