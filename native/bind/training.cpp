// The door of the training room.
#include "doors.hpp"

void bind_training(nb::module_&) {}
