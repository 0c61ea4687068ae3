// Kernels for the avx2 instruction set.
