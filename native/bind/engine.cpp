// The bindings of the engine: forests over arrays that Python owns, and search.
#include "forest.hpp"
#include "index/postings.hpp"
#include "index/rows.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <tuple>

using namespace beamwood;

namespace {

using U32 = In<std::uint32_t>;
using U64 = In<std::uint64_t>;
using F32 = In<float>;

bool consistent(const LayerShape& shape, std::uint32_t parents) {
  return shape.child_start.size() == static_cast<std::size_t>(parents) + 1 && shape.child_start.front() == 0 &&
         shape.child_start.back() == shape.nodes && (shape.label.empty() || shape.label.size() == shape.nodes) &&
         (shape.bias.empty() || shape.bias.size() == shape.nodes);
}

// The one check that memory safety needs of whole arrays; what they contain is checked when it is followed.
void add_layer(PyForest& self, std::uint32_t tree, std::uint32_t nodes, const U32& child_start, const U32& label,
               const F32& bias) {
  if (tree > self.forest.trees.size()) throw nb::index_error("trees are added in order");
  if (tree == self.forest.trees.size()) self.forest.trees.emplace_back();
  auto& layers = self.forest.trees[tree].layers;
  TreeLayer layer;
  layer.shape = {nodes, view(child_start), view(label), view(bias)};
  if (!consistent(layer.shape, layers.empty() ? 1 : layers.back().shape.nodes))
    throw nb::value_error("the arrays of a layer's shape do not fit each other");
  layers.push_back(layer);
  self.keep(child_start, label, bias);
}

TreeLayer& last_layer(PyForest& self) {
  if (self.forest.trees.empty()) throw nb::index_error("add a layer first");
  return self.forest.trees.back().layers.back();
}

void set_leaves(PyForest& self, std::uint32_t tree, const U32& leaf_of_label) {
  if (tree >= self.forest.trees.size() || view(leaf_of_label).size() != self.forest.labels)
    throw nb::value_error("a tree has one leaf per label");
  self.forest.trees[tree].leaf_of_label = view(leaf_of_label);
  self.keep(leaf_of_label);
}

void set_chunks(PyForest& self, const U64& row_start, const U64& word_start, const U32& feature, const U32& offset,
                const U32& words, const U32& index) {
  TreeLayer& layer = last_layer(self);
  const std::size_t starts = layer.shape.child_start.size();
  const ChunkWeights chunks{view(row_start), view(word_start), view(feature), view(offset), view(words), view(index)};
  if (chunks.row_start.size() != starts || chunks.word_start.size() != starts ||
      chunks.feature.size() != chunks.offset.size() || chunks.words.size() < kTailWords)
    throw nb::value_error("the arrays of a layer's chunks do not fit each other");
  layer.chunks = chunks;
  self.keep(row_start, word_start, feature, offset, words, index);
}

void set_columns(PyForest& self, const U64& start, const U32& feature, const F32& weight, const U32& index) {
  TreeLayer& layer = last_layer(self);
  const std::size_t starts = static_cast<std::size_t>(layer.shape.nodes) + 1;
  const ColumnWeights columns{view(start), view(feature), view(weight), view(index)};
  if (columns.start.size() != starts || columns.feature.size() != columns.weight.size())
    throw nb::value_error("the arrays of a layer's columns do not fit each other");
  layer.columns = columns;
  self.keep(start, feature, weight, index);
}

void set_cascade(PyForest& self, const U64& start, const U32& words, const U32& root, WeightKind kind,
                 const F32& scale) {
  TreeLayer& layer = last_layer(self);
  const auto& layers = self.forest.trees.back().layers;
  const bool top = layers.size() == 1;
  if (!top && view(start).empty() && view(words).empty()) { // its weights are in the chunks of the layer above
    layer.step = layers[layers.size() - 2].step + 1;
    if (layer.step >= kMostBundled) throw nb::value_error("too many layers without chunks of their own");
    return;
  }
  const CascadeWeights cascade{view(start), view(words), view(root), kind, view(scale)};
  if (cascade.start.size() != layer.shape.child_start.size() || cascade.words.size() < kTailWords ||
      (top && cascade.root.size() != self.forest.features) ||
      (cascade.kind == WeightKind::u8 && cascade.scale.size() != layer.shape.parents()))
    throw nb::value_error("the arrays of a layer's cascade do not fit each other");
  layer.cascade = cascade;
  self.keep(start, words, root, scale);
}

// The numbers of a head, as head.hpp names them. rows: of each label in training, or nothing.
void set_head(PyForest& self, double bias, double trees, double words, double unlisted, double rowless,
              double rowless_words, std::uint32_t candidates, const U32& rows) {
  for (const double number : {bias, trees, words, unlisted, rowless, rowless_words})
    if (!std::isfinite(number)) throw nb::value_error("the head has a number that is not finite");
  if (trees < 0 || words < 0 || rowless_words < 0 || candidates == 0)
    throw nb::value_error("the head does not keep the members' order");
  if (!self.forest.postings || self.forest.trees.empty())
    throw nb::value_error("a head needs trees and inverted lists");
  if (!view(rows).empty() && view(rows).size() != self.forest.labels)
    throw nb::value_error("the head's counts of rows do not fit the labels");
  self.forest.head = {bias, trees, words, unlisted, rowless, rowless_words, candidates, view(rows)};
  self.keep(rows);
}

using Found = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Choice = std::tuple<std::uint32_t, std::uint32_t, Matcher, double, double, double, double>;
using Stats = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::vector<Choice>>;

std::vector<Choice> choices_of(const Search& search) {
  std::vector<Choice> out;
  for (const LayerChoice& c : search.choices)
    out.emplace_back(c.tree, c.layer, c.matcher, c.statistics.blocks, c.statistics.chunks, c.statistics.rows,
                     c.statistics.query_nonzeros);
  return out;
}

// Fills labels and scores. The answer is a fault (0: none, 1 to 4: RowFaults of the queries, 5: a damaged model) or,
// when statistics are asked for and there is no fault, those: made only then, for they cost more than a small query.
nb::object topk(PyForest& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
                const nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& labels,
                const nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& scores, std::uint32_t beam,
                unsigned threads, const SearchOptions& engine, bool exact, bool with_stats, const Filter* filter,
                const std::optional<Found>& found) {
  check_fits(filter, self);
  if (found && (found->shape(0) != labels.shape(0) || found->shape(1) != labels.shape(1)))
    throw nb::value_error("results differ in shape");
  const SearchOptions options = asked_of(engine, labels.shape(1), beam);
  const Workers workers = python_workers(threads);
  int fault = 0;
  Stats stats;
  {
    const Unlocked released;
    const auto begin = std::chrono::steady_clock::now();
    const FloatMode mode;
    const Shelf<CallScratch>::Loan scratch(self.shelf);
    fault = static_cast<int>(check_rows(scratch->batch, offsets, features, values, self.forest.features).fault);
    if (fault == 0 && self.forest.unit_rows) scratch->batch.make_unit();
    const auto queries = scratch->batch.queries();
    if (fault == 0 &&
        (queries.size() != labels.shape(0) || queries.size() != scores.shape(0) || scores.shape(1) != options.k))
      throw nb::value_error("results do not have a row for each query");
    bool sound = true;
    if (fault == 0)
      sound = scratch->run(self.forest, queries, options, workers, filter, exact,
                           {labels.data(), scores.data(), found ? found->data() : nullptr});
    const Work work = scratch->search.work;
    if (with_stats) std::get<4>(stats) = choices_of(scratch->search);
    if (!sound || !self.intact()) fault = kDamaged;
    const auto spent = std::chrono::steady_clock::now() - begin;
    std::get<0>(stats) = static_cast<std::uint64_t>(std::chrono::nanoseconds(spent).count());
    std::get<1>(stats) = work.blocks;
    std::get<2>(stats) = work.rows;
    std::get<3>(stats) = work.bytes;
  }
  return fault == 0 && with_stats ? nb::cast(stats) : nb::cast(fault);
}

void bind_forest(nb::module_& m) {
  nb::class_<PyForest>(m, "Forest", nb::is_weak_referenceable(),
                       "A model as the engine sees it. Immutable once its layers are set.")
      .def(
          "__init__",
          [](PyForest* self, std::uint32_t features, std::uint32_t labels, const Activation& activation, Layout layout,
             bool unit_rows) {
            new (self) PyForest;
            self->forest.features = features;
            self->forest.labels = labels;
            self->forest.activation = activation;
            self->forest.unit_rows = unit_rows;
            self->forest.layout = layout;
          },
          nb::arg("features"), nb::arg("labels"), nb::arg("activation"), nb::arg("layout"), nb::arg("unit_rows"))
      .def("add_layer", &add_layer, nb::arg("tree"), nb::arg("nodes"), nb::arg("child_start"), nb::arg("label"),
           nb::arg("bias"))
      .def("set_leaves", &set_leaves, nb::arg("tree"), nb::arg("leaf_of_label"))
      .def("set_chunks", &set_chunks, nb::arg("row_start"), nb::arg("word_start"), nb::arg("feature"),
           nb::arg("offset"), nb::arg("words"), nb::arg("index"))
      .def("set_cascade", &set_cascade, nb::arg("start"), nb::arg("words"), nb::arg("root"), nb::arg("kind"),
           nb::arg("scale"))
      .def(
          "set_postings",
          [](PyForest& self, const PyPostings& postings) {
            if (postings.index.features != self.forest.features || postings.index.labels != self.forest.labels)
              throw nb::value_error("the inverted lists do not fit the model");
            self.forest.postings = postings.index;
            self.watch(postings.index.words.data());
          },
          nb::arg("postings"), nb::keep_alive<1, 2>())
      .def("intact", &PyForest::intact, "Whether the files that its arrays are mapped from are still there.")
      .def("set_columns", &set_columns, nb::arg("start"), nb::arg("feature"), nb::arg("weight"), nb::arg("index"))
      .def("topk", &topk, nb::arg("offsets"), nb::arg("features"), nb::arg("values"), nb::arg("labels"),
           nb::arg("scores"), nb::arg("beam"), nb::arg("threads"), nb::arg("engine"), nb::arg("exact"),
           nb::arg("with_stats"), nb::arg("filter").none(), nb::arg("found").none() = nb::none())
      .def("set_head", &set_head, nb::arg("bias"), nb::arg("trees"), nb::arg("words"), nb::arg("unlisted"),
           nb::arg("rowless"), nb::arg("rowless_words"), nb::arg("candidates"), nb::arg("rows"));
}

// Choices that Python makes by name. The names stand here and nowhere else.
void bind_choices(nb::module_& m) {
  nb::enum_<Matcher>(m, "Matcher")
      .value("march", Matcher::march)
      .value("binary", Matcher::binary)
      .value("hash", Matcher::hash)
      .value("dense", Matcher::dense);
  nb::enum_<Layout>(m, "Layout")
      .value("chunk", Layout::chunk)
      .value("column", Layout::column)
      .value("cascade", Layout::cascade);
  nb::enum_<Isa>(m, "Isa")
      .value("scalar", Isa::scalar)
      .value("avx2", Isa::avx2)
      .value("avx512", Isa::avx512)
      .value("neon", Isa::neon);
  nb::enum_<WeightKind>(m, "WeightKind", "As they are, as halves, as bytes with a scale for each chunk.")
      .value("f32", WeightKind::f32)
      .value("f16", WeightKind::f16)
      .value("u8", WeightKind::u8);
  nb::enum_<ActivationKind>(m, "ActivationKind")
      .value("identity", ActivationKind::identity)
      .value("sigmoid", ActivationKind::sigmoid)
      .value("hinge", ActivationKind::hinge)
      .value("log_sigmoid", ActivationKind::log_sigmoid)
      .value("log_hinge", ActivationKind::log_hinge);
  nb::enum_<Path>(m, "Path")
      .value("last", Path::last)
      .value("product", Path::product)
      .value("sum", Path::sum)
      .value("log_exp", Path::log_exp);
  nb::class_<Activation>(m, "Activation", "How a sum becomes a score, and scores come together along a path.")
      .def(
          "__init__",
          [](Activation* self, ActivationKind kind, std::uint8_t power, Path path, float discount) {
            new (self) Activation{kind, power, path, discount};
          },
          nb::arg("kind"), nb::arg("power"), nb::arg("path"), nb::arg("discount"));
  nb::class_<SearchOptions>(m, "SearchOptions", "An engine, as searches are given it. No matcher: it chooses.")
      .def(
          "__init__",
          [](SearchOptions* self, std::optional<Matcher> matcher, Isa isa, bool bound, bool sort_blocks) {
            if (!kernels_for(isa)) throw nb::value_error("this machine does not have the instruction set");
            new (self) SearchOptions;
            self->choose = !matcher;
            if (matcher) self->matcher = *matcher;
            self->isa = isa, self->bound = bound, self->sort_blocks = sort_blocks;
          },
          nb::arg("matcher").none(), nb::arg("isa"), nb::arg("bound"), nb::arg("sort_blocks") = true);
}

} // namespace

