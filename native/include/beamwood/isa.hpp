// An instruction set in, the table of kernels compiled for it out: the one place that asks the processor what it has.
//
// Every kernel is compiled once for each instruction set it profits from, in a source of its own (native/src), and
// called through a table of function pointers. Who calls says which table: `best_isa()`, or the one it was told.
//
// The law: which table runs never changes a bit of a result.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace beamwood {

enum class Isa : std::uint8_t { scalar, avx2, avx512, neon };

inline constexpr Isa kVectorIsas[] = {Isa::avx512, Isa::avx2, Isa::neon}; // the best of a machine first

#if defined(__x86_64__)
// Clang 16 knows no "f16c" for __builtin_cpu_supports.
inline bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// True if this machine can run code compiled for `isa`.
inline bool supported(Isa isa) noexcept {
  if (isa == Isa::scalar) return true;
#if defined(__x86_64__)
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && has_f16c();
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#elif defined(__aarch64__)
  if (isa == Isa::neon) return true; // a part of the architecture
#endif
  return false;
}

inline Isa best_isa() noexcept {
  static const Isa best = [] {
    for (const Isa isa : kVectorIsas)
      if (supported(isa)) return isa;
    return Isa::scalar;
  }();
  return best;
}

// One table of kernels per instruction set; null where no source was compiled for it.
template <class Kernels> struct KernelTables {
  const Kernels* scalar;
  const Kernels* avx2 = nullptr;
  const Kernels* avx512 = nullptr;
  const Kernels* neon = nullptr;

  // The kernels for `isa`, or of the next smaller set where it has none of its own. Null: the machine lacks `isa`.
  const Kernels* on(Isa isa) const noexcept {
    if (!supported(isa)) return nullptr;
    if (isa == Isa::avx512 && avx512) return avx512;
    if (isa == Isa::neon && neon) return neon;
    return isa != Isa::scalar && avx2 ? avx2 : scalar;
  }
};

} // namespace beamwood
