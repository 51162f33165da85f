// The bodies of the GPU's kernels in loops on a CPU, behind the same functions that a GPU's tensors go through.
#include <ATen/record_function.h>

#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/attention/block_attention.h"
#include "core/nn/attention/latent_attention.h"
#include "core/nn/recomputable_output.h"
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
TEST_F(DeviceKernelsOnHost, SoftmaxMerges) { device_cases::check_softmax_merges(at::kCPU); }
TEST_F(DeviceKernelsOnHost, LatentAttention) { device_cases::check_latent_attention(at::kCPU); }

// How often `work` runs ATen's attention.
int attentions(const std::function<void()>& work) {
  static thread_local int count;
  count = 0;
  const auto on_start = [](const at::RecordFunction& fn) -> std::unique_ptr<at::ObserverContext> {
    if (std::string_view(fn.name()) == "aten::scaled_dot_product_attention") ++count;
    return nullptr;
  };
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(on_start).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return count;
}

void expect_one_attention(const std::function<RecomputableOutput()>& forward) {
  EXPECT_EQ(attentions([&] {
              const RecomputableOutput y = forward();
              const at::Tensor again = y.recomputer ? y.recomputer->take() : y.out;
              EXPECT_TRUE(at::equal(again, y.out));
              torch::autograd::backward({y.out}, {at::ones_like(y.out)});
            }),
            1);
}

// Nor does selective recomputation compute it again: what backward goes through is kept.
TEST_F(DeviceKernelsOnHost, AttentionWithoutAFusedKernelRunsOnceForBothPasses) {
  const auto input = [](int64_t width, double salt) {
    return device_cases::sample({16, 2, width}, salt, at::kFloat, at::kCPU).requires_grad_(true);
  };
  const AttentionShape shape{2, 1, 8, 5};
  const at::Tensor qkv = input(32, 0.1);
  expect_one_attention([&] { return RecomputableOutput{causal_attention(qkv, shape, {})}; });
  expect_one_attention([&] { return recomputable_causal_attention(qkv, shape, {}); });
  const LatentShape latent{2, 8, 4, 8, 0.3, 5};
  const LatentInput in{input(24, 0.1), input(32, 0.2), input(4, 0.3)};
  expect_one_attention([&] { return RecomputableOutput{latent_attention(in, latent, {})}; });
  expect_one_attention([&] { return recomputable_latent_attention(in, latent, {}); });
}

// Sums over blocks are in fp32: a part that was rounded to 16 bits before would add an error of its own.
TEST_F(DeviceKernelsOnHost, PlainBlocksHandOnFp32) {
  const auto heads = [](double salt) { return device_cases::sample({1, 2, 8, 8}, salt, at::kBFloat16, at::kCPU); };
  const SoftmaxHeads in{heads(0.1), heads(0.2), heads(0.3)};
  const AttentionBlock band{.queries = 8, .keys = 8, .kind = AttentionBlock::Kind::kBand, .band = {-3, 0}};
  const SoftmaxedHeads forward = block_attention(in, band, {});
  EXPECT_EQ(forward.out.scalar_type(), at::kFloat);
  const SoftmaxHeads d = block_attention_grad(in, forward, forward.out, band, {});
  for (const at::Tensor& grad : {d.q, d.k, d.v}) EXPECT_EQ(grad.scalar_type(), at::kFloat);
}

TEST_F(DeviceKernelsOnHost, ExpertsKeepCheapOutputsToo) {
  const at::Tensor gate_up = device_cases::sample({5, 16}, 0.1, at::kFloat, at::kCPU);
  for (const bool keep : {false, true}) {
    keep_cheap_outputs(keep);
    const Activated inner = swiglu_charged_twice(gate_up);
    EXPECT_EQ(inner.compute(inner.input).is_same(inner.input), keep);
    EXPECT_TRUE(at::equal(inner.compute(inner.input), inner.out));
  }
  keep_cheap_outputs(false);
}

TEST_F(DeviceKernelsOnHost, Loss) { device_cases::check_loss(at::kCPU); }
TEST_F(DeviceKernelsOnHost, PaddedLoss) { device_cases::check_padded_loss(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Squares) { device_cases::check_squares(at::kCPU); }
TEST_F(DeviceKernelsOnHost, AdamW) { device_cases::check_adamw(at::kCPU); }
TEST_F(DeviceKernelsOnHost, Sums) { device_cases::check_sums(at::kCPU); }

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
