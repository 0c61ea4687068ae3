// The loops of training for AVX2: eight siblings per vector.
#define TRAINING_KERNELS kAvx2Training
#include "training.inc"
