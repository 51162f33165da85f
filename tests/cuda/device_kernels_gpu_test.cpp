// Where there is a GPU: its kernels against the same in plain ATen ops on it, in fp64.
#include "backends/cuda/cuda_backend.h"
#include "core/nn/attention/softmax_attention.h"
#include "tests/cuda/device_kernels_cases.h"

namespace ranklab {
namespace {

class DeviceKernelsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  }
};

TEST_F(DeviceKernelsOnGpu, Norms) { device_cases::check_norms(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, HeadNorms) { device_cases::check_head_norms(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, Swiglu) { device_cases::check_swiglu(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, Heads) { device_cases::check_heads(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, AttentionByFlash) { device_cases::check_attention(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, AttentionByCudnn) {
  use_gpu_attention(GpuAttention::kCudnn);
  device_cases::check_attention(at::kCUDA);
  use_gpu_attention(GpuAttention::kFlash);
}
TEST_F(DeviceKernelsOnGpu, SoftmaxMerges) { device_cases::check_softmax_merges(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, LatentAttention) { device_cases::check_latent_attention(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, Loss) { device_cases::check_loss(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, PaddedLoss) { device_cases::check_padded_loss(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, Squares) { device_cases::check_squares(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, AdamW) { device_cases::check_adamw(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, Sums) { device_cases::check_sums(at::kCUDA); }
TEST_F(DeviceKernelsOnGpu, SameBitsInEveryRun) { device_cases::check_repeats(at::kCUDA); }

}  // namespace
}  // namespace ranklab
