// The bindings of mapped files: a descriptor in, its bytes as an array out, guarded against a file that vanishes.
#include "forest.hpp"

#include "beamwood/mapped.hpp"

using namespace beamwood;

void bind_mapping(nb::module_& m) {
  nb::class_<MappedFile>(m, "MappedFile", "A file's bytes, mapped; zeros and a mark when the file is cut under them.")
      .def(
          "__init__",
          [](MappedFile* self, int descriptor) {
            try {
              new (self) MappedFile(descriptor);
            } catch (const std::system_error& error) {
              errno = error.code().value();
              PyErr_SetFromErrno(PyExc_OSError);
              throw nb::python_error();
            }
          },
          nb::arg("descriptor"))
      .def(
          "bytes",
          [](nb::handle_t<MappedFile> self) {
            const auto& file = nb::cast<const MappedFile&>(self);
            return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(file.data(), {file.size()}, self);
          },
          "They keep the mapping alive.")
      .def("set_broken", &MappedFile::set_broken, "From now on every call that reads from it fails.")
      .def_prop_ro("broken", &MappedFile::broken);
  m.def(
      "is_broken",
      [](const In<std::uint8_t>& bytes) {
        MappedRange* const range = range_of(bytes.data());
        return range && !range->intact();
      },
      nb::arg("bytes"), "Whether an array lies in a mapping whose file was cut or could not be read.");
}
