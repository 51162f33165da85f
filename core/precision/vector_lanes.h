// Vectors of eight numbers for the loops of this folder, in GCC's vector extension: one AVX2 register, or two registers
// of the baseline; loops are compiled for both (core/base/vector_clones.h). Include only in sources compiled with
// -Wno-psabi. Thread rule: pure.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/base/vector_clones.h"
#include "core/precision/rounding_grid.h"

namespace ranklab {

constexpr int64_t kLaneCount = 8;

// Has the members of OneLane.
struct VectorLanes {
  typedef float Float __attribute__((vector_size(kLaneCount * sizeof(float))));
  typedef uint32_t Bits __attribute__((vector_size(kLaneCount * sizeof(uint32_t))));
  typedef int32_t Signed __attribute__((vector_size(kLaneCount * sizeof(int32_t))));

  static RANKLAB_INLINE Bits bits(Float x) { return reinterpret_cast<Bits>(x); }
  static RANKLAB_INLINE Float number(Bits x) { return reinterpret_cast<Float>(x); }
  static RANKLAB_INLINE Float converted(Bits x) { return __builtin_convertvector(reinterpret_cast<Signed>(x), Float); }
};

template <typename Vector, typename T>
RANKLAB_INLINE Vector load_lanes(const T* from) {
  Vector result;
  std::memcpy(&result, from, sizeof result);
  return result;
}
// Loads the first `count`, followed by zeros.
template <typename Vector, typename T>
RANKLAB_INLINE Vector load_lanes(const T* from, int64_t count) {
  T part[kLaneCount] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = from[i];
  return load_lanes<Vector>(part);
}
template <typename Vector, typename T>
RANKLAB_INLINE void store_lanes(const Vector& from, T* to) {
  std::memcpy(to, &from, sizeof from);
}
template <typename Vector, typename T>
RANKLAB_INLINE void store_lanes(const Vector& from, T* to, int64_t count) {
  T part[kLaneCount];
  store_lanes(from, part);
  for (int64_t i = 0; i < count; ++i) to[i] = part[i];
}

}  // namespace ranklab
