// The lanes of a pipeline are right only if a stream that waits for its message never holds another one: that takes a
// hardware queue for each (gpu_choice.h). Here each stream in turn is held by the host, and all others must go on.
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_backend.h"

namespace ranklab {
namespace {

constexpr int kStreams = 12;  // eight lanes and some axes

void hold(void* released) {
  while (!static_cast<std::atomic<bool>*>(released)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool passes(cudaStream_t stream, std::chrono::milliseconds limit) {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool passed = false;
  while (!passed && std::chrono::steady_clock::now() < deadline) passed = cudaEventQuery(event) == cudaSuccess;
  cudaEventDestroy(event);
  return passed;
}

TEST(LaneStreams, OneThatWaitsHoldsNoOther) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;  // opens the module, and so LibTorch's CUDA half
  std::vector<cudaStream_t> streams = {nullptr};                   // compute
  for (int i = 0; i < kStreams; ++i) streams.push_back(c10::cuda::getStreamFromPool(true, 0).stream());
  for (size_t held = 1; held < streams.size(); ++held) {
    std::atomic<bool> released{false};
    // As a lane waits: its stream stands still, and another stream of its library waits for that.
    ASSERT_EQ(cudaLaunchHostFunc(streams[held], hold, &released), cudaSuccess);
    for (size_t other = 0; other < streams.size(); ++other) {
      if (other == held) continue;
      EXPECT_TRUE(passes(streams[other], std::chrono::seconds(10)))
          << "stream " << other << " waits behind stream " << held;
    }
    released = true;
    ASSERT_EQ(cudaStreamSynchronize(streams[held]), cudaSuccess);
  }
}

}  // namespace
}  // namespace ranklab
