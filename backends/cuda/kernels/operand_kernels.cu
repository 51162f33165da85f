#include "backends/cuda/kernels/operand_kernels.h"

#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/cast_kernels.h"
#include "backends/cuda/kernels/operand_body.h"
#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {
namespace {

__device__ int64_t thread_number() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ int64_t thread_count() { return static_cast<int64_t>(gridDim.x) * kThreads; }

// One team of kLanes lanes per group. All lanes of a warp run together; lanes without a group are idle.
template <int kItems, int kLanes>
__global__ void amax_of_teams(DeviceMatrix m, float* amax) {
  constexpr int kTeams = kThreads / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t groups = m.groups(), stride = static_cast<int64_t>(gridDim.x) * kTeams;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTeams; first < groups; first += stride) {
    const int64_t group = first + threadIdx.x / kLanes;
    const uint32_t size = largest_of_team<kLanes>(group < groups ? amax_of_share<kItems>(m, group, lane, kLanes) : 0);
    if (group < groups && lane == 0) amax[group] = OneLane::number(size);
  }
}

template <int kItems>
__global__ void amax_of_blocks(DeviceMatrix m, float* amax) {
  for (int64_t group = blockIdx.x; group < m.groups(); group += gridDim.x) {
    const uint32_t size = largest_of_block(amax_of_share<kItems>(m, group, threadIdx.x, kThreads));
    if (threadIdx.x == 0) amax[group] = OneLane::number(size);
  }
}

// For a single group; *amax must be zero before the launch.
template <int kItems>
__global__ void amax_of_whole(DeviceMatrix m, unsigned* amax) {
  const uint32_t size = largest_of_block(amax_of_share<kItems>(m, 0, thread_number(), thread_count()));
  if (threadIdx.x == 0) atomicMax(amax, size);
}

// For groups of one column: a thread processes a few rows of one column, and its neighbours the adjacent columns. All
// of amax must be zero before the launch.
constexpr int64_t kColumnRows = 64;

// Calls f(first row, rows, group row) for this block's pieces of columns.
template <typename F>
__device__ void for_column_pieces(const DeviceMatrix& m, int64_t pieces, const F& f) {
  const int64_t group_rows = (m.rows + m.height - 1) / m.height;
  for (int64_t piece = blockIdx.y; piece < group_rows * pieces; piece += gridDim.y) {
    const int64_t group_row = piece / pieces, first = group_row * m.height + piece % pieces * kColumnRows;
    const int64_t group_end = (group_row + 1) * m.height < m.rows ? (group_row + 1) * m.height : m.rows;
    f(first, first + kColumnRows < group_end ? kColumnRows : group_end - first, group_row);
  }
}

template <bool kBf16>
__global__ void amax_of_packed_columns(DeviceMatrix m, unsigned* amax, int64_t pieces) {
  for_column_pieces(m, pieces, [&](int64_t first, int64_t rows, int64_t group_row) {
    for (int64_t pack = thread_number(); pack < m.cols / kNeighbours; pack += thread_count()) {
      uint32_t most[kNeighbours];
      amax_of_columns_at_once<kBf16>(m, first, rows, pack * kNeighbours, most);
      for (int n = 0; n < kNeighbours; ++n) atomicMax(amax + group_row * m.cols + pack * kNeighbours + n, most[n]);
    }
  });
}

__global__ void amax_of_columns(DeviceMatrix m, unsigned* amax, int64_t pieces) {
  for_column_pieces(m, pieces, [&](int64_t first, int64_t rows, int64_t group_row) {
    for (int64_t col = thread_number(); col < m.cols; col += thread_count())
      atomicMax(amax + group_row * m.cols + col, amax_of_column(m, first, rows, col));
  });
}

__global__ void scales_of_groups(ScaleMaker maker, const float* amax, int64_t groups, const float* tensor_amax,
                                 float* scales) {
  const ScaleMaker own = maker_of_tensor(maker, tensor_amax);
  for (int64_t group = thread_number(); group < groups; group += thread_count())
    scales[group] = make_scale(own, amax[group]);
}

__global__ void round_elements(DeviceMatrix m, RoundingGrid grid, const float* scales, DeviceNoise noise,
                               DeviceRounded out) {
  for (int64_t row = blockIdx.y; row < m.rows; row += gridDim.y) {
    for (int64_t col = thread_number(); col < m.cols; col += thread_count())
      round_element(m, grid, scales, noise, out, row, col);
  }
}

