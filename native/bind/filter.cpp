// The bindings of filters: a forest and a truth value a label in, an immutable filter out; keys in, label numbers out.
#include "forest.hpp"

#include "beamwood/xxh3.hpp"

using namespace beamwood;

namespace {

// The number of each string in a table with slots, or -1; the table may lie in a damaged file.
class Finder {
public:
  Finder(std::span<const std::uint8_t> blob, std::span<const std::uint64_t> offsets,
         std::span<const std::uint32_t> slots)
      : blob_(blob), offsets_(offsets), slots_(slots) {}

  std::int64_t find(const std::uint8_t* bytes, std::size_t size) const noexcept {
    if (slots_.empty()) return -1;
    std::size_t at = xxh3_64(bytes, size) % slots_.size();
    for (std::size_t tried = 0; tried < slots_.size(); ++tried) {
      const std::uint32_t found = slots_[at];
      if (found == 0 || found >= offsets_.size()) return -1;
      const std::uint64_t begin = offsets_[found - 1], end = offsets_[found];
      if (begin <= end && end <= blob_.size() && end - begin == size &&
          std::equal(bytes, bytes + size, blob_.data() + begin))
        return std::int64_t{found} - 1;
      at = at + 1 == slots_.size() ? 0 : at + 1;
    }
    return -1;
  }

private:
  std::span<const std::uint8_t> blob_;
  std::span<const std::uint64_t> offsets_;
  std::span<const std::uint32_t> slots_;
};

void find_strings(const In<std::uint8_t>& blob, const In<std::uint64_t>& offsets, const In<std::uint32_t>& slots,
                  const nb::list& keys, const Out<std::int64_t>& found) {
  if (found.shape(0) != keys.size()) throw nb::value_error("wrong size");
  const Finder finder(view(blob), view(offsets), view(slots));
  std::size_t i = 0;
  for (const nb::handle key : keys) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
    if (!bytes) { // a lone surrogate: no key has one
      if (!PyUnicode_Check(key.ptr())) throw nb::python_error();
      PyErr_Clear();
    }
    found.data()[i++] =
        bytes ? finder.find(reinterpret_cast<const std::uint8_t*>(bytes), static_cast<std::size_t>(size)) : -1;
  }
}

} // namespace

void bind_filter(nb::module_& m) {
  nb::class_<Filter>(m, "Filter", "One bit a node: whether an allowed label lies at or below it. Never changes.")
      .def(
          "__init__",
          [](Filter* self, const PyForest& forest, const In<std::uint8_t>& allowed) {
            if (allowed.shape(0) != forest.forest.labels) throw nb::value_error("one truth value a label is wanted");
            Filter built;
            {
              const nb::gil_scoped_release released;
              if (!built.build(forest.forest, view(allowed))) throw nb::index_error("the trees are damaged");
            }
            new (self) Filter(std::move(built));
          },
          nb::arg("forest"), nb::arg("allowed"))
      .def_prop_ro("bytes", &Filter::bytes);
  m.def("find_strings", &find_strings, nb::arg("blob"), nb::arg("offsets"), nb::arg("slots"), nb::arg("keys"),
        nb::arg("found"), "The number of each key in a string table, or -1.");
}
