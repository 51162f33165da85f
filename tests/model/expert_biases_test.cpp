// Experts with biases against at::linear per expert, on one rank and split over etp: outputs and every gradient.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/experts.h"
#include "core/nn/activation.h"
#include "core/parallel/deferred_grads.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;

constexpr int64_t kHidden = 6, kWidth = 4;
const std::vector<int64_t> kCounts = {3, 0, 5};

ModelConfig config_of(ActivationKind activation) {
  ModelConfig c;
  c.hidden_size = kHidden;
  c.activation = activation;
  c.add_bias = true;
  c.moe = {.num_experts = static_cast<int64_t>(kCounts.size()), .topk = 1, .ffn_hidden_size = kWidth};
  return c;
}

at::Tensor rows() { return wave({8, kHidden}, 0.1).set_requires_grad(true); }
at::Tensor grad_out() { return wave({8, kHidden}, 2.0); }

at::Tensor activated(const at::Tensor& x, ActivationKind activation) {
  return activation == ActivationKind::kSwiGlu ? swiglu_reference(x) : at::gelu(x);
}

// Values of a whole parameter, which do not depend on the layout.
at::Tensor whole(const Parameter& parameter) {
  double phase = 0;
  for (const char letter : parameter.name) phase = phase * 1.3 + letter;
  return wave(parameter.partition.global_shape, phase);
}

at::Tensor own_part(const at::Tensor& full, const Partition& partition) {
  if (partition.replicated()) return full;
  std::vector<at::Tensor> parts;
  for (const auto& [begin, end] : partition.ranges) parts.push_back(full.narrow(partition.dim, begin, end - begin));
  return at::cat(parts, partition.dim);
}

// The gradients of the rows and of whole parameters by name, and the output.
struct Reference {
  at::Tensor out, grad_rows;
  std::map<std::string, at::Tensor> grads;
};

Reference reference_of(const ParameterRegistry& registry, ActivationKind activation) {
  std::map<std::string, at::Tensor> leaves;
  for (const Parameter* p : registry.parameters()) leaves[p->name] = whole(*p).set_requires_grad(true);
  const at::Tensor x = rows();
  std::vector<at::Tensor> outputs;
  int64_t begin = 0;
  for (size_t expert = 0; expert < kCounts.size(); ++expert) {
    const std::string scope = "experts." + std::to_string(expert) + ".";
    const std::string up = scope + (activation == ActivationKind::kSwiGlu ? "gate_up" : "up"), down = scope + "down";
    const at::Tensor inner =
        at::linear(x.narrow(0, begin, kCounts[expert]), leaves.at(up + ".weight"), leaves.at(up + ".bias"));
    outputs.push_back(at::linear(activated(inner, activation), leaves.at(down + ".weight"), leaves.at(down + ".bias")));
    begin += kCounts[expert];
  }
  Reference reference{at::cat(outputs), {}, {}};
  torch::autograd::backward({(reference.out * grad_out()).sum()}, {});
  reference.grad_rows = x.grad();
  for (const auto& [name, leaf] : leaves) reference.grads[name] = leaf.grad();
  return reference;
}

void expect_near(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  EXPECT_LT((got - want).abs().max().item<double>(), 1e-12) << what;
}

void check(const ParallelDims& dims, ActivationKind activation, bool deferred) {
  SCOPED_TRACE("etp " + std::to_string(dims.etp) + (deferred ? ", deferred" : ""));
  run_ranks(dims, [&](RankContext& context) {
    const ModelConfig config = config_of(activation);
    ParameterRegistry registry(1, at::kDouble, at::kCPU);
    Communicator& etp = context.comm(Axis::kEtp);
    const Experts experts(ModuleScope(registry, "experts"), moe_spec(config).expert, config, context.comm(Axis::kEp),
                          etp);
    for (Parameter* p : registry.parameters()) p->data.set_data(own_part(whole(*p), p->partition).contiguous());
    const Reference want = reference_of(registry, activation);
    const at::Tensor x = rows();
    const at::Tensor out = experts(x, kCounts, {});
    expect_near(etp.all_reduce(out.detach().clone()), want.out, "output");
    WeightGradQueue queue;
    {
      std::optional<DeferWeightGrads> defer;
      if (deferred) defer.emplace(queue);
      torch::autograd::backward({(out * grad_out()).sum()}, {});
    }
    queue.run();
    expect_near(etp.all_reduce(x.grad()), want.grad_rows, "gradient of the rows");
    for (const Parameter* p : registry.parameters()) {
      EXPECT_TRUE(p->is_expert) << p->name;
      expect_near(p->data.grad(), own_part(want.grads.at(p->name), p->partition), p->name);
    }
  });
}

TEST(ExpertBiases, EqualALinearPerExpertAlsoSplitAndDeferred) {
  for (const ActivationKind activation : {ActivationKind::kSwiGlu, ActivationKind::kGeluErf})
    for (const ParallelDims& dims : {ParallelDims{}, ParallelDims{.world = 2, .etp = 2}})
      for (const bool deferred : {false, true}) check(dims, activation, deferred);
}

}  // namespace
}  // namespace ranklab
