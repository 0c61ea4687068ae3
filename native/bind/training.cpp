// The door of the training room: a layer's problem in, its weights out.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "beamwood/training/layer_trainer.hpp"
#include "doors.hpp"

namespace {

using namespace beamwood;

template <class T> std::span<const T> view(const In<T>& array) { return {array.data(), array.shape(0)}; }

// What memory safety needs of a sparse matrix: starts that rise from 0 to the end, indices below `width`.
SparseView checked(std::span<const std::int64_t> start, std::span<const std::int32_t> index,
                   std::span<const float> value, std::size_t width, const char* name) {
  const SparseView m{start, index, value};
  const auto bad = [&](const char* what) { throw std::invalid_argument(std::string(name) + ": " + what); };
  if (m.start.empty() || m.start.front() != 0) bad("starts must begin with 0");
  for (std::size_t i = 0; i + 1 < m.start.size(); ++i) {
    if (m.start[i] > m.start[i + 1]) bad("starts must not fall");
  }
  if (static_cast<std::size_t>(m.start.back()) != m.index.size()) bad("starts must end at the number of entries");
  if (!m.value.empty() && m.value.size() != m.index.size()) bad("one value an entry");
  for (const std::int32_t i : m.index) {
    if (i < 0 || static_cast<std::size_t>(i) >= width) bad("an index is out of range");
  }
  return m;
}

// The weights of a layer, until Python has made room for them.
struct LayerWeights {
  std::vector<NodeWeights> nodes;

  std::size_t size() const {
    std::size_t total = 0;
    for (const NodeWeights& n : nodes) total += n.weight.size();
    return total;
  }

  // Fills the arrays of a scipy CSC matrix and lets go of the weights on the way.
  void take(const Out<std::int64_t>& start, const Out<std::int32_t>& index, const Out<float>& value,
            const Out<float>& bias) {
    if (start.shape(0) != nodes.size() + 1 || bias.shape(0) != nodes.size() || index.shape(0) != size() ||
        value.shape(0) != size()) {
      throw std::invalid_argument("take: the arrays do not have the sizes of the layer");
    }
    std::size_t at = 0;
    start.data()[0] = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const Entry& e : std::exchange(nodes[n].weight, {})) {
        index.data()[at] = static_cast<std::int32_t>(e.feature);
        value.data()[at++] = e.value;
      }
      start.data()[n + 1] = static_cast<std::int64_t>(at);
      bias.data()[n] = nodes[n].bias;
    }
    nodes.clear();
  }
};

void check_children(const LayerProblem& p) {
  const bool starts = !p.child_start.empty() && p.child_start.front() == 0 && std::ranges::is_sorted(p.child_start) &&
                      static_cast<std::size_t>(p.child_start.back()) == p.child.size();
  std::vector<std::uint8_t> seen(p.positives.lines(), 0);
  bool once = p.child.size() == seen.size();
  for (const std::int64_t c : p.child) {
    const bool inside = c >= 0 && static_cast<std::size_t>(c) < seen.size();
    once = once && inside && !seen[static_cast<std::size_t>(c)]++;
  }
  if (!starts || !once || p.child_start.size() != p.reaching.lines() + 1) {
    throw std::invalid_argument("children: every node must be the child of one parent");
  }
}

// Runs `watch(share done)` under the GIL; a Python exception (Ctrl-C too) stops the work and comes out of the call.
LayerWeights run(const LayerProblem& problem, const SolverSettings& settings, unsigned threads,
                 const nb::object& watch) {
  bool raised = false;
  const Watch guarded = [&](double share) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) return raised = true;
    if (watch.is_none()) return false;
    PyObject* answer = PyObject_CallFunction(watch.ptr(), "d", share);
    Py_XDECREF(answer);
    return raised = answer == nullptr;
  };
  try {
    const nb::gil_scoped_release release;
    const FloatMode mode;
    return {train_layer(problem, settings, threads, guarded)};
  } catch (const Interrupted&) {
    if (raised) throw nb::python_error();
    throw;
  }
}

LayerWeights train_layer_door(In<std::int64_t> x_start, In<std::int32_t> x_index, In<float> x_value,
                              std::size_t features, In<std::int64_t> reach_start, In<std::int32_t> reach_row,
                              In<std::int64_t> positive_start, In<std::int32_t> positive_row, In<float> positive_value,
                              In<std::int64_t> child_start, In<std::int64_t> child, In<float> row_weight, int loss,
                              double C, double rare_weight, double eps, unsigned max_iter, double bias, double prune,
                              std::uint32_t top_weights, std::uint64_t seed, unsigned threads, nb::object watch) {
  LayerProblem problem;
  problem.x = checked(view(x_start), view(x_index), view(x_value), features, "X");
  problem.features = features;
  const std::size_t rows = problem.x.lines();
  problem.reaching = checked(view(reach_start), view(reach_row), {}, rows, "reaching rows");
  problem.positives = checked(view(positive_start), view(positive_row), view(positive_value), rows, "positive rows");
  problem.child_start = view(child_start);
  problem.child = view(child);
  problem.row_weight = view(row_weight);
  check_children(problem);
  if (!problem.row_weight.empty() && problem.row_weight.size() != rows) {
    throw std::invalid_argument("row weights: one a row");
  }
  SolverSettings settings{static_cast<Loss>(loss), C, rare_weight, eps, max_iter, bias, prune, top_weights, seed};
  return run(problem, settings, threads, watch);
}

} // namespace

void bind_training(nb::module_& m) {
  nb::class_<LayerWeights>(m, "LayerWeights", "The weights of a layer, until Python has made room for them.")
      .def("__len__", &LayerWeights::size)
      .def("take", &LayerWeights::take, nb::arg("start"), nb::arg("index"), nb::arg("value"), nb::arg("bias"),
           "Fills the arrays of a CSC matrix and the biases, and lets go of the weights.");
  m.def("train_layer", &train_layer_door, nb::kw_only(), nb::arg("x_start"), nb::arg("x_index"), nb::arg("x_value"),
        nb::arg("features"), nb::arg("reach_start"), nb::arg("reach_row"), nb::arg("positive_start"),
        nb::arg("positive_row"), nb::arg("positive_value"), nb::arg("child_start"), nb::arg("child"),
        nb::arg("row_weight"), nb::arg("loss"), nb::arg("C"), nb::arg("rare_weight"), nb::arg("eps"),
        nb::arg("max_iter"), nb::arg("bias"), nb::arg("prune"), nb::arg("top_weights"), nb::arg("seed"),
        nb::arg("threads"), nb::arg("watch").none(),
        "Learns one linear classifier a node of a layer (see layer_trainer.hpp).");
}