void bind_engine(nb::module_& m) {
  bind_choices(m);
  bind_forest(m);
  m.attr("DAMAGED") = kDamaged;
  m.attr("TAIL_WORDS") = kTailWords;
  m.attr("MAX_WIDTH") = kMaxWidth;
  m.def("isa_supported", [](Isa isa) { return kernels_for(isa) != nullptr; }, nb::arg("isa"));
  m.def("best_isa", &best_isa);
  m.def(
      "activate",
      [](const Activation& activation, const F32& z, const Out<float>& scores) {
        const FloatMode mode;
        for (std::size_t i = 0; i < std::min(z.shape(0), scores.shape(0)); ++i)
          scores.data()[i] = activate(activation, z.data()[i]);
      },
      nb::arg("activation"), nb::arg("z"), nb::arg("scores"),
      "The activation of each z: the one scalar function that the kernels and the plain reference share.");
  m.def(
      "leaf_scores",
      [](const Activation& activation, const F32& scores, const Out<float>& shown) {
        const FloatMode mode;
        for (std::size_t i = 0; i < std::min(scores.shape(0), shown.shape(0)); ++i)
          shown.data()[i] = leaf_score(activation.path, scores.data()[i]);
      },
      nb::arg("activation"), nb::arg("scores"), nb::arg("shown"),
      "What an answer shows for the path score of each leaf.");
}
