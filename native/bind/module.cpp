// The Python module `beamwood._core`: gathers the bindings of all folders. Nothing outside native/bind knows Python.
#include "bindings.hpp"

#include "beamwood/strings.hpp"

NB_MODULE(_core, m) {
  // A process that ends while models are still in use (a server, a notebook) has leaked nothing worth a line.
  nb::set_leak_warnings(false);
  m.doc() = "Native loops of beamwood. Arrays and numbers go in, arrays come out; arguments are checked in Python.";
  nb::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const beamwood::Interrupted&) {
      if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    } catch (const beamwood::Damaged&) {
      const nb::object type = nb::module_::import_("beamwood.errors").attr("FormatError");
      PyErr_SetString(type.ptr(), "The model is damaged: its keys, names, terms or nodes lie outside their "
                                  "tables. Get a fresh copy of its file.");
    }
  });
  bind_mapping(m);
  bind_filter(m);
  bind_postings(m);
  bind_engine(m);
  bind_layouts(m);
  bind_update(m);
  bind_explain(m);
  bind_score(m);
  bind_training(m);
  bind_text(m);
  bind_strings(m);
  bind_search(m);
  bind_serving(m);
  bind_long_work(m);
  bind_clustering(m);
  bind_word_vectors(m);
  bind_readers(m);
  bind_split(m);
}
