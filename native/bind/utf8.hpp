// A Python str in, its UTF-8 bytes out, without a copy where Python keeps them. For all bindings that take text.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.hpp"

// Raises one of beamwood's own errors.
[[noreturn]] inline void raise(const char* kind, const std::string& message) {
  const nb::object type = nb::module_::import_("beamwood.errors").attr(kind);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

// The bytes stay valid while the str and `keeper` live. Lone surrogates pass as three bytes each, as in Python's
// "surrogatepass". Throws TypeError for what is no str.
inline std::string_view utf8_of(nb::handle text, nb::object& keeper) {
  if (!PyUnicode_Check(text.ptr())) throw nb::type_error("every text must be a str");
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!bytes) {
    PyErr_Clear();
    keeper = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!keeper.is_valid()) throw nb::python_error();
    bytes = PyBytes_AsString(keeper.ptr());
    size = PyBytes_Size(keeper.ptr());
  }
  if (size >= Py_ssize_t{1} << 31) raise("DataError", "a text has 2 GiB or more; cut it into smaller ones");
  return {bytes, static_cast<std::size_t>(size)};
}

// The bytes of a list of str, valid as long as this and the list live.
class Utf8Texts {
public:
  explicit Utf8Texts(const nb::list& texts) {
    views_.reserve(texts.size());
    for (nb::handle text : texts) {
      nb::object keeper;
      views_.push_back(utf8_of(text, keeper));
      if (keeper.is_valid()) keepers_.push_back(std::move(keeper));
    }
  }
  std::span<const std::string_view> views() const noexcept { return views_; }

private:
  std::vector<std::string_view> views_;
  std::vector<nb::object> keepers_;
};
