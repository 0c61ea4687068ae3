// What the doors in native/bind share: the array types that may cross, one function a room.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#pragma GCC diagnostic pop

namespace nb = nanobind;

// A contiguous one-dimensional array that native code only reads, or one that Python allocated for it to fill.
template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void bind_engine(nb::module_& m);
void bind_training(nb::module_& m);
void bind_text(nb::module_& m);
void bind_readers(nb::module_& m);
