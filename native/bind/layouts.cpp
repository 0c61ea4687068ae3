// layouts.cpp — columns (or the chunks of an old file) in, cascades out; cascades in, chunks and columns out; hash indices.
#include "forest.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <tuple>
#include <variant>

#include "beamwood/layout/cascade_read.hpp"
#include "beamwood/layout/layer_build.hpp"

using namespace beamwood;

namespace {

using U32 = In<std::uint32_t>;
using U64 = In<std::uint64_t>;
using F32 = In<float>;

// Builds a cascade tree from the bottom up. Python allocates each layer's words when their number is known: measure the last
// layer, fill it, then the layer above.
class TreeBuilder {
public:
  TreeBuilder(std::uint32_t features, WeightKind kind) : features_(features), kind_(kind) {}

  // Of each layer of a bundle, from the top: child_start, and CSC arrays with the column that goes to each place.
  using Columns = std::tuple<U32, In<std::int64_t>, In<std::int32_t>, F32, U32>;
  std::uint64_t measure_columns(const Many<Columns>& given, const Out<std::uint64_t>& cascade_start, unsigned threads) {
    const std::vector<Columns> layers = items_of(given);
    std::vector<U32> child_starts;
    BundleSource<ColumnSource> source;
    for (const auto& [child_start, start, feature, weight, column_of] : layers) {
      if (child_starts.size() == kMostBundled) throw nb::value_error("too many layers in a bundle");
      source.layer[child_starts.size()] = {view(start), view(feature), view(weight), view(column_of)};
      child_starts.push_back(child_start);
    }
    begin(child_starts);
    for (const auto& [child_start, start, feature, weight, column_of] : layers)
      keep(child_start, start, feature, weight, column_of);
    source.bundle = bundle_;
    source_ = source;
    return measure(cascade_start, threads);
  }

  std::uint64_t measure_chunks(const U32& child_start, const U64& row_start, const U64& word_start, const U32& feature,
                               const U32& offset, const U32& words, const Out<std::uint64_t>& cascade_start,
                               unsigned threads) {
    const std::size_t starts = child_start.shape(0);
    if (row_start.shape(0) != starts || word_start.shape(0) != starts || feature.shape(0) != offset.shape(0) ||
        words.shape(0) < kTailWords)
      throw nb::value_error("the arrays of a layer's chunks do not fit each other");
    begin({child_start});
    keep(child_start, row_start, word_start, feature, offset, words);
    const ChunkWeights chunks{view(row_start), view(word_start), view(feature), view(offset), view(words), {}};
    source_ = BundleSource<ChunkSource>{bundle_, {ChunkSource{chunks, features_, true}}};
    return measure(cascade_start, threads);
  }

  bool fill(const Out<std::uint32_t>& words, unsigned threads) {
    const Workers workers = python_workers(threads);
    if (current_.word_start.empty() || words.shape(0) != current_.word_start.back() + kTailWords)
      throw nb::value_error("wrong size");
    const Unlocked released;
    return with_builder([&](const auto& builder) { return builder.fill(current_, view(words), workers); });
  }

  // After filling: the rows of the layer, and how many of them have no weights.
  std::uint64_t rows() const { return current_.feature.size(); }
  std::uint64_t empty_rows() const { return current_.empty; }

  // After filling: the scale of each chunk of the layer.
  void scales(const Out<float>& scale) const {
    if (scale.shape(0) != current_.scale.size()) throw nb::value_error("wrong size");
    std::copy(current_.scale.begin(), current_.scale.end(), scale.data());
  }

  // Takes over the rows of builders that have come to the same layer in neighbouring parts of the tree, left to right:
  // how a tree is built that does not fit in memory.
  void join(const Many<TreeBuilder*>& given) {
    const std::vector<TreeBuilder*> parts = items_of(given);
    current_ = {};
    current_.row_start = current_.word_start = {0};
    std::size_t count = 0;
    for (const TreeBuilder* part : parts) {
      count += part->current_.feature.size();
      current_.longest = std::max(current_.longest, part->current_.longest);
    }
    current_.length.reset(count, current_.longest);
    for (TreeBuilder* part : parts) {
      const LayerRows rows = std::move(part->current_);
      const std::uint64_t row = current_.row_start.back(), word = current_.word_start.back();
      for (std::size_t i = 1; i < rows.row_start.size(); ++i) {
        current_.row_start.push_back(row + rows.row_start[i]);
        current_.word_start.push_back(word + rows.word_start[i]);
        current_.page_words.push_back(rows.page_words[i - 1]);
      }
      current_.feature.insert(current_.feature.end(), rows.feature.begin(), rows.feature.end());
      for (std::size_t i = 0; i < rows.feature.size(); ++i) current_.length.set(row + i, rows.length[i]);
    }
  }

