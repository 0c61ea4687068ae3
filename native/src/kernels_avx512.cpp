// Kernels for the avx512 instruction set.
