// The solver's loops for AVX2: eight siblings a vector.
#define DESCENT_KERNELS descent_avx2
#include "descent.inc"