  // After the top layer: for each feature the place of its record.
  void root(const Out<std::uint32_t>& root) const {
    if (root.shape(0) != features_) throw nb::value_error("wrong size");
    if (current_.row_start.size() != 2) throw nb::value_error("the top layer has one chunk");
    std::fill_n(root.data(), root.shape(0), kNoRow);
    current_.each_offset(0, [&](std::uint64_t row, std::uint32_t at) { root.data()[current_.feature[row]] = at; });
  }

private:
  void begin(const std::vector<U32>& child_starts) {
    owners_.clear();
    bundle_.layers = 0;
    for (const U32& child_start : child_starts) {
      if (child_start.shape(0) < 2) throw nb::value_error("a layer has no parents");
      LayerShape& shape = shape_[bundle_.layers];
      if (bundle_.layers > 0 && child_start.shape(0) != shape_[bundle_.layers - 1].nodes + std::size_t{1})
        throw nb::value_error("the layers of a bundle do not fit each other");
      shape = {child_start.data()[child_start.shape(0) - 1], view(child_start), {}, {}};
      bundle_.shape[bundle_.layers++] = &shape;
    }
    if (bundle_.layers == 0) throw nb::value_error("a bundle has no layers");
    below_ = current_.row_start.empty() ? nullptr : std::make_unique<LayerRows>(std::move(current_));
    if (below_ && below_->row_start.size() != shape_[bundle_.layers - 1].nodes + std::size_t{1})
      throw nb::value_error("the layer below has other parents");
    current_ = {};
  }

  std::uint64_t measure(const Out<std::uint64_t>& cascade_start, unsigned threads) {
    if (cascade_start.shape(0) != shape_[0].child_start.size()) throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    if (!with_builder([&](const auto& builder) { return builder.measure(current_, workers); })) return 0;
    current_.chunk_starts(bundle_, below_.get(), view(cascade_start));
    return current_.word_start.back() + kTailWords;
  }

  template <class Use> bool with_builder(Use&& use) const {
    return std::visit([&](const auto& source) { return use(LayerBuilder(source, below_.get(), kind_)); }, source_);
  }

  template <class... Arrays> void keep(const Arrays&... arrays) {
    (owners_.push_back(std::make_shared<Arrays>(arrays)), ...);
  }

  std::uint32_t features_;
  WeightKind kind_;
  std::array<LayerShape, kMostBundled> shape_; // of the layers of bundle_
  Bundle bundle_;
  std::variant<BundleSource<ColumnSource>, BundleSource<ChunkSource>> source_;
  std::vector<std::shared_ptr<void>> owners_; // keeps the arrays of shape_ and source_
  LayerRows current_;
  std::unique_ptr<LayerRows> below_;
};

// Reads a cascade tree from the top down; each layer as columns or as chunks. Measure, allocate, fill.
class TreeReader {
public:
  TreeReader(PyForest& forest, std::uint32_t tree)
      : forest_(forest), tree_(&forest.forest.trees.at(tree)), reader_(*tree_) {}

  bool next(unsigned threads) {
    const Workers workers = python_workers(threads);
    const Unlocked released;
    return reader_.next(workers);
  }

  bool measure_columns(const Out<std::uint64_t>& start, unsigned threads) {
    if (start.shape(0) != shape().nodes + std::size_t{1}) throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    return beamwood::measure_columns(shape(), reader_.source(), view(start), workers);
  }

  bool fill_columns(const U64& start, const Out<std::uint32_t>& feature, const Out<float>& weight, unsigned threads) {
    if (start.shape(0) != shape().nodes + std::size_t{1} || feature.shape(0) != start.data()[start.shape(0) - 1] ||
        weight.shape(0) != feature.shape(0))
      throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    return beamwood::fill_columns(shape(), reader_.source(), view(start), view(feature), view(weight), workers);
  }

  bool measure_chunks(const Out<std::uint64_t>& row_start, const Out<std::uint64_t>& word_start, unsigned threads) {
    const std::size_t starts = shape().child_start.size();
    if (row_start.shape(0) != starts || word_start.shape(0) != starts) throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    rows_ = {};
    const CascadeSource source = reader_.source();
    if (!LayerBuilder(shape(), source).measure(rows_, workers)) return false;
    std::copy(rows_.row_start.begin(), rows_.row_start.end(), row_start.data());
    std::copy(rows_.word_start.begin(), rows_.word_start.end(), word_start.data());
    return true;
  }

