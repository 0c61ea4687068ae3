// The bindings of label vectors and trees: sparse rows in, label vectors and clusters out.
#include <span>
#include <vector>

#include "../bindings.hpp"
#include "beamwood/training/balanced.hpp"
#include "beamwood/training/pifa.hpp"
#include "beamwood/training/wide.hpp"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <nanobind/stl/pair.h>
#pragma GCC diagnostic pop

namespace {

using namespace beamwood;

SparseRows checked_rows(const In<std::int64_t>& offset, const In<std::int32_t>& feature, const In<float>& value,
                        std::size_t features) {
  const SparseRows rows{view(offset), view(feature), view(value), features};
  if (!well_formed(rows)) throw nb::value_error("sparse rows: offsets, feature ids or values are out of range");
  return rows;
}

// Runs work(workers) without the GIL.
template <class Work> void run_free(unsigned threads, Work&& work) {
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  work(workers);
}

void balanced_order(const In<std::int64_t>& offset, const In<std::int32_t>& feature, const In<float>& value,
                    std::size_t features, std::size_t clusters, std::uint64_t seed, unsigned threads,
                    const Out<std::int64_t>& order) {
  const SparseRows rows = checked_rows(offset, feature, value, features);
  if (order.size() != rows.size() || clusters < 1 || clusters > rows.size())
    throw nb::value_error("balanced_order: expected 1 <= clusters <= rows and an order with one entry per row");
  std::int64_t* const out = order.data();
  run_free(threads, [&](const Workers& workers) {
    BalancedClustering clustering(rows, clusters, seed, workers);
    std::ranges::copy(clustering.run(), out);
  });
}

void wide_groups(const In<std::int64_t>& offset, const In<std::int32_t>& feature, const In<float>& value,
                 std::size_t features, const In<std::uint32_t>& members, const In<std::int64_t>& bounds,
                 std::size_t branching, std::uint64_t seed, std::uint64_t level, unsigned threads,
                 const Out<std::int32_t>& group) {
  const SparseRows rows = checked_rows(offset, feature, value, features);
  const Clusters clusters{view(members), view(bounds)};
  const auto end = clusters.bounds.empty() ? -1 : clusters.bounds.back();
  if (end != static_cast<std::int64_t>(members.size()) || clusters.bounds.front() != 0 ||
      !std::ranges::is_sorted(clusters.bounds) || group.size() != members.size() || branching < 2)
    throw nb::value_error("wide_groups: expected bounds that rise from 0 to the number of members, and branching >= 2");
  if (std::ranges::any_of(clusters.members, [&](std::uint32_t m) { return m >= rows.size(); }))
    throw nb::value_error("wide_groups: a member is not a row");
  run_free(threads, [&](const Workers& workers) {
    WideClustering(rows, branching, seed, workers).split(clusters, level, view(group));
  });
}

// Both passes of PIFA; between them allocate(entries) makes the arrays that the second one fills.
void pifa(const In<std::int64_t>& x_offset, const In<std::int32_t>& x_feature, const In<float>& x_value,
          std::size_t features, const In<std::int64_t>& p_offset, const In<std::int32_t>& p_row,
          const In<float>& p_value, unsigned threads, const Out<std::int64_t>& offset, const nb::callable& allocate) {
  const SparseRows X = checked_rows(x_offset, x_feature, x_value, features);
  const SparseRows positives = checked_rows(p_offset, p_row, p_value, X.size());
  const std::span<std::int64_t> offsets = view(offset);
  if (offsets.size() != positives.size() + 1) throw nb::value_error("pifa: expected one offset more than labels");
  run_free(threads, [&](const Workers& workers) {
    Pifa pifa(X, positives, workers);
    offsets[0] = 0;
    pifa.count(offsets.subspan(1));
    for (std::size_t l = 0; l < positives.size(); ++l) offsets[l + 1] += offsets[l];
    const auto entries = static_cast<std::size_t>(offsets.back());
    std::span<std::int32_t> feature;
    std::span<float> value;
    {
      const Locked held;
      const auto [f, v] = nb::cast<std::pair<Out<std::int32_t>, Out<float>>>(allocate(entries));
      if (f.size() != entries || v.size() != entries)
        throw nb::value_error("pifa: allocate gave arrays of another size");
      feature = {f.data(), entries}; // the caller keeps both arrays alive
      value = {v.data(), entries};
    }
    pifa.fill(offsets, feature, value);
  });
}

} // namespace

void bind_clustering(nb::module_& m) {
  m.def("balanced_order", &balanced_order, nb::arg("offset"), nb::arg("feature"), nb::arg("value"), nb::arg("features"),
        nb::arg("clusters"), nb::arg("seed"), nb::arg("threads"), nb::arg("order"),
        "Fills `order` with row numbers; consecutive runs of it are `clusters` balanced clusters.");
  m.def("wide_groups", &wide_groups, nb::arg("offset"), nb::arg("feature"), nb::arg("value"), nb::arg("features"),
        nb::arg("members"), nb::arg("bounds"), nb::arg("branching"), nb::arg("seed"), nb::arg("level"),
        nb::arg("threads"), nb::arg("group"),
        "Splits each cluster members[bounds[c]:bounds[c+1]] into up to `branching` groups of similar rows.");
  m.def("pifa", &pifa, nb::arg("x_offset"), nb::arg("x_feature"), nb::arg("x_value"), nb::arg("features"),
        nb::arg("p_offset"), nb::arg("p_row"), nb::arg("p_value"), nb::arg("threads"), nb::arg("offset"),
        nb::arg("allocate"),
        "Sums the positive rows of each label to unit vectors. Fills `offset`; allocate(entries) must return the int32 "
        "and float32 arrays for the feature ids and values, and keep them.");
}
