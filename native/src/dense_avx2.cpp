// The loops of dense sums for AVX2: sixteen labels per vector.
#define DENSE_KERNELS kAvx2Dense
#include "dense.inc"
