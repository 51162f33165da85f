// The loss, the gradients' norm and AdamW.
#include <cmath>

#include "core/nn/accumulate.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/optim/grad_clip.h"
#include "core/optim/optimizer.h"
#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "tests/cuda/device_kernels_cases.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab::device_cases {
namespace {

at::Tensor some_targets(int64_t tokens, int64_t vocab, at::Device device) {
  at::Tensor targets = (at::arange(tokens, at::kLong) * 7919 + 2).remainder(vocab);
  targets[tokens / 2] = kIgnoreTarget;
  return targets.to(device);
}

}  // namespace

void check_loss(at::Device device) {
  run_ranks(dims_of(1, 1), [&](RankContext& context) {
    const TensorParallel tp{&context.comm(Axis::kTp)};
    for (const at::ScalarType type : kTypes) {
      for (const auto& [tokens, vocab] : std::vector<std::pair<int64_t, int64_t>>{
               {4, 1}, {5, 7}, {3, 100}, {600, 257}, {33, 2048}, {7, 4096}, {5, 50257}, {9, 128256}}) {
        const at::Tensor targets = some_targets(tokens, vocab, device);
        const Layer fast = [&, v = vocab](const Tensors& in) {
          return Tensors{vocab_parallel_cross_entropy(in[0], targets, shard_padded({v, 1}, 0, 1), tp)};
        };
        const Layer plain = [&](const Tensors& in) {
          return Tensors{at::cross_entropy_loss(in[0], targets, {}, at::Reduction::Sum, kIgnoreTarget)};
        };
        for (const bool shifted : {false, true}) {
          expect_same(fast, plain, {sample({tokens, vocab}, 0.3, type, device, shifted, 9)},
                      "loss " + std::to_string(tokens) + " " + std::to_string(vocab) + (shifted ? " shifted" : ""));
        }
      }
    }
  });
}

// The second of two ranks' columns, the last ones padding that holds NaN.
void check_padded_loss(at::Device device) {
  constexpr int64_t kTokens = 6, kWidth = 72, kReal = 61, kBegin = 72;
  for (const at::ScalarType type : kTypes) {
    at::Tensor logits = sample({kTokens, kWidth}, 0.3, type, device, false, 4);
    logits.narrow(1, kReal, kWidth - kReal).fill_(NAN);
    const at::Tensor targets = (at::arange(kTokens, at::kLong) * 23 + 30).to(device);
    const auto wide = logits.options().dtype(kernel_wide_type(logits));
    const at::Tensor statistics = at::empty({3, kTokens}, wide), grad_loss = at::full({}, 0.5, wide);
    DeviceLoss task{
        device_number(logits), kTokens, kWidth, kReal, kBegin, device_in(logits), targets.const_data_ptr<int64_t>(),
        device_out(statistics)};
    device_kernels_of(logits)->loss_statistics(task);
    const at::Tensor real = logits.narrow(1, 0, kReal).to(at::kDouble);
    const at::Tensor maximum = at::amax(real, 1), local = targets - kBegin;
    const at::Tensor owned = at::logical_and(local.ge(0), local.lt(kReal)).to(at::kDouble);
    const at::Tensor column = local.clamp(0, kReal - 1).unsqueeze(1);
    const std::string what = std::string("padded loss ") + c10::toString(type);
    expect_close(statistics[0], maximum, 1e-12, what + " maximum");
    expect_close(statistics[1], (real - maximum.unsqueeze(1)).exp().sum(1), 1e-5, what + " sum");
    expect_close(statistics[2], real.gather(1, column).squeeze(1) * owned, 1e-12, what + " target");
    const at::Tensor of_all = statistics[0] + 0.25, factor = at::full({kTokens}, 0.125, wide);
    const at::Tensor grad = at::empty_like(logits);
    task.maximum = device_in(of_all), task.factor = device_in(factor);
    task.grad_loss = device_in(grad_loss), task.grad = device_out(grad);
    device_kernels_of(logits)->loss_grad(task);
    at::Tensor want = (real - of_all.to(at::kDouble).unsqueeze(1)).exp() * (0.125 * 0.5);
    want.scatter_add_(1, column, (owned * -0.5).unsqueeze(1));
    expect_close(grad.narrow(1, 0, kReal), want, tolerance(type), what + " grad");
    EXPECT_EQ(grad.narrow(1, kReal, kWidth - kReal).count_nonzero().item<int64_t>(), 0) << what;
  }
}

void check_squares(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    Tensors grads;
    for (const int64_t count : {1, 7, 65536, 65537, 200001, 0, 64})
      grads.push_back(sample({count}, 0.1, type, device, count % 2 == 1));
    for (int i = 0; i < 120; ++i) grads.push_back(sample({33}, i, type, device));  // more than a launch takes
    std::vector<DeviceArray> arrays;
    double want = 0;
    int64_t chunks = 0;
    for (const at::Tensor& grad : grads) {
      arrays.push_back({device_in(grad), grad.numel()});
      chunks += (grad.numel() + kDeviceSquaresChunk - 1) / kDeviceSquaresChunk;
      want += grad.cpu().to(at::kDouble).square().sum().item<double>();
    }
    const auto options = at::TensorOptions(at::kDouble).device(device);
    const at::Tensor parts = at::empty({chunks}, options), total = at::ones({1}, options);
    device_kernels_of(total)->add_squares(device_number(grads[0]), arrays, parts.mutable_data_ptr<double>(),
                                          total.mutable_data_ptr<double>());
    EXPECT_NEAR(total.item<double>(), 1 + want, 1e-10 * want) << c10::toString(type);
  }
}

