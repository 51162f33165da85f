#include "backends/cuda/kernels/scaled_squares.h"

#include "backends/cuda/kernels/squares.h"
#include "core/precision/scale_maker.h"

namespace ranklab {
namespace {

constexpr int kFields = kFieldsOfSquare / kThreads;  // fields per thread
constexpr uint32_t kBf16Sizes = 0x7fff7fff, kBf16Infinity = 0x7f80;

// What shares one scale.
enum class Group { kRow, kColumn, kSquare };

struct Square {
  DeviceMatrix m;
  RoundingGrid grid;
  ScaleMaker maker;
  float* scales;
  DeviceRounded out;
};

// The numbers of one of a thread's fields as they are stored; zero outside the matrix.
using StoredField = StoredPack<true>[kWord];

__device__ void load_field(const DeviceMatrix& m, int64_t row, int64_t col, StoredField& to) {
#pragma unroll
  for (int r = 0; r < kWord; ++r) {
    if (row + r < m.rows && col < m.cols) {
      to[r] = stored_pack<true>(m, row + r, col);
    } else {
      to[r] = {};
    }
  }
}

// Takes the larger of the two values in each half of two words.
__device__ uint32_t larger_halves(uint32_t a, uint32_t b) { return __vmaxu2(a, b); }
__device__ uint32_t larger_half(uint32_t word) { return larger(word & 0xffffU, word >> 16); }

// Updates `largest`, in shared memory: the largest magnitudes of the square's columns, or for squares of the whole
// square in largest[0]. The inputs are the largest magnitudes of a field's columns, two per word.
template <Group kGroup>
__device__ void note_columns(uint32_t (&of_columns)[kWord], Field field, uint32_t* largest) {
#pragma unroll
  for (int word = 0; word < kWord; ++word) {
    for (int step = kAcross; step < kWarp; step *= 2)
      of_columns[word] = larger_halves(of_columns[word], __shfl_xor_sync(kAll, of_columns[word], step));
  }
  if (threadIdx.x % kWarp >= kAcross) return;
#pragma unroll
  for (int word = 0; word < kWord; ++word) {
    if (kGroup == Group::kSquare) {
      atomicMax(largest, larger_half(of_columns[word]));
    } else {
      atomicMax(largest + field.col + 2 * word, of_columns[word] & 0xffffU);
      atomicMax(largest + field.col + 2 * word + 1, of_columns[word] >> 16);
    }
  }
}

// The same for any kind of group, from the numbers of a field. Magnitudes are stored as the upper half of an fp32
// number's bits.
template <Group kGroup>
__device__ void note_sizes(const StoredField& stored, Field field, uint32_t* largest) {
  uint32_t of_columns[kWord] = {};
#pragma unroll
  for (int r = 0; r < kWord; ++r) {
    uint32_t of_row = 0;
#pragma unroll
    for (int word = 0; word < kWord; ++word) {
      const uint32_t sizes = stored[r].words[0].word[word] & kBf16Sizes;
      of_row = larger_halves(of_row, sizes);
      of_columns[word] = larger_halves(of_columns[word], sizes);
    }
    if constexpr (kGroup == Group::kRow) {
      const uint32_t size = largest_of_team<kAcross>(larger_half(of_row));
      if (threadIdx.x % kAcross == 0) atomicMax(largest + field.row + r, size);
    }
  }
  if constexpr (kGroup != Group::kRow) note_columns<kGroup>(of_columns, field, largest);
}

__device__ float amax_of_size(uint32_t size) {
  return OneLane::number((size < kBf16Infinity ? size : kBf16Infinity) << 16);
}

// Converts each of four codes to the number for which it stands.
__device__ void numbers_of_codes(const RoundingGrid& grid, const float* scaled, uint32_t codes, float* to) {
#if __CUDA_ARCH__ >= 890
  uint32_t halves[2];
  for (int pair = 0; pair < 2; ++pair) {
    const auto two = static_cast<uint16_t>(codes >> (16 * pair));
    if (grid.mantissa_bits == 3) {
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves[pair]) : "h"(two));
    } else {
      asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves[pair]) : "h"(two));
    }
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
        : "=f"(to[2 * pair]), "=f"(to[2 * pair + 1])
        : "r"(halves[pair]));
  }
