// The bindings of search: one text in, ranked labels with their keys and names out, in one native call.
#include "find.hpp"

#include <nanobind/stl/string_view.h>

using namespace beamwood;

namespace {

nb::list hits_of(const std::int64_t* labels, const float* scores, std::size_t count, const Strings* keys,
                 const Strings* names) {
  nb::list hits;
  for (std::size_t i = 0; i < count && labels[i] >= 0; ++i) {
    const auto label = static_cast<std::uint64_t>(labels[i]);
    const nb::object key = keys && keys->has(label) ? keys->at(label) : nb::object(nb::str(nb::int_(label)));
    hits.append(nb::make_tuple(label, key, names && names->has(label) ? names->at(label) : key, scores[i]));
  }
  return hits;
}

// (fault, known terms, native nanoseconds, hits): fault 0 is success, kDamaged a damaged model.
nb::tuple search(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Strings* keys,
                 const Strings* names, std::uint32_t k, std::uint32_t beam, int matcher, int isa, bool bound,
                 const Filter* filter) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  {
    const nb::gil_scoped_release released;
    found = find(self, vectorizer, text, {k, beam, matcher, isa, bound, filter}, *scratch);
  }
  return nb::make_tuple(found.sound ? 0 : kDamaged, scratch->ids.size(), found.nanoseconds,
                        hits_of(scratch->labels.data(), scratch->scores.data(), found.count, keys, names));
}

// The same with the hits that score at least `least` as fields of JSON, in bytes: what a server sends on.
nb::tuple search_json(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Strings* keys,
                      const Strings* names, std::uint32_t k, std::uint32_t beam, int matcher, int isa, bool bound,
                      const Filter* filter, float least) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  std::string out;
  {
    const nb::gil_scoped_release released;
    found = find(self, vectorizer, text, {k, beam, matcher, isa, bound, filter}, *scratch);
    put_hits(scratch->labels.data(), scratch->scores.data(), found.count, keys, names, least, scratch->ids.size(), out);
  }
  return nb::make_tuple(found.sound ? 0 : kDamaged, nb::bytes(out.data(), out.size()), found.nanoseconds);
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
  m.def("search", &search, nb::arg("forest"), nb::arg("vectorizer"), nb::arg("text"), nb::arg("keys").none(),
        nb::arg("names").none(), nb::arg("k"), nb::arg("beam"), nb::arg("matcher"), nb::arg("isa"), nb::arg("bound"),
        nb::arg("filter").none());
  m.def("search_json", &search_json, nb::arg("forest"), nb::arg("vectorizer"), nb::arg("text"), nb::arg("keys").none(),
        nb::arg("names").none(), nb::arg("k"), nb::arg("beam"), nb::arg("matcher"), nb::arg("isa"), nb::arg("bound"),
        nb::arg("filter").none(), nb::arg("least"));
  m.def(
      "hits",
      [](const In<std::int64_t>& labels, const In<float>& scores, const Strings* keys, const Strings* names) {
        return hits_of(labels.data(), scores.data(), std::min(labels.shape(0), scores.shape(0)), keys, names);
      },
      nb::arg("labels"), nb::arg("scores"), nb::arg("keys").none(), nb::arg("names").none(),
      "The rows of one answer as (label, key, name, score).");
}
