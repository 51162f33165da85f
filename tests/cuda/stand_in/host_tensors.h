// Tensors on the stand-in's GPUs, without LibTorch's CUDA half: their memory is that of c10_cuda's own caching
// allocator over the stand-in runtime. What writes into tensors that are there (copies, fills, sums into a result) is
// work on the current stream, as kernels are; an operator that makes its own result waits for that stream and runs on
// the host. Thread rule: as Torch's.
#pragma once

namespace ranklab::stand_in {

// Once per process, before the first such tensor.
void use_host_tensors();

}  // namespace ranklab::stand_in
