// Rows in, scores of all siblings of a chunk out: the inner loops, one table of them for each instruction set.
//
// The law of one sum: each sibling's sum starts at +0 and adds value * weight for rising feature id, in float32, the
// product rounded before it is added; the bias comes last. SIMD runs across siblings, never across features. Where a
// sibling has no weight a vector kernel adds +-0, which changes no sum: a sum is never -0.
//
// The source of the loops is native/src/kernels.inc, compiled once for each instruction set.
#pragma once
#include <cstdint>

#include "beamwood/engine/activation.hpp"
#include "beamwood/isa.hpp"
#include "beamwood/layout/record.hpp"

namespace beamwood {

// Rows of features that all siblings have, side by side: records of the greatest length that a chunk's can have.
struct DenseRun {
  const std::uint32_t* words;  // of the first record
  std::uint32_t stride, count; // words of a record; records
  std::uint32_t head;          // words of a record before its weights

  // The bits of a record's first word that say which siblings have weights, and what they are when all have.
  static std::uint32_t head_bits(std::uint32_t width) noexcept {
    return width <= 8 ? kMaskBits<1> : (width <= 16 || width > kMaskWidth ? kMaskBits<2> : kMaskBits<4>);
  }
  static std::uint32_t full_head(std::uint32_t width) noexcept {
    return width > kMaskWidth ? width : (width == kMaskWidth ? ~0u : (1u << width) - 1);
  }
};

struct Kernels {
  const char* name;

  // Writes the sums of `width` siblings to z, which has room for 32 numbers, or for 65,536 when the chunk is wider
  // than a mask (a damaged record may name any sibling). words .. words + word_count is the chunk, cascade whether its
  // records name children too, code how its weights are to be read. Returns the words of the records it read; -1: a
  // record lies outside its chunk.
  std::int64_t (*accumulate)(const std::uint32_t* words, std::uint64_t word_count, std::uint32_t width, bool cascade,
                             WeightCode code, const Placed* rows, std::uint32_t count, float* z) noexcept;

  // Adds the rows of a run, one value for each, to sums that begin at +0 or, where it goes on, with those in z, which has
  // room as above. False: a record lacks a weight, and z is worth nothing.
  bool (*add_run)(const DenseRun& run, std::uint32_t width, WeightCode code, const float* values, bool goes_on,
                  float* z) noexcept;

  // The same for the rows of four queries at once, with sums that begin at +0, of up to 32 siblings: each z has room for 32.
  bool (*add_run_of_four)(const DenseRun& run, std::uint32_t width, WeightCode code, const float* const* values,
                          float* const* z) noexcept;

  // z and bias (may be null) to scores: activation, then combined with the parent's score. z and out must not overlap.
  void (*activate)(const Activation& activation, const float* z, const float* bias, std::uint32_t width, float parent,
                   float* out) noexcept;

  // A bit for each of up to 32 siblings whose z (with its bias, which may be null) is not below `lowest`.
  std::uint32_t (*reaching)(const float* z, const float* bias, std::uint32_t width, float lowest) noexcept;

  // Up to 32 scores (never -0) in, their places in the order of order.hpp out: falling, equal ones by place, NaN last.
  // Both arrays have room for 32.
  void (*rank)(const float* scores, std::uint32_t width, std::uint8_t* order) noexcept;

  // Masks in, the numbers of those that have a certain bit out, rising; how many. Vectors reach up to 8 numbers beyond
  // the end of both lists.
  std::uint32_t (*pick)(const std::uint32_t* masks, std::uint32_t count, std::uint32_t bit,
                        std::uint32_t* out) noexcept;
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
inline constexpr KernelTables<Kernels> kSearchKernels{&kScalarKernels, &kAvx2Kernels, &kAvx512Kernels};
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
inline constexpr KernelTables<Kernels> kSearchKernels{&kScalarKernels, nullptr, nullptr, &kNeonKernels};
#else
inline constexpr KernelTables<Kernels> kSearchKernels{&kScalarKernels};
#endif

// The kernels of an instruction set, or null when this machine lacks it.
inline const Kernels* kernels_for(Isa isa) noexcept { return kSearchKernels.on(isa); }

} // namespace beamwood
