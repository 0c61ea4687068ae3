// The bindings of vectors of words: sparse rows and tables in, vectors of rows and the parts of an SVD out.
#include <span>
#include <vector>

#include "../bindings.hpp"
#include "beamwood/training/word_vectors.hpp"

namespace {

using namespace beamwood;

template <class T> Table<T> checked_table(std::span<T> value, std::size_t width) {
  if (width < 1 || value.size() % width) throw nb::value_error("a table whose size is no multiple of its width");
  return {value, width};
}

template <class Work> void run_free(unsigned threads, Work&& work) {
  const Workers workers = python_workers(threads);
  const Unlocked released;
  const FloatMode mode;
  work(workers);
}

void bound_row_vectors(const In<std::int64_t>& offset, const In<std::int32_t>& feature, const In<float>& value,
                       const In<float>& table, std::size_t width, unsigned threads, const Out<float>& out) {
  const auto from = checked_table(view(table), width);
  const auto to = checked_table(view(out), width);
  const SparseRows rows{view(offset), view(feature), view(value), from.rows()};
  if (!well_formed(rows)) throw nb::value_error("sparse rows: offsets, feature ids or values are out of range");
  if (to.rows() != rows.size()) throw nb::value_error("row_vectors: expected a vector for each row");
  run_free(threads, [&](const Workers& workers) { row_vectors(rows, from, to, workers); });
}

void bound_gram(const In<float>& table, std::size_t width, unsigned threads, const Out<double>& out) {
  const auto from = checked_table(view(table), width);
  if (out.size() != width * width) throw nb::value_error("gram: expected room for width x width numbers");
  run_free(threads, [&](const Workers& workers) { gram(from, view(out), workers); });
}

void bound_turned(const In<float>& table, std::size_t width, const In<double>& matrix, std::size_t to_width,
                  unsigned threads, const Out<float>& out) {
  const auto from = checked_table(view(table), width);
  const auto to = checked_table(view(out), to_width);
  if (matrix.size() != width * to_width || to.rows() != from.rows())
    throw nb::value_error("turned: the matrix or the result has another size");
  run_free(threads, [&](const Workers& workers) { turned(from, view(matrix), to, workers); });
}

void bound_eigen(const In<double>& matrix, std::size_t width, const Out<double>& values, const Out<double>& vectors) {
  if (width < 1 || matrix.size() != width * width || values.size() != width || vectors.size() != matrix.size())
    throw nb::value_error("eigen: expected width x width numbers");
  const std::vector<double> given(matrix.data(), matrix.data() + matrix.size());
  run_free(1, [&](const Workers&) { eigen(given, width, view(values), view(vectors)); });
}

} // namespace

void bind_word_vectors(nb::module_& m) {
  m.def("row_vectors", &bound_row_vectors, nb::arg("offset"), nb::arg("feature"), nb::arg("value"), nb::arg("table"),
        nb::arg("width"), nb::arg("threads"), nb::arg("out"),
        "Fills `out` with a vector per sparse row: the sum of the table's vectors of its features.");
  m.def("gram", &bound_gram, nb::arg("table"), nb::arg("width"), nb::arg("threads"), nb::arg("out"),
        "Fills `out` with the products of all pairs of a table's columns.");
  m.def("turned", &bound_turned, nb::arg("table"), nb::arg("width"), nb::arg("matrix"), nb::arg("to_width"),
        nb::arg("threads"), nb::arg("out"), "Fills `out` with a table times a matrix.");
  m.def("eigen", &bound_eigen, nb::arg("matrix"), nb::arg("width"), nb::arg("values"), nb::arg("vectors"),
        "Eigenvalues, falling, and eigenvectors (columns) of a symmetric matrix.");
}
