// Tensors on the stand-in's GPUs, without LibTorch's CUDA half: their memory is that of c10_cuda's own caching
// allocator over the stand-in runtime. Operators are work on the current stream, as kernels are, computed by the host's
// kernels: what results are like is asked of the operator on shapes alone, and they are filled when the stream comes to
// it. Where shapes do not tell, and where a GPU's operator waits for its queue, the host waits (host_waits.h). As with
// a GPU, the host cannot reach its memory (device_memory.h), and an operator refuses tensors of the host beside a GPU's
// but for single numbers. Thread rule: as Torch's.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ranklab::stand_in {

// Once per process, before the first such tensor.
void use_host_tensors();

// While one lives, operators that make new results wait for their stream, so that no pass can be recorded. Thread rule:
// main thread.
class WaitingOperators {
 public:
  WaitingOperators();
  ~WaitingOperators();
  WaitingOperators(const WaitingOperators&) = delete;
  WaitingOperators& operator=(const WaitingOperators&) = delete;
};

// Work on the stream of the first tensor, as a kernel with these arguments: it gets the same memory as tensors of the
// host.
void launch_on_host(const std::vector<at::Tensor>& tensors, std::function<void(const std::vector<at::Tensor>&)> kernel);

}  // namespace ranklab::stand_in
