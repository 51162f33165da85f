// Turns the result codes of NCCL and the CUDA runtime into errors. Thread rule: pure.
#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

namespace ranklab {

// `doing` completes "failed while ...".
void check_cuda(cudaError_t code, const char* doing);
// Accepts ncclSuccess and ncclInProgress. `comm` may be null; it provides the text of the last error.
void check_nccl(ncclResult_t code, const char* doing, ncclComm_t comm = nullptr);

}  // namespace ranklab
