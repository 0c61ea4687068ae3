// The door of search: one text in, ranked labels with their keys and names out, in one native call.
#include "forest.hpp"

#include <nanobind/stl/string_view.h>

using namespace beamwood;

namespace {

// Strings by number, over a blob and offsets that may lie in a damaged file.
struct Strings {
  In<std::uint8_t> blob;
  In<std::uint64_t> offsets;

  bool has(std::uint64_t i) const { return i + 1 < offsets.shape(0); }

  // Throws when the offsets lead outside; bytes that are not UTF-8 are replaced.
  nb::object at(std::uint64_t i) const {
    const std::uint64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    if (begin > end || end > blob.shape(0)) throw nb::index_error("string outside its table");
    const char* bytes = reinterpret_cast<const char*>(blob.data()) + begin;
    return nb::steal(PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(end - begin), "replace"));
  }
};

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

// (fault, known terms, native nanoseconds, hits): fault 0 is success, 5 a damaged model.
nb::tuple search(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Strings* keys,
                 const Strings* names, std::uint32_t k, std::uint32_t beam, int matcher, int isa,
                 const Filter* filter) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  std::uint64_t engine = 0;
  bool sound = true;
  {
    const nb::gil_scoped_release released;
    const FloatMode mode;
    sound = vectorizer.transform_one(text, scratch->text, scratch->ids, scratch->values);
    // A damaged vocabulary may name features that the forest does not have.
    sound = sound && (scratch->ids.empty() || scratch->ids.back() < self.forest.features);
    if (sound && self.forest.unit_rows)
      to_unit_length(scratch->values.data(), scratch->values.size(), scratch->values.data());
    if (sound && !scratch->ids.empty()) {
      scratch->labels.resize(k);
      scratch->scores.resize(k);
      SearchOptions options = options_of(k, beam, matcher, isa, true);
      const Query query{scratch->ids.data(), scratch->values.data(), static_cast<std::uint32_t>(scratch->ids.size())};
      const auto begin = std::chrono::steady_clock::now();
      std::int64_t* const labels = scratch->labels.data();
      float* const scores = scratch->scores.data();
      sound = filter ? scratch->filtered.run(self.forest, *filter, {&query, 1}, options, Workers{}, labels, scores)
                     : scratch->beam.run(self.forest, {&query, 1}, options, Workers{}, labels, scores);
      engine = static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
    }
  }
  const std::size_t count = sound && !scratch->ids.empty() ? k : 0;
  return nb::make_tuple(sound ? 0 : 5, scratch->ids.size(), engine,
                        hits_of(scratch->labels.data(), scratch->scores.data(), count, keys, names));
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
        nb::arg("names").none(), nb::arg("k"), nb::arg("beam"), nb::arg("matcher"), nb::arg("isa"),
        nb::arg("filter").none());
  m.def(
      "hits",
      [](const In<std::int64_t>& labels, const In<float>& scores, const Strings* keys, const Strings* names) {
        return hits_of(labels.data(), scores.data(), std::min(labels.shape(0), scores.shape(0)), keys, names);
      },
      nb::arg("labels"), nb::arg("scores"), nb::arg("keys").none(), nb::arg("names").none(),
      "The rows of one answer as (label, key, name, score).");
}
