// graft.cpp — a cascade tree and the columns of further leaves in, the words of its layers that have both out.
#include "../forest.hpp"

#include <memory>
#include <optional>
#include <vector>

#include "beamwood/layout/graft.hpp"

using namespace beamwood;

namespace {

using U32 = In<std::uint32_t>;

// Grows a tree of layers that share no chunks, from the deepest layer that gets leaves up to the root. Python allocates
// the words of each layer when their number is known: measure, fill, then the layer above.
class TreeGrafter {
public:
  TreeGrafter(PyForest& forest, std::uint32_t tree) : forest_(forest), tree_(&forest.forest.trees.at(tree)) {}

  // Finds the features of all rows down to a layer. False: the cascade is damaged.
  bool read(std::uint32_t deepest, unsigned threads) {
    if (deepest >= tree_->layers.size()) throw nb::value_error("there is no such layer");
    for (const TreeLayer& layer : tree_->layers)
      if (layer.step != 0) throw nb::value_error("layers share chunks");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    CascadeReader reader(*tree_);
    old_.resize(deepest + std::size_t{1});
    for (Old& layer : old_) {
      if (!reader.next(workers)) return false;
      layer.source = reader.source();
      layer.row_start.assign(layer.source.row_start.begin(), layer.source.row_start.end());
      layer.feature.assign(layer.source.feature.begin(), layer.source.feature.end());
      layer.source.row_start = layer.row_start;
      layer.source.feature = layer.feature;
    }
    at_ = old_.size();
    return true;
  }

  // The next layer upwards. child_start: its new shape; old_chunk: for each of its parents the one it was, or NO_ROW;
  // CSC arrays with the column that goes to each new place. The words to allocate, or 0: damaged or too large.
  std::uint64_t measure(const U32& child_start, const U32& old_chunk, const In<std::int64_t>& start,
                        const In<std::int32_t>& feature, const In<float>& weight, const U32& column_of,
                        const Out<std::uint64_t>& cascade_start, unsigned threads) {
    if (at_ == 0) throw nb::value_error("there is no layer above");
    const std::size_t starts = child_start.shape(0);
    if (starts < 2 || old_chunk.shape(0) + 1 != starts || cascade_start.shape(0) != starts)
      throw nb::value_error("wrong size");
    const std::uint32_t nodes = child_start.data()[starts - 1];
    if (column_of.shape(0) != nodes || feature.shape(0) != weight.shape(0)) throw nb::value_error("wrong size");
    if (grown_ && grown_->rows.row_start.size() != nodes + std::size_t{1})
      throw nb::value_error("the layer below has other parents");
    const Workers workers = python_workers(threads);
    child_start_ = child_start;
    old_chunk_ = old_chunk;
    const Unlocked released;
    below_ = std::move(grown_);
    grown_ = std::make_unique<GrownRows>();
    const std::size_t layer = --at_;
    const CascadeWeights* chunks = layer + 1 < tree_->layers.size() ? &tree_->layers[layer + 1].cascade : nullptr;
    grafter_.emplace(old_[layer].source, LayerShape{nodes, view(*child_start_), {}, {}}, view(*old_chunk_),
                     ColumnSource{view(start), view(feature), view(weight), view(column_of)}, chunks, below_.get());
    if (!grafter_->measure(*grown_, workers)) return 0;
    grafter_->chunk_starts(*grown_, view(cascade_start));
    return grown_->rows.word_start.back() + kTailWords;
  }

  bool fill(const Out<std::uint32_t>& words, unsigned threads) {
    if (!grafter_ || words.shape(0) != grown_->rows.word_start.back() + kTailWords) throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    if (at_ == 0) top_.resize(grown_->rows.row_start.back());
    return grafter_->fill(*grown_, view(words), at_ == 0 ? std::span(top_) : std::span<std::uint32_t>(), workers);
  }

  // After the top layer: for each feature the place of its record.
  void root(const Out<std::uint32_t>& root) const {
    if (at_ != 0 || !grown_ || grown_->rows.row_start.size() != 2) throw nb::value_error("the top layer has one chunk");
    std::fill_n(root.data(), root.shape(0), kNoRow);
    grown_->rows.each_offset(0, [&](std::uint64_t row, std::uint32_t at) {
      if (top_[row] < root.shape(0)) root.data()[top_[row]] = at;
    });
  }

private:
  struct Old {
    CascadeSource source;
    std::vector<std::uint64_t> row_start;
    std::vector<std::uint32_t> feature;
  };

  PyForest& forest_;
  const Tree* tree_;
  std::vector<Old> old_;
  std::size_t at_ = 0;
  std::optional<U32> child_start_, old_chunk_; // what the grafter looks at
  std::optional<LayerGrafter> grafter_;
  std::unique_ptr<GrownRows> grown_, below_;
  std::vector<std::uint32_t> top_; // the features of the root chunk's rows
};

} // namespace

void bind_update(nb::module_& m) {
  nb::class_<TreeGrafter>(m, "TreeGrafter", "Grows leaves on a cascade tree: read, then measure and fill each layer.")
      .def(nb::init<PyForest&, std::uint32_t>(), nb::keep_alive<1, 2>(), nb::arg("forest"), nb::arg("tree"))
      .def("read", &TreeGrafter::read, nb::arg("deepest"), nb::arg("threads"))
      .def("measure", &TreeGrafter::measure, nb::arg("child_start"), nb::arg("old_chunk"), nb::arg("start"),
           nb::arg("feature"), nb::arg("weight"), nb::arg("column_of"), nb::arg("cascade_start"), nb::arg("threads"))
      .def("fill", &TreeGrafter::fill, nb::arg("words"), nb::arg("threads"))
      .def("root", &TreeGrafter::root, nb::arg("root"));
}