  bool fill_chunks(const Out<std::uint32_t>& feature, const Out<std::uint32_t>& offset, const Out<std::uint32_t>& words,
                   unsigned threads) {
    if (rows_.row_start.empty() || feature.shape(0) != rows_.row_start.back() || offset.shape(0) != feature.shape(0) ||
        words.shape(0) != rows_.word_start.back() + kTailWords)
      throw nb::value_error("wrong size");
    const Workers workers = python_workers(threads);
    const Unlocked released;
    const CascadeSource source = reader_.source();
    if (!LayerBuilder(shape(), source).fill(rows_, view(words), workers)) return false;
    std::copy(rows_.feature.begin(), rows_.feature.end(), feature.data());
    rows_.offsets(view(offset));
    return true;
  }

private:
  const LayerShape& shape() const { return tree_->layers.at(reader_.layer()).shape; }

  PyForest& forest_;
  const Tree* tree_;
  CascadeReader reader_;
  LayerRows rows_;
};

} // namespace

void bind_layouts(nb::module_& m) {
  nb::class_<TreeBuilder>(m, "TreeBuilder",
                          "Builds a cascade tree from the bottom up: measure a layer, fill it, go on above.")
      .def(nb::init<std::uint32_t, WeightKind>(), nb::arg("features"), nb::arg("kind"))
      .def("measure_columns", &TreeBuilder::measure_columns, nb::arg("layers"), nb::arg("cascade_start"),
           nb::arg("threads"),
           "Sizes the chunks of a bundle of layers: for each child_start, start, feature, weight and column_of. The "
           "number of words to allocate, or 0 when a chunk is too large.")
      .def("measure_chunks", &TreeBuilder::measure_chunks, nb::arg("child_start"), nb::arg("row_start"),
           nb::arg("word_start"), nb::arg("feature"), nb::arg("offset"), nb::arg("words"), nb::arg("cascade_start"),
           nb::arg("threads"), "The same from chunks; 0 also when they are damaged.")
      .def("fill", &TreeBuilder::fill, nb::arg("words"), nb::arg("threads"))
      .def("scales", &TreeBuilder::scales, nb::arg("scale"))
      .def("join", &TreeBuilder::join, nb::arg("parts"))
      .def("rows", &TreeBuilder::rows)
      .def("empty_rows", &TreeBuilder::empty_rows)
      .def("root", &TreeBuilder::root, nb::arg("root"));
  nb::class_<TreeReader>(m, "TreeReader", "Reads a cascade tree from the top down. Every method: false for damage.")
      .def(nb::init<PyForest&, std::uint32_t>(), nb::keep_alive<1, 2>(), nb::arg("forest"), nb::arg("tree"))
      .def("next", &TreeReader::next, nb::arg("threads"))
      .def("measure_columns", &TreeReader::measure_columns, nb::arg("start"), nb::arg("threads"))
      .def("fill_columns", &TreeReader::fill_columns, nb::arg("start"), nb::arg("feature"), nb::arg("weight"),
           nb::arg("threads"))
      .def("measure_chunks", &TreeReader::measure_chunks, nb::arg("row_start"), nb::arg("word_start"),
           nb::arg("threads"))
      .def("fill_chunks", &TreeReader::fill_chunks, nb::arg("feature"), nb::arg("offset"), nb::arg("words"),
           nb::arg("threads"));
  m.def(
      "bundled",
      [](const Many<U32>& child_starts) {
        std::vector<LayerShape> shapes;
        for (const U32& start : items_of(child_starts)) {
          if (start.shape(0) < 2) throw nb::value_error("a layer has no parents");
          shapes.push_back({start.data()[start.shape(0) - 1], view(start), {}, {}});
        }
        return bundled(shapes);
      },
      nb::arg("child_starts"), "For each layer how many layers of its bundle lie above it.");
  m.def(
      "index_words", [](std::uint64_t rows, std::uint64_t supports) { return index_begin(rows, supports); },
      nb::arg("rows"), nb::arg("supports"), "The words that the hash indices of these supports take together.");
  m.def(
      "fill_index",
      [](const U64& start, const U32& feature, const Out<std::uint32_t>& index, unsigned threads) {
        const Workers workers = python_workers(threads);
        const Unlocked released;
        parallel_for(workers, start.shape(0) - 1, [&](std::size_t i, unsigned) {
          const std::uint64_t row = start.data()[i], rows = start.data()[i + 1] - row;
          const std::uint64_t begin = index_begin(row, i), end = index_begin(row + rows, i + 1);
          fill_index(feature.data() + row, static_cast<std::uint32_t>(rows), index.data() + begin, end - begin);
        });
      },
      nb::arg("start"), nb::arg("feature"), nb::arg("index"), nb::arg("threads"),
      "Fills the zeroed hash indices of all supports. start must rise and end inside feature.");
}
