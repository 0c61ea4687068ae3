// The solver's loops for any machine of the target.
#define DESCENT_KERNELS descent_baseline
#include "descent.inc"
