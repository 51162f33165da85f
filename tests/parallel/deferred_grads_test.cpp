// Weight gradients that are computed later: the same as at once, and one arrival for a weight that is used several
// times (the head of multi-token prediction), which a gradient reducer insists on.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>

#include "core/base/error.h"
#include "core/nn/activation.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/tensor/linear.h"
#include "core/parallel/tensor/replicated_linear.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;

struct Layers {
  explicit Layers(RankContext& context)
      : tp{&context.comm(Axis::kTp), false},
        registry(1, at::kDouble, at::kCPU),
        down(ModuleScope(registry), {.name = "down", .shape = {3, 4}, .init = {InitKind::kNormal, 1.0}}, tp),
        head(registry.create("head", replicated({5, 3}), {InitKind::kNormal, 1.0}, true)) {}

  // The head three times, its products in backward's order.
  at::Tensor loss(const at::Tensor& x) const {
    const at::Tensor y = down(x, {});
    at::Tensor sum = at::zeros({}, x.options().requires_grad(false));
    for (const double factor : {1.0, 0.5, -0.3}) {
      const at::Tensor logits = column_parallel_linear(at::sin(y * factor), head.data, {}, tp);
      sum = sum + (logits * logits).sum();
    }
    return sum;
  }

  TensorParallel tp;
  ParameterRegistry registry;
  ReplicatedLinear down;
  Parameter& head;
};

// As the gradient reducer listens: a backward without a gradient of the leaf calls, too.
struct Count : torch::autograd::PostAccumulateGradHook {
  explicit Count(int& arrivals) : arrivals_(arrivals) {}
  void operator()(const at::Tensor& leaf) override { arrivals_ += leaf.grad().defined() ? 1 : 0; }
  int& arrivals_;
};

TEST(HandOverGrad, StoresTheTensorItselfTellsTheHookAndRefusesASecond) {
  const at::Tensor leaf = wave({3}, 0.1).requires_grad_(true), grad = wave({3}, 0.2), other_reference = grad;
  int arrivals = 0;
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<Count>(arrivals));
  hand_over_grad(leaf, grad);
  EXPECT_EQ(leaf.grad().const_data_ptr(), other_reference.const_data_ptr()) << "no copy";
  EXPECT_EQ(arrivals, 1);
  try {
    hand_over_grad(leaf, grad);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.text().got, "a second one");
    EXPECT_EQ(error.text().want, "one in each pass");
  }
  EXPECT_EQ(arrivals, 1);
}

TEST(DeferredGrads, AreTheSameAndArriveOnce) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    const Layers at_once(context), later(context);
    const at::Tensor x = wave({2, 3, 4}, 0.1).requires_grad_(true), x_later = wave({2, 3, 4}, 0.1).requires_grad_(true);
    torch::autograd::backward({at_once.loss(x)}, {});

    int arrivals = 0;
    torch::autograd::impl::set_post_acc_grad_hooks(later.head.data, std::make_unique<Count>(arrivals));
    WeightGradQueue queue;
    {
      const DeferWeightGrads defer(queue);
      torch::autograd::backward({later.loss(x_later)}, {});
    }
    EXPECT_TRUE(at::equal(x_later.grad(), x.grad()));
    EXPECT_FALSE(later.head.data.grad().defined());
    EXPECT_FALSE(later.registry.find("down.weight")->data.grad().defined());
    EXPECT_FALSE(queue.empty());
    queue.run();
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(at::equal(later.head.data.grad(), at_once.head.data.grad())) << "the order of autograd's sum";
    EXPECT_TRUE(
        at::equal(later.registry.find("down.weight")->data.grad(), at_once.registry.find("down.weight")->data.grad()));
    EXPECT_EQ(arrivals, 1);
    torch::autograd::impl::set_post_acc_grad_hooks(later.head.data, nullptr);
  });
}