// As LibTorch's own operators, bit for bit; of packs, of single numbers, and where nothing can be taken in packs.
void check_sums(at::Device device) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const int64_t count : {1, 7, 64, 4096, 70001}) {
      for (const int64_t skip : {0, 1, 8}) {
        const at::Tensor all = sample({count + skip}, 0.1, type, device, false), x = all.narrow(0, skip, count);
        const at::Tensor sums = at::full({count + skip}, 0.375, all.options().dtype(at::kFloat));
        const at::Tensor sum = sums.narrow(0, skip, count), want = sum.clone();
        accumulate(sum, x, false);
        want.add_(x);
        EXPECT_TRUE(at::equal(sum, want)) << c10::toString(type) << " of " << count << " from " << skip;
        accumulate(sum, x, true);
        EXPECT_TRUE(at::equal(sum, x.to(at::kFloat))) << c10::toString(type) << " of " << count << " from " << skip;
        EXPECT_TRUE(at::equal(sums.narrow(0, 0, skip), at::full({skip}, 0.375, sums.options())));
      }
    }
  }
}

namespace {

struct AdamCase {
  at::ScalarType params, exp_avg, exp_avg_sq, grads;
  bool masters;
};

void fill(ParameterRegistry& registry) {
  for (int i = 0; i < 60; ++i)
    registry.create("small." + std::to_string(i), replicated({5 + i}), {InitKind::kNormal, 1.0}, i % 3 != 0);
  registry.create("large", replicated({300, 257}), {InitKind::kNormal, 1.0}, true);
}

std::unique_ptr<Optimizer> optimizer_of(ParameterRegistry& registry, const AdamCase& c) {
  return make_adamw(registry.parameters(),
                    {.masters = c.masters, .exp_avg_type = c.exp_avg, .exp_avg_sq_type = c.exp_avg_sq});
}

void expect_updates(const AdamCase& c, at::Device device) {
  ParameterRegistry fused(1, c.params, device), plain(1, c.params, at::kCPU);
  fill(fused), fill(plain);
  const auto ours = optimizer_of(fused, c), reference = optimizer_of(plain, c);
  const at::NoGradGuard no_grad;
  const DeviceKernels* const on_cpu = device_kernels(KernelDevice::kCpu);
  for (int t = 1; t <= 3; ++t) {
    for (ParameterRegistry* registry : {&fused, &plain}) {
      for (Parameter* p : registry->parameters())
        p->data.mutable_grad() = golden::wave(p->data.sizes(), 0.3 + t).to(c.grads).to(p->data.device());
    }
    EXPECT_TRUE(ours->scales_in_update());
    ours->step_scaled(1e-2, 0.5);
    use_device_kernels(KernelDevice::kCpu, nullptr);  // the reference is the plain chain
    reference->step_scaled(1e-2, 0.5);
    use_device_kernels(KernelDevice::kCpu, on_cpu);
  }
  const auto got = ours->states(), want = reference->states();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string what = std::string("AdamW ") + c10::toString(c.params) + " " + got[i].parameter->name;
    const double of_moments = std::max(tolerance(c.exp_avg), tolerance(c.exp_avg_sq));
    const double of_weights = std::max(tolerance(got[i].weight.scalar_type()), of_moments);
    expect_close(got[i].weight, want[i].weight, of_weights, what);
    expect_close(got[i].parameter->data, want[i].parameter->data, std::max(tolerance(c.params), of_moments), what);
    for (size_t m = 0; m < 2; ++m)
      expect_close(got[i].moments[m].second, want[i].moments[m].second, of_moments, what + " moment");
  }
}

}  // namespace

void check_adamw(at::Device device) {
  for (const AdamCase& c : {AdamCase{at::kBFloat16, at::kFloat, at::kFloat, at::kBFloat16, true},
                            AdamCase{at::kBFloat16, at::kFloat, at::kFloat, at::kFloat, true},
                            AdamCase{at::kHalf, at::kBFloat16, at::kHalf, at::kHalf, true},
                            AdamCase{at::kBFloat16, at::kFloat, at::kFloat, at::kBFloat16, false},
                            AdamCase{at::kFloat, at::kFloat, at::kFloat, at::kFloat, true},
                            AdamCase{at::kFloat, at::kBFloat16, at::kBFloat16, at::kFloat, true},
                            AdamCase{at::kDouble, at::kDouble, at::kDouble, at::kDouble, true}})
    expect_updates(c, device);
}

}  // namespace ranklab::device_cases
