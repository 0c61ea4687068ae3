// A node's score and the candidates kept so far in, whether the node is worth opening out: the exact bound.
//
// Activations never raise a score, and nodes are opened best first. Once the b-th best candidate beats a node's own
// score, neither the node nor any after it can contribute: stop. At equal scores it goes on, for the order law then
// decides by id. So the bound leaves out work and changes no bit.
//
// It does not hold where scores can rise (identity, a discount), in layers with early leaves (they join the answers
// whatever the beam), and in the last layer of several trees (every child counts there).
#pragma once
#include "beamwood/engine/topk.hpp"
#include "beamwood/layout/forest.hpp"

namespace beamwood {

// ending: the layer is the last one of a tree that answers alone.
inline bool bound_holds(const Forest& forest, const TreeLayer& layer, bool ending) noexcept {
  return forest.activation.only_shrinks() && (layer.shape.label.empty() || ending);
}

// Whether no child of a node with this score can pass the bar of those kept: of the next beam, or in the last layer of
// the answers.
inline bool beaten(const Forest& forest, float score, bool last, const TopK& kept) noexcept {
  const float reach = last ? leaf_score(forest.activation.path, score) : score;
  return key_of(reach, 0) >> 32 > kept.bar() >> 32;
}

} // namespace beamwood
