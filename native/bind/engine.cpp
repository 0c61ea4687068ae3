// The door of the engine room.
#include "doors.hpp"

void bind_engine(nb::module_&) {}