#else
  for (int i = 0; i < 4; ++i) to[i] = round_nearest<OneLane>(grid, scaled[i]);
#endif
}

// Eight numbers of a row, rounded with the row's scale, as fp32 numbers.
struct Dequantized {
  float x[kNeighbours];
};
__device__ Dequantized dequantized(const StoredPack<true>& pack, const RoundingGrid& grid, float scale) {
  float x[kNeighbours];
  numbers_of(pack, x);
  const float inverse = inverse_scale(scale);
  for (int i = 0; i < kNeighbours; ++i) x[i] *= inverse;
  Dequantized result;
  for (int i = 0; i < kNeighbours; i += 4) numbers_of_codes(grid, x + i, codes_of_four(grid, x + i), result.x + i);
  for (int i = 0; i < kNeighbours; ++i) result.x[i] *= scale;
  return result;
}
__device__ void numbers_of(const Dequantized& pack, float* to) {
  for (int i = 0; i < kNeighbours; ++i) to[i] = pack.x[i];
}

// The same for columns, from fp32 numbers; magnitudes are stored as all bits.
__device__ void note_numbers(const Dequantized (&rows)[kWord], Field field, uint32_t* largest) {
#pragma unroll
  for (int i = 0; i < kNeighbours; ++i) {
    uint32_t size = 0;
#pragma unroll
    for (int r = 0; r < kWord; ++r) size = larger(size, size_bits(rows[r].x[i]));
#pragma unroll
    for (int step = kAcross; step < kWarp; step *= 2) size = larger(size, __shfl_xor_sync(kAll, size, step));
    if (threadIdx.x % kWarp < kAcross) atomicMax(largest + field.col + i, size);
  }
}

// The inverse scales for row `r` of a field.
template <Group kGroup>
__device__ auto inverses_in(const float* inverse, Field field, int r) {
  if constexpr (kGroup == Group::kColumn) {
    Inverses<kNeighbours> result;
    for (int i = 0; i < kNeighbours; ++i) result.each[i] = inverse[field.col + i];
    return result;
  } else {
    return Inverses<1>{{inverse[kGroup == Group::kRow ? field.row + r : 0]}};
  }
}

template <Group kGroup, bool kTurned, typename Pack>
__device__ void write_field(const Square& s, int64_t first_row, int64_t first_col, const Pack (&packs)[kWord],
                            Field field, const float* inverse, uint32_t* turned) {
  EightCodes codes[kWord];
#pragma unroll
  for (int r = 0; r < kWord; ++r) {
    codes[r] = codes_of(packs[r], s.grid, inverses_in<kGroup>(inverse, field, r));
    const int64_t row = first_row + field.row + r, col = first_col + field.col;
    if (!kTurned && row < s.m.rows && col < s.m.cols)
      *reinterpret_cast<EightCodes*>(s.out.codes + row * s.out.stride + col) = codes[r];
  }
  if (kTurned) turn_field(codes, field, turned);
}

__device__ void dequantize_field(const StoredField& stored, const RoundingGrid& grid, const float* scales, Field field,
                                 Dequantized (&rows)[kWord]) {
#pragma unroll
  for (int r = 0; r < kWord; ++r) rows[r] = dequantized(stored[r], grid, scales[field.row + r]);
}

// Computes the thread's scale from its group's amax: the scale of its row, of its column, or of the square.
template <Group kGroup>
__device__ void make_own_scale(const Square& s, int64_t first_row, int64_t first_col, float amax, float* inverse) {
  const int thread = static_cast<int>(threadIdx.x);
  const float scale = make_scale(s.maker, amax);
  inverse[thread] = inverse_scale(scale);
  const int64_t row = first_row + (kGroup == Group::kRow ? thread : 0);
  const int64_t col = first_col + (kGroup == Group::kColumn ? thread : 0);
  if ((kGroup != Group::kSquare || thread == 0) && row < s.m.rows && col < s.m.cols)
    s.scales[group_of(s.m, row, col)] = scale;
}

