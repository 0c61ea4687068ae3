// The door of search: one text in, ranked labels with their keys and names out, in one native call.
#include "forest.hpp"

#include <nanobind/stl/string_view.h>

#include "beamwood/json.hpp"

using namespace beamwood;

namespace {

// Strings by number, over a blob and offsets that may lie in a damaged file.
struct Strings {
  In<std::uint8_t> blob;
  In<std::uint64_t> offsets;

  bool has(std::uint64_t i) const { return i + 1 < offsets.shape(0); }

  // Throws when the offsets lead outside.
  std::string_view bytes(std::uint64_t i) const {
    const std::uint64_t begin = offsets.data()[i], end = offsets.data()[i + 1];
    if (begin > end || end > blob.shape(0)) throw nb::index_error("string outside its table");
    return {reinterpret_cast<const char*>(blob.data()) + begin, end - begin};
  }

  // Bytes that are not UTF-8 are replaced.
  nb::object at(std::uint64_t i) const {
    const std::string_view text = bytes(i);
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
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

// The same as a JSON list of objects.
void put_hits(const std::int64_t* labels, const float* scores, std::size_t count, const Strings* keys,
              const Strings* names, float least, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < count && labels[i] >= 0; ++i) {
    if (!(scores[i] >= least)) continue;
    const auto label = static_cast<std::uint64_t>(labels[i]);
    const std::string number = keys && keys->has(label) ? std::string() : std::to_string(label);
    const std::string_view key = number.empty() ? keys->bytes(label) : std::string_view(number);
    out += out.back() == '[' ? "{\"label\":" : ",{\"label\":";
    json::put_number(label, out);
    out += ",\"key\":";
    json::put_string(key, out);
    out += ",\"name\":";
    json::put_string(names && names->has(label) ? names->bytes(label) : key, out);
    out += ",\"score\":";
    json::put_number(scores[i], out);
    out += '}';
  }
  out += ']';
}

// What is asked of one text, but for the text.
struct Wanted {
  std::uint32_t k, beam;
  int matcher, isa;
  bool bound;
  const Filter* filter;
};

struct Found {
  bool sound = true;
  std::size_t count = 0; // of the scratch's labels and scores
  std::uint64_t nanoseconds = 0;
};

// Text to labels and scores in the scratch. Needs no Python.
Found find(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Wanted& wanted,
           CallScratch& scratch) {
  Found found;
  const FloatMode mode;
  // A damaged vocabulary may name features that the forest does not have.
  found.sound = vectorizer.transform_one(text, scratch.text, scratch.ids, scratch.values) &&
                (scratch.ids.empty() || scratch.ids.back() < self.forest.features);
  if (!found.sound || scratch.ids.empty()) return found;
  if (self.forest.unit_rows) to_unit_length(scratch.values.data(), scratch.values.size(), scratch.values.data());
  scratch.labels.resize(wanted.k);
  scratch.scores.resize(wanted.k);
  SearchOptions options = options_of(wanted.k, wanted.beam, wanted.matcher, wanted.isa, wanted.bound);
  const Query query{scratch.ids.data(), scratch.values.data(), static_cast<std::uint32_t>(scratch.ids.size())};
  std::int64_t* const labels = scratch.labels.data();
  float* const scores = scratch.scores.data();
  const auto begin = std::chrono::steady_clock::now();
  found.sound = wanted.filter
                    ? scratch.filtered.run(self.forest, *wanted.filter, {&query, 1}, options, Workers{}, labels, scores)
                    : scratch.beam.run(self.forest, {&query, 1}, options, Workers{}, labels, scores);
  found.nanoseconds =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  found.count = found.sound ? wanted.k : 0;
  return found;
}

// (fault, known terms, native nanoseconds, hits): fault 0 is success, 5 a damaged model.
nb::tuple search(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Strings* keys,
                 const Strings* names, std::uint32_t k, std::uint32_t beam, int matcher, int isa, bool bound,
                 const Filter* filter) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  {
    const nb::gil_scoped_release released;
    found = find(self, vectorizer, text, {k, beam, matcher, isa, bound, filter}, *scratch.operator->());
  }
  return nb::make_tuple(found.sound ? 0 : 5, scratch->ids.size(), found.nanoseconds,
                        hits_of(scratch->labels.data(), scratch->scores.data(), found.count, keys, names));
}

// The same with the hits that score at least `least` as JSON, in bytes: what a server sends on.
nb::tuple search_json(PyForest& self, const Vectorizer& vectorizer, std::string_view text, const Strings* keys,
                      const Strings* names, std::uint32_t k, std::uint32_t beam, int matcher, int isa, bool bound,
                      const Filter* filter, float least) {
  check_fits(filter, self);
  const Shelf<CallScratch>::Loan scratch(self.shelf);
  Found found;
  std::string out;
  {
    const nb::gil_scoped_release released;
    found = find(self, vectorizer, text, {k, beam, matcher, isa, bound, filter}, *scratch.operator->());
    put_hits(scratch->labels.data(), scratch->scores.data(), found.count, keys, names, least, out);
  }
  return nb::make_tuple(found.sound ? 0 : 5, scratch->ids.size(), found.nanoseconds, nb::bytes(out.data(), out.size()));
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
