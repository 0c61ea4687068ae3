// The loops of training for any machine of the target.
#define TRAINING_KERNELS kScalarTraining
#include "training.inc"
