// The bindings of a search in two halves (split_search.hpp), and of what puts the answers of several parts together.
#include "../forest.hpp"
#include "../index/rows.hpp"

#include "beamwood/engine/split_search.hpp"

using namespace beamwood;

namespace {

using F32 = In<float>;
using U32 = In<std::uint32_t>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using InTable = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Some, class Other> void check_alike(const Some& some, const Other& other) {
  if (some.shape(0) != other.shape(0) || some.shape(1) != other.shape(1))
    throw nb::value_error("tables differ in shape");
}

// A batch of queries, checked, with scratch memory.
struct SplitScratch {
  QueryBatch batch;
  SplitSearch search;
  MetBatch met;
};

int check_queries(QueryBatch& batch, const PyForest& forest, const AnyIndex& offsets, const AnyIndex& features,
                  const F32& values) {
  const auto fault = static_cast<int>(check_rows(batch, offsets, features, values, forest.forest.features).fault);
  if (fault == 0 && forest.forest.unit_rows) batch.make_unit();
  return fault;
}

void check_cascade(const PyForest& forest) {
  if (forest.forest.layout != Layout::cascade) throw nb::value_error("only a cascade is searched in halves");
}

Shelf<SplitScratch> shelf;

// (fault, start, tree, layer, node, score): see Forest.topk for faults.
nb::tuple walk_above(PyForest& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
                     std::uint32_t k, std::uint32_t beam, unsigned threads, const SearchOptions& engine,
                     const Filter* filter) {
  check_fits(filter, self);
  check_cascade(self);
  const SearchOptions options = asked_of(engine, k, beam);
  const Workers workers = python_workers(threads);
  int fault = 0;
  std::vector<std::int64_t> start;
  std::vector<std::uint32_t> tree, layer, node;
  std::vector<float> score;
  {
    const Unlocked released;
    const FloatMode mode;
    const Shelf<SplitScratch>::Loan scratch(shelf);
    fault = check_queries(scratch->batch, self, offsets, features, values);
    MetBatch& met = scratch->met;
    if (fault == 0 && !scratch->search.above(self.forest, scratch->batch.queries(), options, workers, filter, met))
      fault = kDamaged;
    if (fault == 0) {
      start = met.start;
      for (const Met& one : met.met)
        tree.push_back(one.tree), layer.push_back(one.layer), node.push_back(one.node), score.push_back(one.score);
    }
  }
  return nb::make_tuple(fault, give(std::move(start)), give(std::move(tree)), give(std::move(layer)),
                        give(std::move(node)), give(std::move(score)));
}

// The nodes that another process sent. Throws where memory safety would suffer.
void read_met(const Forest& forest, const In<std::int64_t>& start, const U32& tree, const U32& layer, const U32& node,
              const F32& score, MetBatch& out) {
  const auto starts = view(start);
  const std::size_t count = tree.shape(0);
  if (starts.empty() || starts.front() != 0 || starts.back() != static_cast<std::int64_t>(count) ||
      !std::ranges::is_sorted(starts) || layer.shape(0) != count || node.shape(0) != count || score.shape(0) != count)
    throw nb::value_error("nodes do not have a part for each query");
  out.start.assign(1, 0);
  out.met.clear();
  for (std::size_t q = 0; q + 1 < starts.size(); ++q) {
    for (auto i = static_cast<std::size_t>(starts[q]); i < static_cast<std::size_t>(starts[q + 1]); ++i) {
      const Met met{tree.data()[i], layer.data()[i], node.data()[i], score.data()[i]};
      if (!GivenNodes::fits(forest, met)) throw nb::value_error("there is no such node here");
      if (GivenNodes::has_labels(forest, met)) out.met.push_back(met);
    }
    const auto own = std::span(out.met).subspan(static_cast<std::size_t>(out.start.back()));
    if (!std::ranges::is_sorted(own, {}, &Met::tree)) throw nb::value_error("nodes do not come tree by tree");
    out.start.push_back(static_cast<std::int64_t>(out.met.size()));
  }
}

int score_below(PyForest& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
                const In<std::int64_t>& start, const U32& tree, const U32& layer, const U32& node, const F32& score,
                const Table<std::int64_t>& labels, const Table<float>& scores, unsigned threads,
                const SearchOptions& engine, const Filter* filter) {
  check_fits(filter, self);
  check_cascade(self);
  check_alike(labels, scores);
  const SearchOptions options = asked_of(engine, labels.shape(1), 1);
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  const Shelf<SplitScratch>::Loan scratch(shelf);
  if (const int fault = check_queries(scratch->batch, self, offsets, features, values)) return fault;
  read_met(self.forest, start, tree, layer, node, score, scratch->met);
  const auto queries = scratch->batch.queries();
  if (queries.size() != labels.shape(0) || queries.size() + 1 != scratch->met.start.size())
    throw nb::value_error("results do not have a row for each query");
  const bool sound =
      scratch->search.below(self.forest, queries, options, workers, filter, scratch->met, labels.data(), scores.data());
  return sound ? 0 : kDamaged;
}

// What the words of a part say: see MemberSearch::run_part.
int words_of_part(PyForest& self, const AnyIndex& offsets, const AnyIndex& features, const F32& values,
                  const InTable<std::int64_t>& listed, const Table<float>& listed_sums,
                  const Table<std::int64_t>& labels, const Table<float>& sums, const Out<float>& best, unsigned threads,
                  const Filter* filter) {
  check_fits(filter, self);
  check_alike(listed, listed_sums), check_alike(labels, sums);
  if (!self.forest.postings || listed.shape(0) != labels.shape(0) || best.shape(0) != labels.shape(0))
    throw nb::value_error("results do not have a row for each query");
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (listed.data()[i] >= std::int64_t{self.forest.labels}) throw nb::value_error("a label is out of range");
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  QueryBatch batch;
  if (const int fault = check_queries(batch, self, offsets, features, values)) return fault;
  if (batch.queries().size() != labels.shape(0)) throw nb::value_error("results do not have a row for each query");
  std::vector<MemberSearch> searches(workers.threads);
  const std::size_t width = labels.shape(1), given = listed.shape(1);
  const bool sound = Search::each_run(workers, labels.shape(0), [&](std::size_t q, unsigned worker) {
    return searches[worker].run_part(self.forest, batch.queries()[q], static_cast<std::uint32_t>(width), filter,
                                     {listed.data() + q * given, given}, listed_sums.data() + q * given,
                                     labels.data() + q * width, sums.data() + q * width, best.data() + q);
  });
  return sound ? 0 : kDamaged;
}

// Candidates of trees and words, padded with -1, and the best sums, into answers: what the head of a model makes of them.
void rank_members(PyForest& self, const InTable<std::int64_t>& listed, const InTable<float>& tree_scores,
                  const InTable<float>& listed_sums, const InTable<std::int64_t>& by_words, const InTable<float>& sums,
                  const F32& best, const Table<std::int64_t>& labels, const Table<float>& scores,
                  const Table<std::uint8_t>& found) {
  check_alike(listed, tree_scores), check_alike(listed, listed_sums), check_alike(by_words, sums);
  check_alike(labels, scores), check_alike(labels, found);
  const std::size_t rows = labels.shape(0), k = labels.shape(1);
  if (!self.forest.head || listed.shape(0) != rows || by_words.shape(0) != rows || best.shape(0) != rows)
    throw nb::value_error("results do not have a row for each query");
  const Unlocked released;
  const FloatMode mode;
  const auto inside = [&](std::int64_t label) { return label >= 0 && label < std::int64_t{self.forest.labels}; };
  const Head& head = self.forest.head;
  const Path path = self.forest.activation.path;
  MemberCandidates candidates;
  for (std::size_t q = 0; q < rows; ++q) {
    candidates.clear();
    for (std::size_t i = q * listed.shape(1); i < (q + 1) * listed.shape(1); ++i)
      if (const std::int64_t label = listed.data()[i]; inside(label))
        candidates.add_by_trees(static_cast<std::uint32_t>(label), evidence_of(head, path, tree_scores.data()[i]),
                                listed_sums.data()[i]);
    candidates.listed();
    for (std::size_t i = q * by_words.shape(1); i < (q + 1) * by_words.shape(1); ++i)
      if (const std::int64_t label = by_words.data()[i]; inside(label))
        candidates.add_by_words(head, static_cast<std::uint32_t>(label), sums.data()[i]);
    candidates.rank(head, best.data()[q], static_cast<std::uint32_t>(k), labels.data() + q * k, scores.data() + q * k,
                    found.data() + q * k);
  }
}

// The best of several lists by the one order, row by row.
void merge_ranked(const InTable<std::int64_t>& given, const InTable<float>& given_scores,
                  const Table<std::int64_t>& labels, const Table<float>& scores) {
  check_alike(given, given_scores), check_alike(labels, scores);
  if (given.shape(0) != labels.shape(0)) throw nb::value_error("results do not have a row for each query");
  const Unlocked released;
  const std::size_t wide = given.shape(1), k = labels.shape(1);
  TopK best;
  for (std::size_t q = 0; q < given.shape(0); ++q) {
    best.reset(static_cast<std::uint32_t>(k));
    for (std::size_t i = q * wide; i < (q + 1) * wide; ++i)
      if (given.data()[i] >= 0) best.offer(key_of(given_scores.data()[i], static_cast<std::uint32_t>(given.data()[i])));
    write_row(best, static_cast<std::uint32_t>(k), labels.data() + q * k, scores.data() + q * k);
  }
}

} // namespace

