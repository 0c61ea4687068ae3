// The bindings of readers and writers: blocks of bytes go in, the arrays of sparse rows come out without a copy;
// ranked labels go in, lines of text come out.
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "beamwood/wire/answers.hpp"
#include "beamwood/wire/cbor.hpp"
#include "beamwood/wire/parse.hpp"
#include "beamwood/wire/print.hpp"
#include "bindings.hpp"
#include "find.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#pragma GCC diagnostic pop

namespace {

using namespace beamwood;

template <class T> nb::ndarray<nb::numpy, T, nb::ndim<1>> give(Grown<T>& grown) {
  grown.expect(1); // numpy needs an address, for an empty array too
  const std::size_t size = grown.size();
  T* const memory = grown.release();
  nb::capsule owner(memory, [](void* p) noexcept { std::free(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(memory, {size}, owner);
}

bool feed(RowParser& parser, const nb::bytes& block) {
  const std::string_view bytes(block.c_str(), block.size());
  Unlocked unlocked;
  return parser.feed(bytes);
}

// (starts, ids, values) of the features, (starts, ids) of the labels, targets; the parser is empty afterwards.
nb::tuple take(RowParser& parser) {
  return nb::make_tuple(give(parser.x_starts), give(parser.x_ids), give(parser.x_values), give(parser.y_starts),
                        give(parser.y_ids), give(parser.targets));
}

// The lines of some rows. Starts are relative to the given ids; Python has checked that they fit.
nb::bytes print_rows(const In<std::int64_t>& x_starts, const In<std::int32_t>& x_ids, const In<float>& x_values,
                     const In<std::int64_t>& y_starts, const In<std::int32_t>& y_ids) {
  std::string out;
  for (std::size_t row = 0; row + 1 < x_starts.size(); ++row) {
    const auto from = [&](const In<std::int64_t>& starts) { return static_cast<std::size_t>(starts.data()[row]); };
    const auto count = [&](const In<std::int64_t>& starts) {
      return static_cast<std::size_t>(starts.data()[row + 1] - starts.data()[row]);
    };
    print_row({y_ids.data() + from(y_starts), count(y_starts)}, {x_ids.data() + from(x_starts), count(x_starts)},
              {x_values.data() + from(x_starts), count(x_starts)}, out);
  }
  return nb::bytes(out.data(), out.size());
}

using Labels = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::optional<StringList> list_of(const Strings* strings) {
  if (!strings) return {};
  if (strings->offsets.shape(0) == 0) throw Damaged{};
  return StringList{view(strings->blob), view(strings->offsets)};
}

// The lines of some rows' answers. between: a character between cells, or none for JSON.
nb::bytes print_answers(const Labels& labels, const Scores& scores, std::uint64_t first_row, const Strings* keys,
                        const Strings* names, const Strings* ids, bool quote_ids, const std::string& between,
                        unsigned threads, const std::optional<Scores>& probabilities) {
  const std::size_t rows = labels.shape(0), k = labels.shape(1);
  if (scores.shape(0) != rows || scores.shape(1) != k) throw nb::value_error("labels and scores differ in shape");
  if (probabilities && (probabilities->shape(0) != rows || probabilities->shape(1) != k))
    throw nb::value_error("labels and probabilities differ in shape");
  const auto key_list = list_of(keys), name_list = list_of(names), id_list = list_of(ids);
  const auto pointer = [](const std::optional<StringList>& list) { return list ? &*list : nullptr; };
  const Answers all{labels.data(),
                    scores.data(),
                    rows,
                    k,
                    first_row,
                    pointer(key_list),
                    pointer(name_list),
                    pointer(id_list),
                    quote_ids,
                    probabilities ? probabilities->data() : nullptr};
  const Workers workers = python_workers(threads);
  std::vector<std::string> pieces;
  std::size_t size = 0;
  {
    const Unlocked unlocked;
    pieces = answer_lines(all, between.empty() ? '\0' : between[0], workers);
    for (const std::string& piece : pieces) size += piece.size();
  }
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (!made) throw nb::python_error();
  char* to = PyBytes_AsString(made);
  for (const std::string& piece : pieces)
    to = static_cast<char*>(std::memcpy(to, piece.data(), piece.size())) + piece.size();
  return nb::steal<nb::bytes>(made);
}

// Fills an array from the numbers of a CBOR array; where they end, or -1 when they are not all there.
template <class T> std::int64_t cbor_numbers(const In<std::uint8_t>& bytes, std::uint64_t at, const Out<T>& out) {
  const Unlocked unlocked;
  if (at > bytes.shape(0)) return -1;
  const std::uint64_t end = cbor::numbers(view(bytes), at, view(out));
  return end == cbor::kBad ? -1 : static_cast<std::int64_t>(end);
}

} // namespace

void bind_readers(nb::module_& m) {
  m.def("cbor_whole_numbers", &cbor_numbers<std::uint32_t>, nb::arg("bytes"), nb::arg("at"), nb::arg("out"));
  m.def("cbor_floats", &cbor_numbers<float>, nb::arg("bytes"), nb::arg("at"), nb::arg("out"));
  m.def("print_rows", &print_rows);
  m.def("print_answers", &print_answers, nb::arg("labels"), nb::arg("scores"), nb::arg("first_row"),
        nb::arg("keys").none(), nb::arg("names").none(), nb::arg("ids").none(), nb::arg("quote_ids"),
        nb::arg("between"), nb::arg("threads"), nb::arg("probabilities").none() = nb::none(),
        "Lines of JSON, or of cells with a character between them.");
  nb::class_<RowParser>(m, "RowParser")
      .def(
          "__init__",
          [](RowParser* self, bool svmlight, bool targets, std::uint64_t rows, std::uint32_t features,
             std::uint32_t labels, bool skip_bad, std::uint64_t first_line) {
            new (self) RowParser({svmlight, targets, rows, features, labels}, skip_bad, first_line);
          },
          nb::kw_only(), nb::arg("svmlight"), nb::arg("targets"), nb::arg("rows"), nb::arg("features"),
          nb::arg("labels"), nb::arg("skip_bad"), nb::arg("first_line"))
      .def("feed", &feed, nb::arg("block"))
      .def("finish", &RowParser::finish)
      .def("take", &take)
      .def_prop_ro("seen", &RowParser::seen)
      .def_prop_ro("bad_lines", &RowParser::bad_lines)
      .def_prop_ro("bad", [](const RowParser& parser) {
        nb::list told;
        for (const BadLine& bad : parser.bad()) told.append(nb::make_tuple(bad.line, bad.found, bad.expected));
        return told;
      });
}
