// The bindings of inverted lists: sparse rows in, their arrays out; queries in, exact best labels and scores out.
#include "postings.hpp"

#include <nanobind/stl/vector.h>

#include "beamwood/index/build_postings.hpp"
#include "beamwood/sink/sinks.hpp"
#include "rows.hpp"

using namespace beamwood;

namespace {

using F32 = In<float>;

void make(PyPostings* self, std::uint32_t features, std::uint32_t labels, int kind, const In<std::uint64_t>& start,
          const In<std::uint16_t>& words, const F32& top, const F32& scale, const F32& bias,
          const In<std::uint32_t>& dense, const In<std::uint8_t>& codes, bool matched_only) {
  Postings index;
  index.features = features, index.labels = labels, index.kind = static_cast<WeightKind>(kind);
  index.start = view(start), index.words = view(words), index.top = view(top), index.scale = view(scale);
  index.bias = view(bias), index.dense = view(dense), index.codes = view(codes), index.matched_only = matched_only;
  if (kind < 0 || kind > 2 || !index.consistent())
    throw nb::value_error("the arrays of the inverted lists do not fit each other");
  new (self) PyPostings;
  self->index = index;
  const auto keep = [self](const auto& array) {
    self->owners.push_back(std::make_shared<std::remove_cvref_t<decltype(array)>>(array));
  };
  keep(start), keep(words), keep(top), keep(scale), keep(bias), keep(dense), keep(codes);
}

// Calls one(query number, search of the worker) for all queries. The answer is a fault: see Forest.topk.
template <class One>
int each_query(PyPostings& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values, std::size_t rows,
               unsigned threads, One&& one) {
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  const Shelf<IndexScratch>::Loan scratch(self.shelf);
  const auto fault = check_rows(scratch->batch, offsets, features, values, self.index.features).fault;
  if (fault != RowFault::none) return static_cast<int>(fault);
  const auto queries = scratch->batch.queries();
  if (queries.size() != rows) throw nb::value_error("results do not have a row for each query");
  if (scratch->searches.size() < workers.threads) scratch->searches.resize(workers.threads);
  constexpr std::size_t kRun = 16;
  std::atomic<bool> sound{true};
  parallel_for(workers, (rows + kRun - 1) / kRun, [&](std::size_t task, unsigned worker) {
    for (std::size_t q = task * kRun; q < std::min(rows, (task + 1) * kRun) && sound; ++q)
      if (!one(q, queries[q], scratch->searches[worker])) sound = false;
  });
  return sound ? 0 : kDamaged;
}

int topk(PyPostings& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
         const nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& labels,
         const nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& scores, unsigned threads,
         bool matched_only, const Filter* filter) {
  const std::size_t k = labels.shape(1);
  if (scores.shape(0) != labels.shape(0) || scores.shape(1) != k) throw nb::value_error("results differ in shape");
  return each_query(self, offsets, features, values, labels.shape(0), threads,
                    [&](std::size_t q, const Query& query, IndexSearch& search) {
                      if (!search.run(self.index, query, static_cast<std::uint32_t>(k), filter, matched_only))
                        return false;
                      write_row(search.best(), static_cast<std::uint32_t>(k), labels.data() + q * k,
                                scores.data() + q * k);
                      return true;
                    });
}

// The labels of query q are labels[label_start[q] .. label_start[q + 1]); so are their scores.
int score(PyPostings& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
          const In<std::int64_t>& label_start, const In<std::uint32_t>& labels, const Out<float>& scores,
          unsigned threads) {
  const auto starts = view(label_start);
  if (starts.empty() || starts.front() != 0 || starts.back() != static_cast<std::int64_t>(labels.shape(0)) ||
      scores.shape(0) != labels.shape(0) || !std::ranges::is_sorted(starts))
    throw nb::value_error("labels and scores do not have a part for each query");
  for (const std::uint32_t label : view(labels))
    if (label >= self.index.labels) throw nb::value_error("a label is out of range");
  return each_query(self, offsets, features, values, starts.size() - 1, threads,
                    [&](std::size_t q, const Query& query, IndexSearch& search) {
                      const auto from = static_cast<std::size_t>(starts[q]);
                      const auto given = view(labels).subspan(from, static_cast<std::size_t>(starts[q + 1]) - from);
                      return search.score(self.index, query, given, scores.data() + from);
                    });
}

// Rows are canonical CSR, which Python has checked; here only what memory safety needs.
nb::tuple build(const In<std::int64_t>& offsets, const In<std::int32_t>& features, const F32& weights,
                std::uint32_t dimension, int kind, unsigned threads, const F32& kept) {
  const auto starts = view(offsets);
  const auto ids = view(features);
  if (starts.empty() || starts.front() != 0 || starts.back() != static_cast<std::int64_t>(ids.size()) ||
      weights.shape(0) != ids.size() || !std::ranges::is_sorted(starts) || kind < 0 || kind > 2 ||
      (kept.shape(0) != 0 && kept.shape(0) != dimension))
    throw nb::value_error("the rows do not fit each other");
  const Workers workers = python_workers(threads);
  BuiltPostings built;
  {
    const Unlocked released;
    const FloatMode mode;
    if (std::ranges::any_of(ids,
                            [&](std::int32_t id) { return id < 0 || static_cast<std::uint32_t>(id) >= dimension; }))
      throw nb::value_error("a feature is out of range");
    built = PostingsBuilder(starts, ids, view(weights), dimension, static_cast<WeightKind>(kind), view(kept))
                .build(workers);
  }
  return nb::make_tuple(give(std::move(built.start)), give(std::move(built.words)), give(std::move(built.top)),
                        give(std::move(built.scale)), give(std::move(built.dense)), give(std::move(built.codes)));
}

// The features and weights of one label, by rising feature: every list is looked at.
nb::tuple row_of(PyPostings& self, std::uint32_t label) {
  if (label >= self.index.labels) throw nb::index_error("no such label");
  std::vector<std::uint32_t> features;
  std::vector<float> weights;
  {
    const Unlocked released;
    const FloatMode mode;
    for (std::uint32_t f = 0; f < self.index.features; ++f) {
      PostingList list;
      if (!open_list(self.index, f, 1.0f, list) || !list.seek(self.index, label / kTile)) throw Damaged{};
      if (list.over || list.piece.tile != label / kTile) continue;
      const std::uint32_t i = list.piece.find(label % kTile);
      if (i == list.piece.count) continue;
      features.push_back(f), weights.push_back(weight_of(self.index.kind, list, i));
    }
  }
  return nb::make_tuple(give(std::move(features)), give(std::move(weights)));
}

// Every list: where each starts, and the labels and weights of all, by rising feature and label.
nb::tuple lists_of(PyPostings& self) {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> labels;
  std::vector<float> weights;
  {
    const Unlocked released;
    const FloatMode mode;
    const Postings& index = self.index;
    const std::uint32_t tiles = (index.labels + kTile - 1) / kTile;
    for (std::uint32_t f = 0; f < index.features; ++f) {
      PostingList list;
      if (!open_list(index, f, 1.0f, list)) throw Damaged{};
      for (std::uint32_t tile = 0; tile < tiles && !list.over; ++tile) {
        if (!list.seek(index, tile)) throw Damaged{};
        if (list.over || list.piece.tile != tile) continue;
        bool inside = true;
        const bool whole = list.piece.each([&](std::uint32_t place, std::uint32_t i) {
          const std::uint64_t label = std::uint64_t{tile} * kTile + place;
          inside &= label < index.labels;
          labels.push_back(static_cast<std::int32_t>(label)), weights.push_back(weight_of(index.kind, list, i));
        });
        if (!whole || !inside) throw Damaged{};
      }
      start.push_back(static_cast<std::int64_t>(labels.size()));
    }
  }
  return nb::make_tuple(give(std::move(start)), give(std::move(labels)), give(std::move(weights)));
}

} // namespace

