// The door of the text room.
#include "doors.hpp"

void bind_text(nb::module_&) {}