// The scales of the square's rows, if numbers are first rounded with these.
__device__ void make_first_scales(const Square& s, const StoredField (&stored)[kFields], const Field (&fields)[kFields],
                                  float* scales) {
  __shared__ uint32_t largest[kSide];
  if (threadIdx.x < kSide) largest[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int f = 0; f < kFields; ++f) note_sizes<Group::kRow>(stored[f], fields[f], largest);
  __syncthreads();
  if (threadIdx.x < kSide) scales[threadIdx.x] = make_scale(s.maker, amax_of_size(largest[threadIdx.x]));
  __syncthreads();
}

// kFirst: rounds the numbers that were first rounded with the scales of the rows.
template <Group kGroup, bool kTurned, bool kFirst>
__global__ void __launch_bounds__(kThreads) cast_at_once(Square s) {
  __shared__ uint32_t turned[kTurned ? kSide * kColumnWords : 1], largest[kSide];
  __shared__ float inverse[kSide], scale_first[kFirst ? kSide : 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kSide;
  const int64_t first_col = static_cast<int64_t>(blockIdx.y) * kSide;
  Field fields[kFields];
  StoredField stored[kFields];
#pragma unroll
  for (int f = 0; f < kFields; ++f) {
    fields[f] = field_of(f * kThreads + thread);
    load_field(s.m, first_row + fields[f].row, first_col + fields[f].col, stored[f]);
  }
  if (thread < kSide) largest[thread] = 0;
  __syncthreads();
  if constexpr (kFirst) make_first_scales(s, stored, fields, scale_first);
#pragma unroll
  for (int f = 0; f < kFields; ++f) {
    if constexpr (kFirst) {
      Dequantized rows[kWord];
      dequantize_field(stored[f], s.grid, scale_first, fields[f], rows);
      note_numbers(rows, fields[f], largest);
    } else {
      note_sizes<kGroup>(stored[f], fields[f], largest);
    }
  }
  __syncthreads();
  if (thread < kSide) {
    const uint32_t size = largest[kGroup == Group::kSquare ? 0 : thread];
    const float amax = kFirst ? OneLane::number(size < kFloatExponent ? size : kFloatExponent) : amax_of_size(size);
    make_own_scale<kGroup>(s, first_row, first_col, amax, inverse);
  }
  __syncthreads();
#pragma unroll
  for (int f = 0; f < kFields; ++f) {
    if constexpr (kFirst) {
      Dequantized rows[kWord];
      dequantize_field(stored[f], s.grid, scale_first, fields[f], rows);
      write_field<kGroup, kTurned>(s, first_row, first_col, rows, fields[f], inverse, turned);
    } else {
      write_field<kGroup, kTurned>(s, first_row, first_col, stored[f], fields[f], inverse, turned);
    }
  }
  if constexpr (kTurned) {
    __syncthreads();
    store_square(s.m, s.out, first_row, first_col, turned);
  }
}

}  // namespace

cudaError_t launch_cast_at_once(const DeviceMatrix& m, const RoundingGrid& grid, const ScaleMaker& maker,
                                bool along_columns_first, float* scales, const DeviceRounded& out,
                                cudaStream_t stream) {
  if (m.rows * m.cols == 0) return cudaSuccess;
  const auto squares = [](int64_t length) { return static_cast<unsigned>((length + kSide - 1) / kSide); };
  const dim3 blocks(squares(m.rows), squares(m.cols));
  const Square square{m, grid, maker, scales, out};
  if (along_columns_first) {
    cast_at_once<Group::kColumn, true, true><<<blocks, kThreads, 0, stream>>>(square);
  } else if (m.height == 1) {
    cast_at_once<Group::kRow, false, false><<<blocks, kThreads, 0, stream>>>(square);
  } else if (m.width == 1) {
    cast_at_once<Group::kColumn, true, false><<<blocks, kThreads, 0, stream>>>(square);
  } else if (out.turned != nullptr) {
    cast_at_once<Group::kSquare, true, false><<<blocks, kThreads, 0, stream>>>(square);
  } else {
    cast_at_once<Group::kSquare, false, false><<<blocks, kThreads, 0, stream>>>(square);
  }
  return cudaGetLastError();
}

}  // namespace ranklab