void bind_postings(nb::module_& m) {
  m.def("build_postings", &build, nb::arg("offsets"), nb::arg("features"), nb::arg("weights"), nb::arg("dimension"),
        nb::arg("kind"), nb::arg("threads"), nb::arg("kept"),
        "(start, words, top, scale, dense, codes) of the inverted lists of rows. kept: scales to keep, or none.");
  nb::class_<PyPostings>(m, "Postings", nb::is_weak_referenceable(),
                         "Inverted lists as the engine sees them. Immutable.")
      .def("__init__", &make, nb::arg("features"), nb::arg("labels"), nb::arg("kind"), nb::arg("start"),
           nb::arg("words"), nb::arg("top"), nb::arg("scale"), nb::arg("bias"), nb::arg("dense"), nb::arg("codes"),
           nb::arg("matched_only"))
      .def("topk", &topk, nb::arg("offsets"), nb::arg("features"), nb::arg("values"), nb::arg("labels"),
           nb::arg("scores"), nb::arg("threads"), nb::arg("matched_only"), nb::arg("filter").none())
      .def("score", &score, nb::arg("offsets"), nb::arg("features"), nb::arg("values"), nb::arg("label_start"),
           nb::arg("labels"), nb::arg("scores"), nb::arg("threads"))
      .def("lists", &lists_of, "(start, labels, weights) of every list.")
      .def("row", &row_of, nb::arg("label"), "The features and weights of a label.");
}
