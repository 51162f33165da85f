#include "backends/cuda/kernels/norm_kernels.h"

#include "backends/cuda/kernels/grids.h"
#include "backends/cuda/kernels/teams.h"

namespace ranklab::rows {
namespace {

constexpr int kTeamThreads = 256;

// This thread's index among the lanes that share a row, and the numbering of the grid's teams.
template <int kLanes>
struct Team {
  __device__ Share share() const {
    if (kLanes == 0) return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
    return {static_cast<int>(threadIdx.x) % (kLanes == 0 ? 1 : kLanes), kLanes};
  }
  __device__ int64_t in_block() const { return kLanes == 0 ? 0 : threadIdx.x / (kLanes == 0 ? 1 : kLanes); }
  static constexpr int kPerBlock = kLanes == 0 ? 1 : kTeamThreads / (kLanes == 0 ? 1 : kLanes);
};

// All lanes of a warp run together; lanes without a row process an empty row of zero columns.
template <typename T, int kItems, int kPacks, int kLanes>
__global__ void __launch_bounds__(kMostThreads) norm_of_rows(NormTask<T> task) {
  const Team<kLanes> team;
  const Share share = team.share();
  const int64_t step = static_cast<int64_t>(gridDim.x) * team.kPerBlock;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * team.kPerBlock; first < task.rows.rows; first += step) {
    const int64_t number = first + team.in_block();
    const bool has_row = number < task.rows.rows;
    const NormRow<T> row = has_row ? row_of(task, number) : NormRow<T>{};
    NormLane<T, kItems, kPacks> lane;
    const Wide<T> squares = sum_of_team<kLanes>(lane.squares(row, share));
    const Wide<T> inv_rms = inverse_rms(squares, task.rows.cols, task.epsilon);
    if (has_row && share.lane == 0) task.inv_rms[number] = inv_rms;
    lane.write(row, share, inv_rms);
  }
}

template <typename T, int kItems, int kPacks, int kLanes>
__global__ void __launch_bounds__(kMostThreads) norm_recompute_of_rows(NormTask<T> task) {
  const Team<kLanes> team;
  const int64_t step = static_cast<int64_t>(gridDim.x) * team.kPerBlock;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * team.kPerBlock + team.in_block(); row < task.rows.rows;
       row += step) {
    NormLane<T, kItems, kPacks> lane;
    lane.write(row_of(task, row), team.share(), task.inv_rms[row], true);
  }
}

// The result of a block: written to its own row of `parts`, or summed over its teams through shared memory.
template <typename T, int kItems, int kPacks, int kLanes>
__global__ void __launch_bounds__(kMostThreads) norm_grad_of_rows(NormGradTask<T> task) {
  using W = Wide<T>;
  constexpr int kColumns = kLanes * kItems * kPacks;  // number of columns up to which a team's row fits into registers
  __shared__ W of_teams[kLanes == 0 ? 1 : Team<kLanes>::kPerBlock * kColumns];
  const Team<kLanes> team;
  const Share share = team.share();
  const int64_t cols = task.rows.cols, step = static_cast<int64_t>(gridDim.x) * team.kPerBlock;
  W* part = task.parts + blockIdx.x * cols;
  NormGradLane<T, kItems, kPacks> lane;
  lane.begin(cols, share, part);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * team.kPerBlock; first < task.rows.rows; first += step) {
    const int64_t number = first + team.in_block();
    const bool has_row = number < task.rows.rows;
    const NormGradRow<T> row = has_row ? row_of(task, number) : NormGradRow<T>{};
    const W inv_rms = has_row ? inv_rms_of(task, number) : W{0};
    const W product = sum_of_team<kLanes>(lane.product(row, share, inv_rms, part));
    lane.write(row, share, inv_rms, product);
  }
  if constexpr (kLanes == 0) {
    lane.end(cols, share, part);
  } else {
    lane.end(cols, share, of_teams + team.in_block() * kColumns);
    __syncthreads();
    for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) {
      W total = of_teams[col];
      for (int i = 1; i < team.kPerBlock; ++i) total += of_teams[i * kColumns + col];
      part[col] = total;
    }
  }
}

// A block has 32 columns; each of its rows of threads sums every 32nd part.
template <typename T>
__global__ void sum_of_parts(const Wide<T>* parts, int64_t count, int64_t cols, T* out) {
  using W = Wide<T>;
  __shared__ W slices[kWarpLanes][kWarpLanes + 1];
  const int64_t col = static_cast<int64_t>(blockIdx.x) * kWarpLanes + threadIdx.x;
  W total = 0;
  if (col < cols) {
    for (int64_t i = threadIdx.y; i < count; i += kWarpLanes) total += parts[i * cols + col];
  }
  slices[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols) return;
  for (int i = 1; i < kWarpLanes; ++i) total += slices[i][threadIdx.x];
  round_to(total, out[col]);
}

