// The loops of dense sums for any machine of the target.
#define DENSE_KERNELS kScalarDense
#include "dense.inc"
