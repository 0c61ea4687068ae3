// The bindings of scores of given labels: queries and labels in, what each label scores out, without a beam.
#include "../forest.hpp"
#include "rows.hpp"

#include <atomic>
#include <cmath>
#include <nanobind/stl/vector.h>

#include "beamwood/index/index_search.hpp"
#include "beamwood/members/members.hpp"
#include "beamwood/members/path_scores.hpp"

using namespace beamwood;

namespace {

using Given = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Scratch memory of one worker.
struct alignas(kApart) LabelScorer {
  PathScores paths;
  IndexSearch index;
  std::vector<std::uint32_t> labels;
  std::vector<float> trees, sums;

  // The scores of one row of labels; -1 stands for none, which scores -inf. members: the scores of trees and words
  // themselves go there too, where they are asked for. False: damaged.
  bool run(const Forest& forest, const Query& query, Isa isa, std::span<const std::span<const std::uint32_t>> leaves,
           std::span<const std::int64_t> given, float* scores, float* by_trees, float* by_words) {
    labels.clear();
    for (const std::int64_t label : given) labels.push_back(label < 0 ? 0u : static_cast<std::uint32_t>(label));
    trees.assign(given.size(), 0.0f), sums.assign(given.size(), 0.0f);
    if (!forest.trees.empty() && !paths.run(forest, query, isa, leaves, labels, trees.data())) return false;
    if (forest.postings && !index.score(forest.postings, query, labels, sums.data())) return false;
    float best = 0.0f;
    if (forest.head && !find_best_sum(index, forest.head, forest.labels, 0.0f, best)) return false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool there = given[i] >= 0;
      float score = forest.trees.empty() ? sums[i] : trees[i];
      if (forest.head)
        score = head_score(forest.head, labels[i], evidence_of(forest.head, forest.activation.path, trees[i]), sums[i],
                           best);
      scores[i] = there ? score : -std::numeric_limits<float>::infinity();
      if (by_trees) by_trees[i] = trees[i], by_words[i] = sums[i];
    }
    return true;
  }
};

// The answer is a fault: see Forest.topk. trees, words: may be empty.
int score(PyForest& self, const AnyIndex& offsets, const AnyIndex& features, const In<float>& values,
          const Many<In<std::uint32_t>>& given, const Given& labels, const Scores& scores, const Scores& trees,
          const Scores& words, unsigned threads, Isa isa) {
  const std::vector<In<std::uint32_t>> leaves = items_of(given);
  const std::size_t rows = labels.shape(0), width = labels.shape(1);
  const bool apart = trees.shape(0) != 0;
  if (scores.shape(0) != rows || scores.shape(1) != width || leaves.size() != self.forest.trees.size() ||
      (apart &&
       (trees.shape(0) != rows || trees.shape(1) != width || words.shape(0) != rows || words.shape(1) != width)))
    throw nb::value_error("results differ in shape");
  if (self.forest.layout != Layout::cascade || !kernels_for(isa))
    throw nb::value_error("scores are made by the cascade layout");
  for (std::size_t i = 0; i < rows * width; ++i)
    if (labels.data()[i] >= static_cast<std::int64_t>(self.forest.labels))
      throw nb::value_error("a label is out of range");
  std::vector<std::span<const std::uint32_t>> places;
  for (const auto& array : leaves) places.push_back(view(array));
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  QueryBatch batch;
  const auto fault = check_rows(batch, offsets, features, values, self.forest.features).fault;
  if (fault != RowFault::none) return static_cast<int>(fault);
  if (self.forest.unit_rows) batch.make_unit();
  if (batch.queries().size() != rows) throw nb::value_error("results do not have a row for each query");
  std::vector<LabelScorer> scorers(std::max(1u, workers.threads));
  std::atomic<bool> sound{true};
  parallel_for(workers, rows, [&](std::size_t q, unsigned worker) {
    const std::size_t at = q * width;
    if (sound && !scorers[worker].run(self.forest, batch.queries()[q], isa, places, {labels.data() + at, width},
                                      scores.data() + at, apart ? trees.data() + at : nullptr,
                                      apart ? words.data() + at : nullptr))
      sound = false;
  });
  return sound && self.intact() ? 0 : kDamaged;
}

} // namespace

void bind_score(nb::module_& m) {
  m.def("score", &score, nb::arg("forest"), nb::arg("offsets"), nb::arg("features"), nb::arg("values"),
        nb::arg("leaves"), nb::arg("labels"), nb::arg("scores"), nb::arg("trees"), nb::arg("words"), nb::arg("threads"),
        nb::arg("isa"), "Fills the scores of given labels, one row of labels for each query.");
  m.def(
      "evidence",
      [](const Many<double>& given, const Activation& activation, float score) {
        const std::vector<double> numbers = items_of(given);
        const FloatMode mode;
        Head head;
        head.unlisted = numbers.at(3);
        return evidence_of(head, activation.path, score);
      },
      nb::arg("numbers"), nb::arg("activation"), nb::arg("score"), "What counts for a score of the trees.");
  m.def(
      "head_scores",
      [](const Many<double>& given, const Activation& activation, const In<float>& trees, const In<float>& words,
         const In<float>& best, const In<std::uint8_t>& kind, const Out<float>& out) {
        const std::vector<double> numbers = items_of(given);
        const FloatMode mode;
        Head head;
        head.bias = numbers.at(0), head.trees = numbers.at(1), head.words = numbers.at(2);
        head.unlisted = numbers.at(3), head.rowless = numbers.at(4), head.rowless_words = numbers.at(5);
        const std::size_t count =
            std::min({trees.shape(0), words.shape(0), best.shape(0), kind.shape(0), out.shape(0)});
        for (std::size_t i = 0; i < count; ++i) {
          const bool listed = kind.data()[i] == 0;
          const double e = listed ? evidence_of(head, activation.path, trees.data()[i]) : head.unlisted;
          const double share = share_of(words.data()[i], best.data()[i]);
          out.data()[i] = kind.data()[i] == 2 ? rowless_score(head, share) : head_score(head, e, share);
        }
      },
      nb::arg("numbers"), nb::arg("activation"), nb::arg("trees"), nb::arg("words"), nb::arg("best"), nb::arg("kind"),
      nb::arg("out"),
      "What the head gives for scores of trees and words: the one scalar function that search and plain reference "
      "share. "
      "kind: 0 listed by the trees, 1 not listed, 2 a label without rows.");
}