// Calls launch<kItems, kPacks, kLanes>(threads, rows per block) with values suited to rows of this many columns.
// `dense`: whether all rows begin at a multiple of 16 bytes.
template <typename T, typename F>
void for_width(int64_t cols, bool dense, const F& launch) {
  constexpr int kItems = kPack<T>;
  constexpr auto kSize = [](int lanes) { return Team<8>::kPerBlock * 8 / lanes; };
  if (!dense) {
    if (cols <= 4 * kWarpLanes) return launch.template operator()<1, 4, kWarpLanes>(kTeamThreads, kSize(kWarpLanes));
    return launch.template operator()<1, 4, 0>(threads_for(quotient_up(cols, 4)), 1);
  }
  if (cols <= 2 * 8 * kItems) return launch.template operator()<kItems, 2, 8>(kTeamThreads, kSize(8));
  if (cols <= 2 * kWarpLanes * kItems)
    return launch.template operator()<kItems, 2, kWarpLanes>(kTeamThreads, kSize(kWarpLanes));
  const int64_t packs = cols / kItems;
  if (packs <= kMostThreads) return launch.template operator()<kItems, 1, 0>(threads_for(packs), 1);
  launch.template operator()<kItems, 4, 0>(threads_for(quotient_up(packs, 4)), 1);
}

template <typename T>
bool in_packs(const NormRows& rows) {
  return rows.cols % kPack<T> == 0 && rows.group_stride % kPack<T> == 0;
}

template <typename T>
bool dense(const NormTask<T>& t) {
  return in_packs<T>(t.rows) && aligned(t.x, t.branch, t.weights[0], t.weights[1], t.sum, t.out);
}

constexpr int64_t kMostBlocks = int64_t{1} << 20;

}  // namespace

template <typename T>
cudaError_t launch_norm(const NormTask<T>& task, cudaStream_t stream) {
  if (task.rows.rows == 0) return cudaSuccess;
  for_width<T>(task.rows.cols, dense(task), [&]<int kItems, int kPacks, int kLanes>(unsigned threads, int64_t rows) {
    norm_of_rows<T, kItems, kPacks, kLanes>
        <<<at_most(quotient_up(task.rows.rows, rows), kMostBlocks), threads, 0, stream>>>(task);
  });
  return cudaGetLastError();
}

template <typename T>
cudaError_t launch_norm_recompute(const NormTask<T>& task, cudaStream_t stream) {
  if (task.rows.rows == 0) return cudaSuccess;
  for_width<T>(task.rows.cols, dense(task), [&]<int kItems, int kPacks, int kLanes>(unsigned threads, int64_t rows) {
    norm_recompute_of_rows<T, kItems, kPacks, kLanes>
        <<<at_most(quotient_up(task.rows.rows, rows), kMostBlocks), threads, 0, stream>>>(task);
  });
  return cudaGetLastError();
}

template <typename T>
cudaError_t launch_norm_grad(const NormGradTask<T>& task, cudaStream_t stream) {
  const int64_t cols = task.rows.cols;
  const bool packs =
      in_packs<T>(task.rows) && aligned(task.grad_out, task.grad_sum, task.sum, task.weight, task.grad_in);
  unsigned blocks = 0;
  for_width<T>(cols, packs, [&]<int kItems, int kPacks, int kLanes>(unsigned threads, int64_t rows) {
    blocks = at_most(quotient_up(task.rows.rows, rows), kNormParts);
    if (blocks == 0) return;
    norm_grad_of_rows<T, kItems, kPacks, kLanes><<<blocks, threads, 0, stream>>>(task);
  });
  sum_of_parts<T><<<static_cast<unsigned>(quotient_up(cols, kWarpLanes)), dim3(kWarpLanes, kWarpLanes), 0, stream>>>(
      task.parts, blocks, cols, task.grad_weight);
  return cudaGetLastError();
}

#define RANKLAB_INSTANCE(T)                                                        \
  template cudaError_t launch_norm<T>(const NormTask<T>&, cudaStream_t);           \
  template cudaError_t launch_norm_recompute<T>(const NormTask<T>&, cudaStream_t); \
  template cudaError_t launch_norm_grad<T>(const NormGradTask<T>&, cudaStream_t);
RANKLAB_INSTANCE(float)
RANKLAB_INSTANCE(double)
RANKLAB_INSTANCE(Bf16)
RANKLAB_INSTANCE(Fp16)

}  // namespace ranklab::rows
