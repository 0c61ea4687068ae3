// CSR arrays of numpy in, a checked batch of queries out: what the bindings of engine and inverted lists share.
#pragma once
#include "../bindings.hpp"

#include "beamwood/engine/csr.hpp"

using AnyIndex = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Offset>
beamwood::RowCheck check_rows(beamwood::QueryBatch& batch, const AnyIndex& offsets, const AnyIndex& features,
                              const In<float>& values, std::uint32_t dimension) {
  const std::span<const Offset> starts{static_cast<const Offset*>(offsets.data()), offsets.shape(0)};
  if (features.dtype() == nb::dtype<std::int32_t>())
    return batch.checked(starts, std::span{static_cast<const std::int32_t*>(features.data()), features.shape(0)},
                         view(values), dimension);
  return batch.checked(starts, std::span{static_cast<const std::int64_t*>(features.data()), features.shape(0)},
                       view(values), dimension);
}

inline beamwood::RowCheck check_rows(beamwood::QueryBatch& batch, const AnyIndex& offsets, const AnyIndex& features,
                                     const In<float>& values, std::uint32_t dimension) {
  const auto known = [](const AnyIndex& a) {
    return a.dtype() == nb::dtype<std::int32_t>() || a.dtype() == nb::dtype<std::int64_t>();
  };
  if (!known(offsets) || !known(features)) throw nb::type_error("row offsets and feature ids are int32 or int64");
  return offsets.dtype() == nb::dtype<std::int32_t>()
             ? check_rows<std::int32_t>(batch, offsets, features, values, dimension)
             : check_rows<std::int64_t>(batch, offsets, features, values, dimension);
}
