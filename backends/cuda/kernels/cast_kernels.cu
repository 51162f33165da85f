#include "backends/cuda/kernels/cast_kernels.h"

#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/squares.h"
#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {
namespace {

constexpr int kRowsAtOnce = 4;  // number of packs that a thread loads together

template <bool kBf16, ScalePlaces kPlaces>
__global__ void cast_rows(DeviceMatrix m, RoundingGrid grid, const float* from, DeviceRounded out) {
  const Scales<kPlaces> scales{m, from};
  const int64_t packs = m.cols / kNeighbours;
  for (int64_t pack = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; pack < packs;
       pack += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t col = pack * kNeighbours;
    for (int64_t first = static_cast<int64_t>(blockIdx.y) * kRowsAtOnce; first < m.rows;
         first += static_cast<int64_t>(gridDim.y) * kRowsAtOnce) {
      StoredPack<kBf16> stored[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i < m.rows) stored[i] = stored_pack<kBf16>(m, first + i, col);
      }
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i < m.rows)
          *reinterpret_cast<EightCodes*>(out.codes + (first + i) * out.stride + col) =
              codes_of(stored[i], grid, scales.inverses(first + i, col));
      }
    }
  }
}

// Rounds the square into `turned`, and also into the codes in the matrix's own layout if these are requested.
template <bool kBf16, ScalePlaces kPlaces>
__device__ void cast_square(const DeviceMatrix& m, const RoundingGrid& grid, const Scales<kPlaces>& scales,
                            const DeviceRounded& out, int64_t first_row, int64_t first_col, uint32_t* turned) {
  for (int i = static_cast<int>(threadIdx.x); i < kFieldsOfSquare; i += kThreads) {
    const Field field = field_of(i);
    const int64_t row = first_row + field.row, col = first_col + field.col;
    if (row >= m.rows || col >= m.cols) continue;
    StoredPack<kBf16> stored[kWord];
#pragma unroll
    for (int r = 0; r < kWord; ++r) stored[r] = stored_pack<kBf16>(m, row + r < m.rows ? row + r : row, col);
    EightCodes codes[kWord];
    const auto inverses = scales.inverses(row, col);
#pragma unroll
    for (int r = 0; r < kWord; ++r) {
      const bool inside = row + r < m.rows;
      codes[r] = codes_of(stored[r], grid, scales.kSameInRows || !inside ? inverses : scales.inverses(row + r, col));
      if (inside && out.codes != nullptr)
        *reinterpret_cast<EightCodes*>(out.codes + (row + r) * out.stride + col) = codes[r];
    }
    turn_field(codes, field, turned);
  }
}

template <bool kBf16, ScalePlaces kPlaces>
__global__ void cast_squares(DeviceMatrix m, RoundingGrid grid, const float* from, DeviceRounded out) {
  __shared__ uint32_t turned[kSide * kColumnWords];
  const Scales<kPlaces> scales{m, from};
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kSide;
  for (int64_t square = blockIdx.y; square * kSide < m.cols; square += gridDim.y) {
    cast_square<kBf16>(m, grid, scales, out, first_row, square * kSide, turned);
    __syncthreads();
    store_square(m, out, first_row, square * kSide, turned);
    __syncthreads();
  }
}

}  // namespace

cudaError_t launch_cast(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceRounded& out,
                        cudaStream_t stream) {
  if (m.rows * m.cols == 0) return cudaSuccess;
  with_cast(m, [&](auto bf16, auto places) {
    constexpr bool kBf16 = decltype(bf16)::value;
    constexpr ScalePlaces kPlaces = decltype(places)::value;
    if (out.turned != nullptr) {
      const dim3 blocks(static_cast<unsigned>((m.rows + kSide - 1) / kSide), blocks_for(m.cols, kSide));
      cast_squares<kBf16, kPlaces><<<blocks, kThreads, 0, stream>>>(m, grid, scales, out);
    } else {
      const dim3 blocks(blocks_for(m.cols / kNeighbours, kThreads), blocks_for(m.rows, kRowsAtOnce));
      cast_rows<kBf16, kPlaces><<<blocks, kThreads, 0, stream>>>(m, grid, scales, out);
    }
  });
  return cudaGetLastError();
}

}  // namespace ranklab
