#include <algorithm>

#include "backends/cuda/kernels/lists_kernels.h"
#include "backends/cuda/kernels/teams.h"

namespace ranklab::rows {
namespace {

constexpr int kListThreads = 256;

// The tensors of one launch, and the number of chunks before each.
template <typename Tensor>
struct List {
  Tensor tensors[kMostTensors];
  int64_t first_chunk[kMostTensors + 1];
  int count;
};
static_assert(sizeof(List<AdamTensor>) + sizeof(AdamKinds) + sizeof(AdamRule) < 4096);  // limit of kernel arguments

template <typename Tensor>
__device__ int tensor_of_chunk(const List<Tensor>& list, int64_t chunk) {
  int low = 0, high = list.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (list.first_chunk[middle] <= chunk) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

template <typename Tensor>
__device__ Chunk chunk_of(const List<Tensor>& list, int tensor, int64_t chunk) {
  const int64_t begin = (chunk - list.first_chunk[tensor]) * kChunk, count = list.tensors[tensor].count;
  return {begin, begin + kChunk < count ? begin + kChunk : count};
}

__global__ void __launch_bounds__(kListThreads)
    squares_of_chunks(const __grid_constant__ List<SquaresTensor> list, Kind kind, double* parts) {
  const int tensor = tensor_of_chunk(list, blockIdx.x);
  const double total = sum_of_block(squares_of_share(list.tensors[tensor], kind, chunk_of(list, tensor, blockIdx.x),
                                                     static_cast<int>(threadIdx.x), kListThreads));
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kListThreads) add_parts(const double* parts, int64_t count, double* total) {
  double mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += kListThreads) mine += parts[i];
  mine = sum_of_block(mine);
  if (threadIdx.x == 0) *total += mine;
}

template <typename W>
__global__ void __launch_bounds__(kListThreads)
    adam_of_chunks(const __grid_constant__ List<AdamTensor> list, AdamKinds kinds, AdamRule rule) {
  const int tensor = tensor_of_chunk(list, blockIdx.x);
  adam_of_share<W>(list.tensors[tensor], kinds, rule, chunk_of(list, tensor, blockIdx.x), static_cast<int>(threadIdx.x),
                   kListThreads);
}

// Calls launch(list, chunks) for batches of tensors, each as large as fits.
template <typename Tensor, typename F>
cudaError_t for_lists(const std::vector<Tensor>& tensors, const F& launch) {
  for (size_t first = 0; first < tensors.size(); first += kMostTensors) {
    List<Tensor> list{};
    list.count = static_cast<int>(std::min<size_t>(kMostTensors, tensors.size() - first));
    for (int i = 0; i < list.count; ++i) {
      list.tensors[i] = tensors[first + static_cast<size_t>(i)];
      list.first_chunk[i + 1] = list.first_chunk[i] + chunks_of(list.tensors[i].count);
    }
    if (list.first_chunk[list.count] == 0) continue;
    launch(list, static_cast<unsigned>(list.first_chunk[list.count]));
    if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t launch_squares(const std::vector<SquaresTensor>& tensors, Kind kind, double* parts, double* total,
                           cudaStream_t stream) {
  int64_t filled = 0;
  const cudaError_t code = for_lists(tensors, [&](const List<SquaresTensor>& list, unsigned chunks) {
    squares_of_chunks<<<chunks, kListThreads, 0, stream>>>(list, kind, parts + filled);
    filled += chunks;
  });
  if (code != cudaSuccess || filled == 0) return code;
  add_parts<<<1, kListThreads, 0, stream>>>(parts, filled, total);
  return cudaGetLastError();
}

cudaError_t launch_adam(const std::vector<AdamTensor>& tensors, const AdamKinds& kinds, const AdamRule& rule,
                        cudaStream_t stream) {
  return for_lists(tensors, [&](const List<AdamTensor>& list, unsigned chunks) {
    if (kinds.weight == Kind::kFp64) {
      adam_of_chunks<double><<<chunks, kListThreads, 0, stream>>>(list, kinds, rule);
    } else {
      adam_of_chunks<float><<<chunks, kListThreads, 0, stream>>>(list, kinds, rule);
    }
  });
}

}  // namespace ranklab::rows
