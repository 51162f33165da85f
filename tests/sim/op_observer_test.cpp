#include "core/sim/op_observer.h"
#include "core/sim/aten.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>

namespace ranklab {
namespace {

// 1 FLOP and 1 byte a nanosecond in fp32, half in fp64, double in 16-bit; no overhead unless asked.
HardwareProfile toy_compute(double launch_overhead_ns = 0) {
  HardwareProfile profile;
  profile.peak_flops_fp32 = 1e9;
  profile.peak_flops_fp64 = 0.5e9;
  profile.peak_flops_16bit = 2e9;
  profile.memory_bandwidth = 1e9;
  profile.launch_overhead_ns = launch_overhead_ns;
  return profile;
}

struct Observed {
  int64_t ns = 0;
  int64_t ops = 0;
  double flops = 0;
};

Observed observe(const std::function<void()>& body, const HardwareProfile& profile = toy_compute()) {
  VirtualClock clock;
  OpObserver observer(profile, clock);
  body();
  return {clock.now_ns(), observer.ops(), observer.flops()};
}

at::Tensor ones(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) { return at::ones(sizes, at::dtype(dtype)); }

TEST(OpObserver, AComputeBoundMatmulTakesItsFlops) {
  const at::Tensor a = ones({64, 64}), b = ones({64, 64});
  const Observed seen = observe([&] { at::mm(a, b); });
  EXPECT_EQ(seen.ns, 2 * 64 * 64 * 64);  // bytes: 3 x 16384, less
  EXPECT_EQ(seen.ops, 1);
  EXPECT_EQ(seen.flops, 2.0 * 64 * 64 * 64);
}

// The host is ahead of a GPU with long kernels and behind one with short ones; a pass begins without a lead.
TEST(OpObserver, ShortKernelsWaitForTheirLaunch) {
  HardwareProfile slow_host = toy_compute();
  slow_host.software.terms.launch_us = 1;
  constexpr int64_t kLaunch = 1000, kLong = 2 * 64 * 64 * 64, kShort = 2 * 16;
  const at::Tensor a = ones({64, 64}), b = ones({64, 64}), c = ones({4});
  VirtualClock clock;
  OpObserver observer(slow_host, clock);
  for (int i = 0; i < 3; ++i) at::neg(c);
  EXPECT_EQ(clock.now_ns(), 3 * kLaunch + kShort);
  observer.begin_pass();
  int64_t begin = clock.now_ns();
  at::mm(a, b);
  for (int i = 0; i < 3; ++i) at::neg(c);
  EXPECT_EQ(clock.now_ns() - begin, kLaunch + kLong + 3 * kShort) << "launched meanwhile";
  observer.begin_pass();
  begin = clock.now_ns();
  at::neg(c);
  EXPECT_EQ(clock.now_ns() - begin, kLaunch + kShort) << "the lead was lost";
  const KernelTimes& times = observer.kernel_times();
  EXPECT_EQ(times.launches, 8);
  EXPECT_EQ(times.launch_ns + times.ns[0] + times.ns[1], clock.compute_ns());
}

// CUDA_LAUNCH_BLOCKING=1: however long a kernel is, the next is launched after it.
TEST(OpObserver, ABlockingLaunchIsNeverHidden) {
  HardwareProfile slow_host = toy_compute();
  slow_host.software.terms = {.launch_us = 1, .launch_blocking = true};
  constexpr int64_t kLaunch = 1000, kLong = 2 * 64 * 64 * 64;
  const at::Tensor a = ones({64, 64}), b = ones({64, 64});
  VirtualClock clock;
  OpObserver observer(slow_host, clock);
  for (int i = 0; i < 3; ++i) at::mm(a, b);
  EXPECT_EQ(clock.now_ns(), 3 * (kLaunch + kLong));
}

// The experts of a product are launched one by one; the time until the last launch belongs to no kernel.
TEST(OpObserver, AKernelsEventEndsBeforeTheWaitForItsOtherLaunches) {
  HardwareProfile slow_host = toy_compute();
  slow_host.software.terms.launch_us = 1;
  VirtualClock clock;
  OpObserver observer(slow_host, clock);
  KernelRun seen;
  observer.set_on_kernel([&](const KernelRun& run) { seen = run; });
  KernelShape shape = KernelShape::product(2, 2, 2);
  shape.launches = 4;
  CostScope(KernelName("experts", shape), 16, 1, DType::kFloat32);
  EXPECT_EQ(seen.begin_ns, 1000);
  EXPECT_EQ(seen.end_ns, 1016);
  EXPECT_EQ(clock.now_ns(), 4000);
}

TEST(OpObserver, AMemoryBoundMatmulTakesItsBytes) {
  const at::Tensor a = ones({1, 256}), b = ones({256, 256});
  EXPECT_EQ(observe([&] { at::mm(a, b); }).ns, 4 * (256 + 256 * 256 + 256));  // flops: 131072, less
}

TEST(OpObserver, ThePeakIsThatOfTheDtype) {
  const auto ns = [](at::ScalarType dtype) {
    const at::Tensor a = ones({64, 64}, dtype), b = ones({64, 64}, dtype);
    return observe([&] { at::mm(a, b); }).ns;
  };
  EXPECT_EQ(ns(at::kDouble), 2 * 2 * 64 * 64 * 64);
  EXPECT_EQ(ns(at::kBFloat16), 64 * 64 * 64);
  EXPECT_EQ(ns(at::kHalf), 64 * 64 * 64);
}

TEST(OpObserver, EveryGemmCountsTwoFlopsAMultiplyAdd) {
  const at::Tensor a = ones({4, 8, 16}), b = ones({4, 16, 32}), c = ones({4, 8, 32}), v = ones({16});
  EXPECT_EQ(observe([&] { at::bmm(a, b); }).flops, 2.0 * 4 * 8 * 16 * 32);
  EXPECT_EQ(observe([&] { at::baddbmm(c, a, b); }).flops, 2.0 * 4 * 8 * 16 * 32);
  EXPECT_EQ(observe([&] { at::addmm(c[0], a[0], b[0]); }).flops, 2.0 * 8 * 16 * 32);
  EXPECT_EQ(observe([&] { at::mv(a[0], v); }).flops, 2.0 * 8 * 16);
  EXPECT_EQ(observe([&] { at::dot(v, v); }).flops, 2.0 * 16);
  EXPECT_EQ(observe([&] { at::einsum("bij,bjk->bik", {a, b}); }).flops, 2.0 * 4 * 8 * 16 * 32);
}

// linear, matmul and einsum count through their parts: only the GEMM inside them costs. (Without the rule: counted
// twice.)
TEST(OpObserver, AWholeCostsWhatItsPartsCost) {
  const at::Tensor x = ones({4, 8, 16}), w = ones({32, 16}), bias = ones({32});
  for (const auto& body : std::vector<std::function<void()>>{[&] { at::linear(x, w); }, [&] { at::linear(x, w, bias); },
                                                             [&] { at::matmul(x, w.t()); }}) {
    const Observed seen = observe(body);
    EXPECT_EQ(seen.flops, 2.0 * 32 * 16 * 32);
    EXPECT_EQ(seen.ops, 1);
  }
  const at::Tensor y = ones({100});
  EXPECT_EQ(observe([&] { y.clone(); }).ns, 800);
  EXPECT_EQ(observe([&] { at::zeros({100}); }).ns, 400);
  EXPECT_EQ(observe([&] { y.to(at::kDouble); }).ns, 400 + 800);
  EXPECT_EQ(observe([&] { y.to(at::kFloat); }).ns, 0);
  EXPECT_EQ(observe([&] { y.contiguous(); }).ns, 0);
}

TEST(OpObserver, AViewIsFree) {
  const at::Tensor x = ones({4, 6, 8});
  const Observed seen = observe(
      [&] {
        x.view({24, 8}).t().unsqueeze(0).expand({5, 8, 24}).narrow(1, 0, 2).select(0, 1).detach();
        x.permute({2, 0, 1}).transpose(0, 1).squeeze();
        x.reshape({-1}).split(24);
        x.chunk(2, 1);
        at::empty({1000});
      },
      toy_compute(1000));
  EXPECT_EQ(seen.ns, 0);
  EXPECT_EQ(seen.ops, 0);
}

TEST(OpObserver, ElementwiseReadsItsInputsAndWritesItsOutput) {
  at::Tensor x = ones({100}), y = ones({100});
  EXPECT_EQ(observe([&] { at::add(x, y); }).ns, 1200);
  EXPECT_EQ(observe([&] { x.add_(y); }).ns, 1200);
  EXPECT_EQ(observe([&] { x.copy_(y); }).ns, 800);
  EXPECT_EQ(observe([&] { x.zero_(); }).ns, 400);
  EXPECT_EQ(observe([&] { at::silu(x); }).ns, 800);
  EXPECT_EQ(observe([&] { at::mul(x, 2.0); }).ns, 800);
  EXPECT_EQ(observe([&] { at::sum(x); }).ns, 400 + 4);
  EXPECT_EQ(observe([&] { at::cat({x, y}); }).ns, 1600);
  EXPECT_EQ(observe([&] { at::add_out(y, x, x); }).ns, 1200);
  EXPECT_EQ(observe([&] { at::add(ones({1}).expand({100}), x); }).ns - observe([&] { ones({1}); }).ns, 4 + 800);
  EXPECT_EQ(observe([&] { at::add(x.to(at::kBFloat16), 1); }).ns, 600 + 400);
}

TEST(OpObserver, AnEmbeddingReadsOnlyTheRowsItReturns) {
  const at::Tensor table = ones({1000, 16}), index = at::zeros({10}, at::kLong);
  EXPECT_EQ(observe([&] { at::embedding(table, index); }).ns, 10 * 8 + 2 * 10 * 16 * 4);
  EXPECT_EQ(observe([&] { table.index_select(0, index); }).ns, 10 * 8 + 2 * 10 * 16 * 4);
  at::Tensor sum = ones({1000, 16});
  const at::Tensor rows = ones({10, 16});
  EXPECT_EQ(observe([&] { sum.index_add_(0, index, rows); }).ns, 10 * 8 + 3 * 10 * 16 * 4);
}

TEST(OpObserver, AttentionCountsItsGemmsAndHalfOfThemWhenCausal) {
  const at::Tensor q = ones({2, 3, 64, 16}), k = ones({2, 3, 64, 16}), v = ones({2, 3, 64, 16});
  const double full = 4.0 * 2 * 3 * 64 * 64 * 16;
  const auto forward = [&](bool causal) {
    return observe([&] { at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal); });
  };
  EXPECT_EQ(forward(false).flops, full);
  EXPECT_EQ(forward(true).flops, full / 2);
  EXPECT_EQ(forward(true).ops, 1);
  const at::Tensor leaf = ones({2, 3, 64, 16}).requires_grad_(true);
  const at::Tensor out = at::scaled_dot_product_attention(leaf, leaf, leaf, {}, 0.0, true);
  const at::Tensor grad = ones({2, 3, 64, 16});
  const Observed backward = observe([&] { out.backward(grad); });
  EXPECT_EQ(backward.flops, full);                               // model FLOPs: twice the forward
  EXPECT_GE(backward.ns, static_cast<int64_t>(2.5 * full / 2));  // time: with the recomputed scores
}

TEST(OpObserver, ForwardAndBackwardOfALinearAreSixMnk) {
  const at::Tensor x = ones({32, 16}).requires_grad_(true), w = ones({64, 16}).requires_grad_(true);
  const Observed seen = observe([&] { at::linear(x, w).sum().backward(); });
  EXPECT_EQ(seen.flops, 6.0 * 32 * 64 * 16);
}

TEST(OpObserver, ConvolutionForwardAndBackward) {
  const at::Tensor x = ones({2, 3, 10, 10}).requires_grad_(true), w = ones({4, 3, 3, 3}).requires_grad_(true);
  const double forward = 2.0 * 2 * 4 * 8 * 8 * 3 * 3 * 3;
  EXPECT_EQ(observe([&] { at::conv2d(x, w); }).flops, forward);
  EXPECT_EQ(observe([&] { at::conv2d(x, w).sum().backward(); }).flops, 3 * forward);
}

TEST(OpObserver, FusedAdamWIsOnePassOverItsState) {
  const auto list = [] { return std::vector<at::Tensor>{ones({100}), ones({50})}; };
  auto weights = list(), grads = list(), first = list(), second = list();
  std::vector<at::Tensor> steps = {ones({}), ones({})};
  const Observed seen = observe(
      [&] { at::_fused_adamw_(weights, grads, first, second, {}, steps, 1e-3, 0.9, 0.95, 0.1, 1e-8, false, false); });
  EXPECT_EQ(seen.ops, 1);
  EXPECT_EQ(seen.ns, 7 * 150 * 4);
  EXPECT_EQ(observe([&] { at::_foreach_mul_(weights, 0.5); }).ns, 2 * 150 * 4);
  EXPECT_EQ(observe([&] { at::_foreach_mul_(weights, 0.5); }).ops, 1);
}

TEST(OpObserver, LaunchOverheadIsPerKernel) {
  const at::Tensor x = ones({100});
  EXPECT_EQ(observe([&] { at::add(at::add(x, 1), 1); }, toy_compute(1000)).ns, 2 * (800 + 1000));
}

TEST(OpObserver, ACostScopeReplacesWhatIsInside) {
  const at::Tensor x = ones({100});
  const Observed seen = observe([&] {
    const CostScope scope("work", 5000, 100, DType::kFloat32);
    at::add(x, x);
    {
      const CostScope inner("part", 1e9, 1e9, DType::kFloat64);
      at::mul(x, x);
    }
    at::mm(ones({8, 8}), ones({8, 8}));
  });
  EXPECT_EQ(seen.ns, 5000);
  EXPECT_EQ(seen.ops, 1);
  EXPECT_EQ(seen.flops, 5000);
}

TEST(OpObserver, PausedOpsCostNothing) {
  const at::Tensor x = ones({100});
  const Observed seen = observe([&] {
    const NoCostScope pause;
    at::add(x, x);
    const NoCostScope nested;
    const CostScope scope("work", 5000, 100, DType::kFloat32);
  });
  EXPECT_EQ(seen.ns, 0);
  EXPECT_EQ(observe([&] {
              { const NoCostScope pause; }
              at::add(x, x);
            }).ns,
            1200);
}

// Operators inside long scopes are not reported; after the scope they must be reported again.
TEST(OpObserver, OpsBehindALongScopeCount) {
  const at::Tensor a = ones({100});
  const auto many = [&] {
    for (int i = 0; i < 5; ++i) a.neg();
  };
  const auto twice = [&] {
    {
      const CostScope scope("work", 5000, 100, DType::kFloat32);
      many();
      {
        const NoCostScope pause;
        many();
      }
      many();
    }
    a.neg();
    const NoCostScope pause;
    many();
    { const CostScope nothing("work", 5000, 100, DType::kFloat32); }
    many();
  };
  const Observed seen = observe([&] {
    twice();
    twice();
    a.neg();
  });
  EXPECT_EQ(seen.ops, 5);
  EXPECT_EQ(seen.ns, 2 * (5000 + 800) + 800);
}

int64_t g_heard = 0;

TEST(OpObserver, OthersAreToldOfOpsInsideItsScopes) {
  const at::CallbackHandle other = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++g_heard;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  const at::Tensor a = ones({100});
  g_heard = 0;
  const Observed seen = observe([&] {
    const NoCostScope pause;
    for (int i = 0; i < 5; ++i) a.neg();
  });
  at::removeCallback(other);
  EXPECT_EQ(g_heard, 5);
  EXPECT_EQ(seen.ops, 0);
}

TEST(OpObserver, ScopesWithoutAnObserverDoNothing) {
  const CostScope scope("work", 1, 1, DType::kFloat32);
  const NoCostScope pause;
  EXPECT_EQ(at::add(ones({2}), 1).sum().item<float>(), 4);
}

TEST(OpObserver, ShapesOnlyCostTheSame) {
  const auto linear = [](at::Device device) {
    const auto options = at::dtype(at::kFloat).device(device);
    const at::Tensor x = at::empty({32, 16}, options).requires_grad_(true);
    const at::Tensor w = at::empty({64, 16}, options).requires_grad_(true);
    return observe([&] { at::linear(x, w).sum().backward(); }).ns;
  };
  EXPECT_EQ(linear(at::kMeta), linear(at::kCPU));
}

TEST(OpObserver, TheSameWorkTakesTheSameNanoseconds) {
  const auto step = [] {
    const at::Tensor x = at::rand({16, 32}), w = at::rand({64, 32}).requires_grad_(true);
    const at::Tensor loss = at::cross_entropy_loss(at::linear(x, w), at::zeros({16}, at::kLong));
    loss.backward();
  };
  const Observed first = observe(step, toy_compute(900)), second = observe(step, toy_compute(900));
  EXPECT_GT(first.ns, 0);
  EXPECT_EQ(first.ns, second.ns);
  EXPECT_EQ(first.ops, second.ops);
}

}  // namespace
}  // namespace ranklab
