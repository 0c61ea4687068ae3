// One pass of dual coordinate descent over the rows of a parent, for eight siblings at a time.
//
// For one node the problem is  min over w:  ½‖w‖² + Σ_i C_i · loss(y_i · w·x_i).  Its dual has one variable alpha_i a row;
// w = Σ y_i alpha_i x_i is kept beside it, and a visit of row i solves for alpha_i exactly (Hsieh et al., ICML 2008, for the
// hinge losses; Yu, Huang and Lin, MLJ 2011, for the logistic one). Rows whose alpha sits at a bound with a gradient
// that holds it there are left out until the rest has converged ("shrinking").
//
// Siblings share their rows and differ only in the signs y_i, so eight of them are solved side by side: the weights
// of a feature lie together as eight lanes, a row is read once for all of them, and a visit costs one vector operation
// a non-zero. Each lane has its own alpha, its own set of active rows (a bit a row) and its own end.
//
// The law: lane by lane the arithmetic is that of the lane alone: sums over rising feature ids, no fused multiply-add.
// So the weights of a node do not depend on the instruction set or on how nodes are shared out.
#pragma once
#include <cstddef>
#include <cstdint>

#include "beamwood/gather.hpp"

namespace beamwood {

enum class Loss : int { squared_hinge = 0, hinge = 1, logistic = 2 };

inline constexpr std::size_t kLanes = 8;

// What a pass reads and writes. T is float, or double where eps asks for more digits than float has.
template <class T> struct Pass {
  // the gathered rows
  const std::uint64_t* start;
  const Entry* entry;
  const double* norm;           // x·x + bias², a row
  const std::uint8_t* positive; // bit l: the row is a positive of lane l
  // the state of the descent
  T* weight;            // features x lanes
  T* alpha;             // rows x lanes (logistic: alpha, then C - alpha)
  const T* cost;        // rows x lanes: C times what the row counts for the lane; null: C, or C_positive
  std::uint8_t* active; // bit l: lane l still visits the row
  std::uint8_t running; // bit l: lane l has not converged
  // the order of visits: rows in list[0..count); what stays active is written to kept
  const std::uint32_t* list;
  std::uint32_t* kept;
  std::size_t count;
  // the settings
  T bias;
  T C;
  bool bounded; // alpha <= cost (hinge) instead of alpha >= 0 alone (squared hinge)
  T inner_eps;  // logistic: how far Newton's method goes on one variable
  // lanes in and out: a long pass is made in pieces, each going on from what the one before left here
  alignas(64) T bias_weight[kLanes];
  alignas(64) T C_positive[kLanes];   // the C of a lane's positive rows
  alignas(64) T shrink_above[kLanes]; // the largest and smallest projected gradient of the pass before
  alignas(64) T shrink_below[kLanes];
  alignas(64) T largest[kLanes]; // of this pass
  alignas(64) T smallest[kLanes];
  std::uint8_t shrunk;        // bit l: lane l lost a row in this pass
  std::uint64_t newton_steps; // of all lanes (logistic)
  std::size_t kept_count;     // out: of this piece
};

// The loops, compiled once for each instruction set.
struct DescentKernels {
  void (*hinge_float)(Pass<float>&) noexcept;
  void (*hinge_double)(Pass<double>&) noexcept;
  void (*logistic)(Pass<double>&) noexcept;
};
extern const DescentKernels descent_baseline;
#if defined(__x86_64__)
extern const DescentKernels descent_avx2;
#endif

inline const DescentKernels& descent_kernels() noexcept {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  return avx2 ? descent_avx2 : descent_baseline;
#else
  return descent_baseline;
#endif
}

} // namespace beamwood
