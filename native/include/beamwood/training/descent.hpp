// One pass of dual coordinate descent over the rows of a parent, for eight siblings at a time.
//
// For one node the problem is  min over w:  ½‖w‖² + Σ_i C_i · loss(y_i · w·x_i).  Its dual has one variable alpha_i per row;
// w = Σ y_i alpha_i x_i is kept beside it, and a visit of row i solves for alpha_i exactly (Hsieh et al., ICML 2008, for the
// hinge losses; Yu, Huang and Lin, MLJ 2011, for the logistic one). A row whose alpha sits at a bound, with a gradient
// that holds it there, twice in a row, is left out until the rest has converged ("shrinking").
//
// A pass also tells how far the optimum is. The duality gap is a sum over rows; with the squared hinge, row i adds at most
// C_i · (gradient of alpha_i)², with the hinge |gradient| times the way alpha_i has left to the bound it is pushed to.
//
// Siblings share their rows and differ only in the signs y_i, so eight of them are solved side by side: the weights
// of a feature lie together as eight lanes, a row is read once for all of them, and a visit costs one vector operation
// per non-zero. A feature that only one row has needs no weights: its share of w·x is y · alpha · x², which is kept
// with that row. Each lane has its own alpha, its own set of active rows (one bit per row) and its own end.
//
// The law: each lane computes what it would compute without the others: sums over rising feature ids, no fused multiply-add.
// So the weights of a node do not depend on the instruction set or on which worker learns them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "beamwood/training/gather.hpp"

namespace beamwood {

enum class Loss : int { squared_hinge = 0, hinge = 1, logistic = 2 };

inline constexpr std::size_t kLanes = 8;

// A row of the parent as one group of siblings sees it: all that a visit touches, but for the entries, on one cache line
// (float) or two.
template <class T> struct alignas(64) Visited {
  T alpha[kLanes];
  std::uint64_t first;   // of its entries
  std::uint32_t entries; // how many
  T norm;                // x·x + bias²
  T own;                 // Σ of squares of the features that no other row has
  std::uint8_t positive; // bit l: the row is a positive of lane l
  std::uint8_t member;   // bit l: lane l learns from the row
  std::uint8_t active;   // bit l: lane l still visits it
  std::uint8_t held;     // bit l: at lane l's last visit alpha was held at a bound
};

// What a pass reads and writes. T is float, or double where eps asks for more digits than float has.
template <class T> struct Pass {
  Visited<T>* row;
  const Entry* entry;
  T* weight;            // features x lanes
  T* rest;              // rows x lanes: C - alpha (logistic)
  const T* cost;        // rows x lanes: C times what the row counts for the lane; null: C, or C_positive
  std::uint8_t running; // bit l: lane l has not converged
  // the order of visits: rows in list[0..count); what stays active is written to kept
  const std::uint32_t* list;
  std::uint32_t* kept;
  std::size_t count;
  // the settings
  T bias;
  T C;
  bool far;     // the weights do not fit the nearer caches: prefetch them
  bool bounded; // alpha <= cost (hinge) instead of only alpha >= 0 (squared hinge)
  T inner_eps;  // logistic: how far Newton's method goes on one variable
  // lanes in and out: a long pass is made in pieces, each going on from what the one before left here
  alignas(64) T bias_weight[kLanes];
  alignas(64) T C_positive[kLanes]; // the C of a lane's positive rows
  alignas(64) T largest[kLanes];    // projected gradient of this pass
  alignas(64) T smallest[kLanes];
  alignas(64) T gap[kLanes];  // out: what the rows of this piece add to the duality gap
  alignas(64) T gain[kLanes]; // out: by how much the sum of this piece's alphas grew
  std::uint8_t shrunk;        // bit l: lane l lost a row in this pass
  std::uint64_t newton_steps; // of all lanes (logistic)
  std::size_t kept_count;     // out: of this piece
};

} // namespace beamwood
