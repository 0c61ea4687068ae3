// The bindings of filters: a forest and a truth value per label in, an immutable filter out.
#include "forest.hpp"

#include "beamwood/strings.hpp"

using namespace beamwood;

void bind_filter(nb::module_& m) {
  nb::class_<Filter>(m, "Filter", "One bit a node: whether an allowed label lies at or below it. Never changes.")
      .def(
          "__init__",
          [](Filter* self, const PyForest& forest, const In<std::uint8_t>& allowed) {
            if (allowed.shape(0) != forest.forest.labels) throw nb::value_error("expected one truth value per label");
            Filter built;
            {
              const Unlocked released;
              if (!built.build(forest.forest, view(allowed))) throw Damaged{};
            }
            new (self) Filter(std::move(built));
          },
          nb::arg("forest"), nb::arg("allowed"))
      .def_prop_ro("bytes", &Filter::bytes);
}
