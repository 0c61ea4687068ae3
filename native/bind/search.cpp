// The bindings of search: one text in, ranked labels with their keys and names out, in one native call.
#include "find.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include <optional>

using namespace beamwood;

namespace {

// (label, key, name, score, probability or None) of each label and, of a model that has trees and words, who listed it.
nb::list hits_of(const std::int64_t* labels, const float* scores, const std::uint8_t* listed_by, std::size_t count,
                 const Captions& captions) {
  const Strings *const keys = captions.keys, *const names = captions.names;
  const Curves curves = captions.curves();
  nb::list hits;
  for (std::size_t i = 0; i < count && labels[i] >= 0; ++i) {
    const auto label = static_cast<std::uint64_t>(labels[i]);
    const nb::object key = keys && keys->has(label) ? keys->at(label) : nb::object(nb::str(nb::int_(label)));
    const nb::object probable =
        curves.empty() ? nb::object(nb::none()) : nb::object(nb::float_(curves.at(i, scores[i])));
    const nb::object name = names && names->has(label) ? names->at(label) : key;
    if (listed_by) hits.append(nb::make_tuple(label, key, name, scores[i], probable, kFoundBy[listed_by[i] & 3]));
    else hits.append(nb::make_tuple(label, key, name, scores[i], probable));
  }
  return hits;
}

// (fault, known terms, native nanoseconds, hits): fault 0 is success, kDamaged a damaged model.
nb::tuple search(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Captions& captions,
                 std::uint32_t k, std::uint32_t beam, const SearchOptions& engine, const Filter* filter) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  {
    const Unlocked released;
    found = find(self, vectorizer, text, {asked_of(engine, k, beam), filter}, *scratch);
  }
  const nb::list hits =
      hits_of(scratch->labels.data(), scratch->scores.data(), listed_by(*scratch), found.count, captions);
  return nb::make_tuple(found.sound && self.intact() ? 0 : kDamaged, scratch->ids.size(), found.nanoseconds, hits);
}

// The same with the hits that score at least `least` as fields of JSON, in bytes: what a server sends on.
nb::tuple search_json(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Captions& captions,
                      std::uint32_t k, std::uint32_t beam, const SearchOptions& engine, const Filter* filter,
                      float least) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  std::string out;
  {
    const Unlocked released;
    found = find(self, vectorizer, text, {asked_of(engine, k, beam), filter}, *scratch);
    put_hits(scratch->labels.data(), scratch->scores.data(), listed_by(*scratch), found.count, captions, least,
             scratch->ids.size(), out);
  }
  return nb::make_tuple(found.sound && self.intact() ? 0 : kDamaged, nb::bytes(out.data(), out.size()),
                        found.nanoseconds);
}

} // namespace

void bind_search(nb::module_& m) {
  nb::class_<Strings>(m, "Strings", "Strings by number: a blob of UTF-8 and offsets into it.")
      .def(
          "__init__",
          [](Strings* self, const In<std::uint8_t>& blob, const In<std::uint64_t>& offsets) {
            new (self) Strings{blob, offsets};
          },
          nb::arg("blob"), nb::arg("offsets"));
  nb::class_<Captions>(m, "Captions", "What answers show of labels: keys, names, and the curves of probabilities.")
      .def(
          "__init__",
          [](Captions* self, const Strings* keys, const Strings* names, const In<std::uint32_t>& ranks,
             const In<float>& scores, const In<float>& probabilities, float least) {
            if (ranks.shape(0) * scores.shape(0) != probabilities.shape(0) || (ranks.shape(0) && ranks.data()[0] != 0))
              throw nb::value_error("the curves do not have a probability for each group of ranks and knot");
            new (self) Captions{keys, names, ranks, scores, probabilities, least};
          },
          nb::arg("keys").none(), nb::arg("names").none(), nb::arg("ranks"), nb::arg("scores"),
          nb::arg("probabilities"), nb::arg("least") = std::numeric_limits<float>::quiet_NaN(), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>())
      .def(
          "count",
          [](const Captions& self, const In<std::int64_t>& labels, const In<float>& scores, bool has_terms) {
            self.count(labels.data(), scores.data(), std::min(labels.shape(0), scores.shape(0)), has_terms);
          },
          nb::arg("labels"), nb::arg("scores"), nb::arg("has_terms"), "Counts an answer that was not written here.")
      .def(
          "take",
          [](const Captions& self) {
            AnswerTally& given = *self.given;
            return nb::make_tuple(given.queries.exchange(0), given.empty.exchange(0), given.answered.exchange(0),
                                  given.top.exchange(0.0), given.labels.exchange(0));
          },
          "(queries, empty ones, answers, sum of their first values, labels above the cut) since this was last asked.")
      .def(
          "probability",
          [](const Captions& self, const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& scores,
             const nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
            const Curves curves = self.curves();
            if (curves.empty() || out.shape(0) != scores.shape(0) || out.shape(1) != scores.shape(1))
              throw nb::value_error("curves and room for a probability per score are expected");
            const std::size_t k = scores.shape(1);
            for (std::size_t i = 0; i < scores.size(); ++i) out.data()[i] = curves.at(i % k, scores.data()[i]);
          },
          nb::arg("scores"), nb::arg("out"), "How probable the labels of answers in rank order are.");
  m.def("search", &search, nb::arg("forest"), nb::arg("vectorizer"), nb::arg("text"), nb::arg("captions"), nb::arg("k"),
        nb::arg("beam"), nb::arg("engine"), nb::arg("filter").none());
  m.def("search_json", &search_json, nb::arg("forest"), nb::arg("vectorizer"), nb::arg("text"), nb::arg("captions"),
        nb::arg("k"), nb::arg("beam"), nb::arg("engine"), nb::arg("filter").none(), nb::arg("least"));
  m.def(
      "hits",
      [](const In<std::int64_t>& labels, const In<float>& scores, const Captions& captions,
         const std::optional<In<std::uint8_t>>& found) {
        std::size_t count = std::min(labels.shape(0), scores.shape(0));
        if (found) count = std::min(count, found->shape(0));
        return hits_of(labels.data(), scores.data(), found ? found->data() : nullptr, count, captions);
      },
      nb::arg("labels"), nb::arg("scores"), nb::arg("captions"), nb::arg("found").none() = nb::none(),
      "The rows of one answer as (label, key, name, score, probability or None) and, given found, which members found "
      "it.");
}
