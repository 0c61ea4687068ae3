// One query and a tree in, the labels it reaches out, to a sink: beam search (Algorithm 1), layer by layer.
//
// Rules where the paper is silent: a label reached early goes to the sink and takes no place in the beam; a score of 0 is
// a candidate like any other; the last layer gives every child of the beam to the sink.
//
// An opener (open_cascade.hpp, open_blocks.hpp) makes the sums, the scorer the scores; the beam says what is worth
// opening, the sink keeps the labels.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "beamwood/engine/beam.hpp"

namespace beamwood {

class Walk {
public:
  // Gives the labels that tree t reaches to `sink`. The opener was started for tree and query. top: what `top_bundle`
  // found for this query, if it was asked before. False: the model's arrays are damaged.
  template <class Opener, class Sink>
  bool run(const Forest& forest, std::size_t t, std::uint32_t beam, bool bound, Opener& opener, Scorer& scorer,
           Sink& sink, std::span<const Key> top = {}) {
    std::size_t l = 0;
    beam_.start(forest, t, beam, bound);
    if (!top.empty()) {
      std::uint32_t root;
      if (!opener.find(0, 0, Opener::kUnknown, root)) return false;
      beam_.set_nodes(top);
      l = forest.trees[t].bundle(0).layers;
    }
    return open_layers(l, forest.trees[t].layers.size(), opener, scorer, sink);
  }

  // Whether `top_bundle` can be asked: there is enough below it to make up for the trouble.
  static bool has_top(const Forest& forest) noexcept {
    const Tree& tree = forest.trees[0];
    const Bundle bundle = tree.bundle(0);
    for (std::size_t step = 0; step < bundle.layers; ++step)
      if (!bundle.shape[step]->label.empty()) return false;
    return tree.layers.size() > bundle.layers + 1;
  }

  // The best nodes of the last layer of the first tree's top bundle, in rank order. False: damaged.
  template <class Opener>
  bool top_bundle(const Forest& forest, std::uint32_t beam, bool bound, Opener& opener, Scorer& scorer,
                  std::vector<Key>& keys) {
    beam_.start(forest, 0, beam, bound);
    none_.reset(forest, 1);
    if (!open_layers(0, forest.trees[0].bundle(0).layers, opener, scorer, none_)) return false;
    keys = beam_.nodes();
    return true;
  }

private:
  template <class Opener, class Sink>
  bool open_layers(std::size_t from, std::size_t to, Opener& opener, Scorer& scorer, Sink& sink) {
    for (std::size_t l = from; l < to; ++l) {
      scorer.check_stop();
      if (!beam_.enter(l) || !open_layer(l, opener, scorer, sink)) return false;
      beam_.leave();
    }
    return true;
  }

  template <class Opener, class Sink> bool open_layer(std::size_t l, Opener& opener, Scorer& scorer, Sink& sink) {
    const std::vector<Key>& nodes = beam_.nodes();
    std::uint32_t number = 0, ahead = 0;
    bool found = false; // the rows of the node that comes next
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Fate fate = beam_.fate_of(nodes[i], scorer, sink);
      if (fate == Fate::left_out) return true; // and so are those after it
      if (fate == Fate::put_off) {
        sink.put_off(beam_.met(nodes[i]));
        found = false; // they may have been found ahead, before the bar rose
        continue;
      }
      if (found) number = ahead;
      else if (!opener.find(l, id_of(nodes[i]), Opener::kUnknown, number)) return false;
      // Its neighbour's rows are found ahead, if it will be opened: memory brings them while sums are added.
      found = i + 1 < nodes.size() && !opener.has_many_rows(l, number) &&
              beam_.fate_of(nodes[i + 1], scorer, sink) == Fate::open;
      if (found && !opener.find(l, id_of(nodes[i + 1]), Opener::kUnknown, ahead)) return false;
      const float* const sums = opener.sums(l, number);
      if (!sums) return false;
      const Children children{opener.siblings(l, number), sums, score_of(nodes[i])};
      if (!beam_.take(children, beam_.met(nodes[i]), scorer, sink)) return false;
    }
    return true;
  }

  Beam beam_;
  BestLabels none_;
};

} // namespace beamwood
