#include "backends/cuda/kernels/cast_kernels.h"

#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {
namespace {

constexpr int kRowsAtOnce = 4;  // loads of a thread that are in flight together

__global__ void cast_rows(DeviceMatrix m, RoundingGrid grid, const float* scales, DeviceRounded out) {
  const int64_t packs = m.cols / kNeighbours;
  for (int64_t pack = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; pack < packs;
       pack += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t col = pack * kNeighbours;
#pragma unroll 4
    for (int64_t row = blockIdx.y; row < m.rows; row += gridDim.y)
      *reinterpret_cast<EightCodes*>(out.codes + row * out.stride + col) = round_pack(m, grid, scales, row, col);
  }
}

// A square of the matrix that a block of threads turns in shared memory. A column of it takes 33 words there, so that
// the columns which neighbouring threads read begin in different banks.
constexpr int kTileRows = 128, kTileCols = 64, kTilePacks = kTileCols / kNeighbours, kTileStride = kTileRows + 4;
constexpr int kWideStore = sizeof(FourWords);

static_assert(kTileCols * kTileStride <= 48 * 1024, "shared memory of a block");
static_assert(kTileStride % sizeof(uint32_t) == 0, "columns begin at words");

// Rounds the square into `tile`, turned, and where codes are wanted as the matrix lies, into those.
__device__ void cast_square(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales,
                            const DeviceRounded& out, int64_t first_row, int64_t first_col, uint8_t* tile) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTilePacks; i += kThreads) {
    const int row = i / kTilePacks, col = i % kTilePacks * kNeighbours;
    if (first_row + row >= m.rows || first_col + col >= m.cols) continue;
    const EightCodes codes = round_pack(m, grid, scales, first_row + row, first_col + col);
    if (out.codes != nullptr)
      *reinterpret_cast<EightCodes*>(out.codes + (first_row + row) * out.stride + first_col + col) = codes;
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) tile[(col + n) * kTileStride + row] = codes.code[n];
  }
}

__device__ void store_square(const DeviceMatrix& m, const DeviceRounded& out, int64_t first_row, int64_t first_col,
                             const uint8_t* tile) {
  constexpr int kStores = kTileRows / kWideStore;
  const bool wide = out.turned_stride % kWideStore == 0 && reinterpret_cast<uintptr_t>(out.turned) % kWideStore == 0;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kTileCols * kStores; i += kThreads) {
    const int col = i / kStores, row = i % kStores * kWideStore;
    const int64_t left = m.rows - first_row - row;
    if (first_col + col >= m.cols || left <= 0) continue;
    const uint8_t* from = tile + col * kTileStride + row;
    uint8_t* to = out.turned + (first_col + col) * out.turned_stride + first_row + row;
    if (wide && left >= kWideStore) {
      FourWords codes;
      for (int word = 0; word < 4; ++word) codes.word[word] = reinterpret_cast<const uint32_t*>(from)[word];
      *reinterpret_cast<FourWords*>(to) = codes;
    } else {
      for (int n = 0; n < kWideStore && n < left; ++n) to[n] = from[n];
    }
  }
}

__global__ void cast_squares(DeviceMatrix m, RoundingGrid grid, const float* scales, DeviceRounded out) {
  __shared__ alignas(kWideStore) uint8_t tile[kTileCols * kTileStride];
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTileRows;
  for (int64_t square = blockIdx.y; square * kTileCols < m.cols; square += gridDim.y) {
    cast_square(m, grid, scales, out, first_row, square * kTileCols, tile);
    __syncthreads();
    store_square(m, out, first_row, square * kTileCols, tile);
    __syncthreads();
  }
}

}  // namespace

cudaError_t launch_cast(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceRounded& out,
                        cudaStream_t stream) {
  if (m.rows * m.cols == 0) return cudaSuccess;
  if (out.turned != nullptr) {
    const dim3 blocks(static_cast<unsigned>((m.rows + kTileRows - 1) / kTileRows), blocks_for(m.cols, kTileCols));
    cast_squares<<<blocks, kThreads, 0, stream>>>(m, grid, scales, out);
  } else {
    const dim3 blocks(blocks_for(m.cols / kNeighbours, kThreads), blocks_for(m.rows, kRowsAtOnce));
    cast_rows<<<blocks, kThreads, 0, stream>>>(m, grid, scales, out);
  }
  return cudaGetLastError();
}

}  // namespace ranklab