// One product makes the gradients of two leaves, another that of one of them: each leaf gets one sum, in the order of
// the products.
TEST(WeightGradQueue, SumsTheGradientsOfEachLeafOfSeveral) {
  const at::Tensor a = wave({3}, 0.1).requires_grad_(true), b = wave({2}, 0.2).requires_grad_(true);
  int arrivals_of_a = 0, arrivals_of_b = 0;
  torch::autograd::impl::set_post_acc_grad_hooks(a, std::make_unique<Count>(arrivals_of_a));
  torch::autograd::impl::set_post_acc_grad_hooks(b, std::make_unique<Count>(arrivals_of_b));
  WeightGradQueue queue;
  std::vector<int> order;
  const std::vector<at::Tensor> of_a = {wave({3}, 0.3), wave({3}, 0.4)};
  queue.push(std::vector{a, b}, [&] {
    order.push_back(1);
    return std::vector{of_a[0].clone(), wave({2}, 0.5)};
  });
  queue.push([&] { order.push_back(2); });
  queue.push(a, [&] {
    order.push_back(3);
    EXPECT_FALSE(a.grad().defined()) << "one accumulation, of the sum";
    return of_a[1].clone();
  });
  queue.run();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_TRUE(at::equal(a.grad(), of_a[0] + of_a[1]));
  EXPECT_TRUE(at::equal(b.grad(), wave({2}, 0.5)));
  EXPECT_EQ(arrivals_of_a, 1);
  EXPECT_EQ(arrivals_of_b, 1);
  for (const at::Tensor& leaf : {a, b}) torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr);
}

// A row layer of swiglu(gate_up), whose backward makes the activation once for both gradients.
struct RowOfSwiglu {
  at::Tensor y, grad_gate_up, grad_weight, grad_bias;
};

template <typename Layer>
RowOfSwiglu row_of(const Layer& layer, at::ScalarType type, bool deferred) {
  const auto leaf = [&](at::IntArrayRef sizes, double phase) {
    return wave(sizes, phase).to(type).requires_grad_(true);
  };
  const at::Tensor gate_up = leaf({3, 4, 16}, 0.1), weight = leaf({6, 8}, 0.4), bias = leaf({6}, 0.7);
  RowOfSwiglu result{layer(gate_up, weight, bias), {}, {}, {}};
  WeightGradQueue queue;
  {
    std::optional<DeferWeightGrads> defer;
    if (deferred) defer.emplace(queue);
    torch::autograd::backward({(result.y * wave({3, 4, 6}, 2.0).to(type)).sum()}, {});
  }
  EXPECT_EQ(weight.grad().defined(), !deferred);
  queue.run();
  result.grad_gate_up = gate_up.grad(), result.grad_weight = weight.grad(), result.grad_bias = bias.grad();
  return result;
}

TEST(RowOfSwiglu, HasTheBitsOfTheLayerOnTheActivation) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    const TensorParallel tp{&context.comm(Axis::kTp), false};
    const auto apart = [&](const at::Tensor& gate_up, const at::Tensor& weight, const at::Tensor& bias) {
      return row_parallel_linear(activate(swiglu, gate_up), weight, bias, tp);
    };
    const auto together = [&](const at::Tensor& gate_up, const at::Tensor& weight, const at::Tensor& bias) {
      return row_parallel_linear_of_swiglu(gate_up, weight, bias, tp);
    };
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      for (const bool deferred : {false, true}) {
        const RowOfSwiglu want = row_of(apart, type, deferred), got = row_of(together, type, deferred);
        EXPECT_TRUE(at::equal(got.y, want.y)) << type;
        EXPECT_TRUE(at::equal(got.grad_gate_up, want.grad_gate_up)) << type;
        EXPECT_TRUE(at::equal(got.grad_weight, want.grad_weight)) << type;
        EXPECT_TRUE(at::equal(got.grad_bias, want.grad_bias)) << type;
      }
    }
  });
}

}  // namespace
}  // namespace ranklab
