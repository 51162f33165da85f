// The bodies of the GPU's kernels in loops on a CPU, behind the same functions that a GPU's tensors go through.
#include "tests/cuda/device_kernels_cases.h"
#include "tests/cuda/host_kernels.h"

namespace ranklab {
namespace {

class DeviceKernelsOnHost : public testing::Test {
  KernelsOfAGpu kernels_;
};

TEST_F(DeviceKernelsOnHost, Norms) { device_cases::check_norms(at::kCPU); }
TEST_F(DeviceKernelsOnHost, HeadNorms) { device_cases::check_head_norms(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Swiglu) { device_cases::check_swiglu(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Heads) { device_cases::check_heads(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Attention) { device_cases::check_attention(at::kCPU); }
TEST_F(DeviceKernelsOnHost, LatentAttention) { device_cases::check_latent_attention(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Loss) { device_cases::check_loss(at::kCPU); }
TEST_F(DeviceKernelsOnHost, PaddedLoss) { device_cases::check_padded_loss(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Squares) { device_cases::check_squares(at::kCPU); }
TEST_F(DeviceKernelsOnHost, AdamW) { device_cases::check_adamw(at::kCPU); }

// 16 bits are the same numbers here as on a CPU and in ATen, each of them and what lies between two.
TEST(DeviceNumbers, AreThoseOfAten) {
  const at::Tensor bits = at::arange(65536, at::kInt).to(at::kShort);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor narrow = bits.view(type), wide = narrow.to(at::kFloat);
    const at::Tensor between = at::cat({wide, (wide + at::roll(wide, 1)) / 2, wide * 1.0009765625, wide * 0.99902});
    const at::Tensor want = between.to(type), wide_again = want.to(at::kFloat);
    const auto check = [&]<typename T>() {
      for (int64_t i = 0; i < between.numel(); ++i) {
        const float x = between.const_data_ptr<float>()[i];
        T got;
        rows::round_to(x, got);
        const auto wanted = static_cast<const T*>(want.const_data_ptr())[i];
        if (std::isnan(x)) {
          ASSERT_TRUE(std::isnan(rows::widened(got)));
        } else {
          ASSERT_EQ(got.bits, wanted.bits) << x;
          ASSERT_EQ(rows::widened(got), wide_again.const_data_ptr<float>()[i]) << x;
        }
      }
    };
    if (type == at::kBFloat16) {
      check.operator()<rows::Bf16>();
    } else {
      check.operator()<rows::Fp16>();
    }
  }
}

}  // namespace
}  // namespace ranklab