__global__ void hash_all_rows(DeviceMatrix m, uint64_t* numbers) {
  for (int64_t row = thread_number(); row < m.rows; row += thread_count()) numbers[row] = hash_of_row(m, row);
}

}  // namespace

namespace {

template <int kItems>
void launch_amax(const DeviceMatrix& m, float* amax, cudaStream_t stream) {
  const int64_t groups = m.groups(), packs = m.width / kItems;
  constexpr int kHalf = kWarp / 2;
  constexpr int64_t kMostOfTeam = 1024;  // number of elements up to which a warp is enough
  if (groups == 1) {
    const int64_t work = m.rows * m.cols / kItems;
    amax_of_whole<kItems><<<blocks_for(work, kThreads), kThreads, 0, stream>>>(m, reinterpret_cast<unsigned*>(amax));
  } else if (m.height == 1 && packs <= kHalf) {
    amax_of_teams<kItems, kHalf><<<blocks_for(groups, kThreads / kHalf), kThreads, 0, stream>>>(m, amax);
  } else if (m.height == 1 && m.width <= kMostOfTeam) {
    amax_of_teams<kItems, kWarp><<<blocks_for(groups, kThreads / kWarp), kThreads, 0, stream>>>(m, amax);
  } else {
    amax_of_blocks<kItems><<<blocks_for(groups, 1), kThreads, 0, stream>>>(m, amax);
  }
}

cudaError_t launch_amax_of_columns(const DeviceMatrix& m, float* amax, cudaStream_t stream) {
  const int64_t group_rows = (m.rows + m.height - 1) / m.height, pieces = (m.height + kColumnRows - 1) / kColumnRows;
  const auto blocks = [&](int64_t across) {
    return dim3(blocks_for(across, kThreads), blocks_for(group_rows * pieces, 1));
  };
  auto* sizes = reinterpret_cast<unsigned*>(amax);
  if (!in_packs(m)) {
    amax_of_columns<<<blocks(m.cols), kThreads, 0, stream>>>(m, sizes, pieces);
  } else if (m.bf16) {
    amax_of_packed_columns<true><<<blocks(m.cols / kNeighbours), kThreads, 0, stream>>>(m, sizes, pieces);
  } else {
    amax_of_packed_columns<false><<<blocks(m.cols / kNeighbours), kThreads, 0, stream>>>(m, sizes, pieces);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_group_amax(const DeviceMatrix& matrix, float* amax, cudaStream_t stream) {
  DeviceMatrix m = matrix;
  if (m.groups() == 1 && m.stride == m.cols) {  // contiguous: handled as one row
    m.cols = m.width = m.stride = m.rows * m.cols;
    m.rows = m.height = 1;
  }
  const int64_t groups = m.groups();
  if (groups == 0 || m.cols == 0) return cudaSuccess;
  if (groups == 1 || m.width == 1) {
    const cudaError_t cleared = cudaMemsetAsync(amax, 0, static_cast<size_t>(groups) * sizeof(float), stream);
    if (cleared != cudaSuccess) return cleared;
  }
  if (groups > 1 && m.width == 1) return launch_amax_of_columns(m, amax, stream);
  if (in_packs(m) && m.width % kNeighbours == 0) {
    launch_amax<kNeighbours>(m, amax, stream);
  } else {
    launch_amax<1>(m, amax, stream);
  }
  return cudaGetLastError();
}

cudaError_t launch_make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                               float* scales, cudaStream_t stream) {
  if (groups == 0) return cudaSuccess;
  scales_of_groups<<<blocks_for(groups, kThreads), kThreads, 0, stream>>>(maker, amax, groups, tensor_amax, scales);
  return cudaGetLastError();
}

cudaError_t launch_round(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceNoise& noise,
                         const DeviceRounded& out, cudaStream_t stream) {
  if (m.rows * m.cols == 0) return cudaSuccess;
  if (casts(m, grid, noise, out)) return launch_cast(m, grid, scales, out, stream);
  const dim3 blocks(blocks_for(m.cols, kThreads), blocks_for(m.rows, 1));
  round_elements<<<blocks, kThreads, 0, stream>>>(m, grid, scales, noise, out);
  return cudaGetLastError();
}

cudaError_t launch_hash_rows(const DeviceMatrix& m, uint64_t* numbers, cudaStream_t stream) {
  if (m.rows == 0) return cudaSuccess;
  hash_all_rows<<<blocks_for(m.rows, kThreads), kThreads, 0, stream>>>(m, numbers);
  return cudaGetLastError();
}

}  // namespace ranklab
