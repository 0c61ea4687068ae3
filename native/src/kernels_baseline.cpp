// Kernels for the baseline instruction set.
