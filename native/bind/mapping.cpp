// The bindings of mapped files: a descriptor in, its bytes as an array out, guarded against a file that vanishes.
#include "forest.hpp"

#include <memory>

#include "beamwood/mapped.hpp"

using namespace beamwood;

namespace {

// Goes without Python's lock: the last one to let go of a file that was deleted meanwhile frees all of its pages and its
// room on the disk, 100 ms for 500 MB, and whoever runs Python would wait for that.
class Mapping {
public:
  explicit Mapping(int descriptor) : file_(std::make_unique<MappedFile>(descriptor)) {}
  ~Mapping() {
    const Unlocked released;
    file_.reset();
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const MappedFile& file() const noexcept { return *file_; }
  void set_broken() noexcept { file_->set_broken(); }

private:
  std::unique_ptr<MappedFile> file_;
};

} // namespace

void bind_mapping(nb::module_& m) {
  nb::class_<Mapping>(m, "MappedFile", "A file's bytes, mapped; zeros and a mark when the file is cut under them.")
      .def(
          "__init__",
          [](Mapping* self, int descriptor) {
            try {
              new (self) Mapping(descriptor);
            } catch (const std::system_error& error) {
              errno = error.code().value();
              PyErr_SetFromErrno(PyExc_OSError);
              throw nb::python_error();
            }
          },
          nb::arg("descriptor"))
      .def(
          "bytes",
          [](nb::handle_t<Mapping> self) {
            const auto& file = nb::cast<const Mapping&>(self).file();
            return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(file.data(), {file.size()}, self);
          },
          "They keep the mapping alive.")
      .def("set_broken", &Mapping::set_broken, "From now on every call that reads from it fails.")
      .def_prop_ro("broken", [](const Mapping& self) { return self.file().broken(); });
  m.def(
      "is_broken",
      [](const In<std::uint8_t>& bytes) {
        MappedRange* const range = range_of(bytes.data());
        return range && !range->intact();
      },
      nb::arg("bytes"), "Whether an array lies in a mapping whose file was cut or could not be read.");
  m.def(
      "let_go", [](const In<std::uint8_t>& bytes) { let_go(bytes.data(), bytes.size()); }, nb::arg("bytes"),
      "Gives the pages of an array that lies in a mapping back to the system until it is read again.");
}