void bind_split(nb::module_& m) {
  m.def("walk_above", &walk_above, nb::arg("forest"), nb::arg("offsets"), nb::arg("features"), nb::arg("values"),
        nb::arg("k"), nb::arg("beam"), nb::arg("threads"), nb::arg("engine"), nb::arg("filter").none(),
        "(fault, start, tree, layer, node, score): the nodes of each query whose labels its beam reaches.");
  m.def("score_below", &score_below, nb::arg("forest"), nb::arg("offsets"), nb::arg("features"), nb::arg("values"),
        nb::arg("start"), nb::arg("tree"), nb::arg("layer"), nb::arg("node"), nb::arg("score"), nb::arg("labels"),
        nb::arg("scores"), nb::arg("threads"), nb::arg("engine"), nb::arg("filter").none(),
        "Fills labels and scores with the best below such nodes. The answer is a fault, as Forest.topk's.");
  m.def("words_of_part", &words_of_part, nb::arg("forest"), nb::arg("offsets"), nb::arg("features"), nb::arg("values"),
        nb::arg("listed"), nb::arg("listed_sums"), nb::arg("labels"), nb::arg("sums"), nb::arg("best"),
        nb::arg("threads"), nb::arg("filter").none(),
        "Fills what the words of a part of a model say of its labels. The answer is a fault, as Forest.topk's.");
  m.def("rank_members", &rank_members, nb::arg("forest"), nb::arg("listed"), nb::arg("tree_scores"),
        nb::arg("listed_sums"), nb::arg("by_words"), nb::arg("sums"), nb::arg("best"), nb::arg("labels"),
        nb::arg("scores"), nb::arg("found"), "Fills the answers that a model's head makes of candidates.");
  m.def("merge_ranked", &merge_ranked, nb::arg("given"), nb::arg("given_scores"), nb::arg("labels"), nb::arg("scores"),
        "Fills labels and scores with the best of several lists, by the one order.");
}
