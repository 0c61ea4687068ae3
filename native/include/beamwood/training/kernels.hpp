// The inner loops of training, compiled once for each instruction set: the passes of the solver and the product of
// the wide clustering. The sources are native/src/training.inc and what it includes.
//
// The law: each lane has its own sum, over rising entries, no fused multiply-add: the bits are the same for every set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "beamwood/isa.hpp"
#include "beamwood/training/descent.hpp"

namespace beamwood {

struct TrainingKernels {
  void (*hinge_float)(Pass<float>&) noexcept;
  void (*hinge_double)(Pass<double>&) noexcept;
  void (*logistic)(Pass<double>&) noexcept;

  // score[c] = Σ value[e]·table[feature[e]·stride + c] over rising e < entries, for c < width, a multiple of kLanes.
  void (*table_product)(const std::int32_t* feature, const float* value, std::size_t entries, const float* table,
                        std::size_t stride, float* score, std::size_t width) noexcept;
};

extern const TrainingKernels kScalarTraining;
#if defined(__x86_64__)
extern const TrainingKernels kAvx2Training;
inline constexpr KernelTables<TrainingKernels> kTrainingKernels{&kScalarTraining, &kAvx2Training};
#else
inline constexpr KernelTables<TrainingKernels> kTrainingKernels{&kScalarTraining};
#endif

} // namespace beamwood
