#include "backends/cuda/nccl/nccl_api.h"

#include "core/base/error.h"

namespace ranklab {

void check_cuda(cudaError_t code, const char* doing) {
  RANKLAB_CHECK(code == cudaSuccess, ErrorKind::kCommunication, .where = "cuda",
                .what = std::string("the CUDA runtime failed while ") + doing, .got = cudaGetErrorString(code),
                .want = "success", .fix = "look at the first error of the run; CUDA_LAUNCH_BLOCKING=1 finds its place");
}

void check_nccl(ncclResult_t code, const char* doing, ncclComm_t comm) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  std::string got = ncclGetErrorString(code);
  if (const char* last = ncclGetLastError(comm); last != nullptr && *last != '\0') got += ": " + std::string(last);
  throw Error(ErrorKind::kCommunication, {.where = "nccl",
                                          .what = std::string("NCCL failed while ") + doing,
                                          .got = std::move(got),
                                          .want = "success",
                                          .fix = "run again with NCCL_DEBUG=INFO"});
}

}  // namespace ranklab
