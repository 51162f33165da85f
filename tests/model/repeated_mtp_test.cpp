// One module of multi-token prediction that is applied several times: against the same model in plain ATen operators,
// and against as many modules with equal weights, whose gradients are added.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/model/transformer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::relative_error;
using Weights = std::map<std::string, at::Tensor>;

constexpr int64_t kDepths = 3;
constexpr double kTolerance = 1e-10;

ModelConfig repeating() {
  return {.num_layers = 1,
          .hidden_size = 6,
          .ffn_hidden_size = 5,
          .num_attention_heads = 2,
          .vocab_size = 7,
          .seq_length = 6,
          .position = PositionKind::kNone,
          .norm_epsilon = 1e-6,
          .init_std = 0.4,
          .mtp_num_layers = kDepths,
          .mtp_use_repeated_layer = true,
          .mtp_loss_weight = 0.3};
}

Batch batch_of(const ModelConfig& c) {
  const at::Tensor tokens =
      (at::arange(2 * (c.seq_length + 1), at::kLong) * 5 + 3).remainder(c.vocab_size).view({2, -1});
  return {.tokens_BS = tokens.narrow(1, 0, c.seq_length).contiguous(),
          .targets_BS = tokens.narrow(1, 1, c.seq_length).contiguous()};
}

// --- The model in plain operators. x [B, S, H]. ---
struct Plain {
  const ModelConfig& c;
  const Weights& w;

  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    return x * (x.pow(2).mean(-1, true) + c.norm_epsilon).rsqrt() * w.at(name + ".weight");
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const { return x.matmul(w.at(name + ".weight").t()); }
  at::Tensor embed(const at::Tensor& tokens_BS) const {
    return w.at("embedding.weight").index_select(0, tokens_BS.reshape({-1})).view({2, c.seq_length, c.hidden_size});
  }
  at::Tensor attention(const at::Tensor& x, const std::string& name) const {
    const int64_t heads = c.num_attention_heads, width = c.hidden_size / heads;
    const std::vector<at::Tensor> qkv = linear(x, name + ".qkv").split(c.hidden_size, -1);
    const auto by_head = [&](const at::Tensor& y) { return y.view({2, c.seq_length, heads, width}).transpose(1, 2); };
    const at::Tensor scores = by_head(qkv[0]).matmul(by_head(qkv[1]).transpose(2, 3)) / std::sqrt(width);
    const at::Tensor later = at::ones({c.seq_length, c.seq_length}, at::kBool).triu(1);
    const at::Tensor shares = scores.masked_fill(later, -std::numeric_limits<double>::infinity()).softmax(-1);
    const at::Tensor mixed = shares.matmul(by_head(qkv[2])).transpose(1, 2).reshape({2, c.seq_length, c.hidden_size});
    return linear(mixed, name + ".out");
  }
  at::Tensor block(at::Tensor x, const std::string& name) const {
    x = x + attention(norm(x, name + ".attention_norm"), name + ".attention");
    const std::vector<at::Tensor> halves =
        linear(norm(x, name + ".mlp_norm"), name + ".mlp.gate_up").split(c.ffn_hidden_size, -1);
    return x + linear(halves[0] * halves[0].sigmoid() * halves[1], name + ".mlp.down");
  }
  // Over the positions before the last `left_out`.
  at::Tensor loss_sum(const at::Tensor& state, const at::Tensor& targets_BS, int64_t left_out) const {
    const at::Tensor all = linear(state, "head").log_softmax(-1).gather(-1, targets_BS.unsqueeze(-1)).squeeze(-1);
    return -all.narrow(1, 0, c.seq_length - left_out).sum();
  }
};

// The tokens `by` positions later, 0 behind the end.
at::Tensor later(const at::Tensor& x_BS, int64_t by) {
  return x_BS.roll(-by, 1) * (at::arange(x_BS.size(1)) < x_BS.size(1) - by);
}

TEST(RepeatedMtp, IsOneModuleAppliedSeveralTimes) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    const ModelConfig c = repeating();
    const auto model = make_transformer(c, context, {.dtype = at::kDouble});
    Weights weights;
    for (const Parameter* parameter : model->registry().parameters())
      weights[parameter->name] = parameter->data.detach().clone().requires_grad_();
    EXPECT_FALSE(weights.contains("mtp.1.proj.weight"));
    const Batch batch = batch_of(c);
    const Plain plain{c, weights};
    at::Tensor state = plain.norm(plain.block(plain.embed(batch.tokens_BS), "layers.0"), "final_norm");
    const at::Tensor loss = plain.loss_sum(state, batch.targets_BS, 0);
    at::Tensor further = at::zeros({}, at::kDouble);
    for (int64_t ahead = 1; ahead <= kDepths; ++ahead) {
      const at::Tensor embedded = plain.norm(plain.embed(later(batch.tokens_BS, ahead)), "mtp.0.enorm");
      const at::Tensor read = plain.linear(at::cat({embedded, plain.norm(state, "mtp.0.hnorm")}, -1), "mtp.0.proj");
      state = plain.norm(plain.block(read, "mtp.0.block"), "mtp.0.norm");
      further = further + plain.loss_sum(state, later(batch.targets_BS, ahead), ahead);
    }
    torch::autograd::backward({loss + further * (c.mtp_loss_weight / kDepths)}, {});

    const at::Tensor own = model->loss_sum(batch);
    EXPECT_LT(relative_error(own, loss), kTolerance);
    EXPECT_NEAR(model->take_mtp_loss_sum() / further.item<double>(), 1, kTolerance);
    torch::autograd::backward({own}, {});
    for (const Parameter* parameter : model->registry().parameters())
      EXPECT_LT(relative_error(parameter->data.grad(), weights.at(parameter->name).grad()), kTolerance)
          << parameter->name;
  });
}

// --- Against separate modules. ---
Weights gradients(const ModelConfig& c, RankContext& context, const RecomputePolicy& recompute) {
  const auto model = make_transformer(c, context, {.dtype = at::kDouble, .recompute = recompute});
  ParameterRegistry& all = model->registry();
  for (const Parameter* parameter : all.parameters()) {
    if (!parameter->name.starts_with("mtp.") || parameter->name.starts_with("mtp.0.")) continue;
    const at::NoGradGuard no_grad;
    parameter->data.copy_(all.find("mtp.0" + parameter->name.substr(5))->data);
  }
  torch::autograd::backward({model->loss_sum(batch_of(c))}, {});
  Weights grads;
  for (const Parameter* parameter : all.parameters()) grads[parameter->name] = parameter->data.grad();
  return grads;
}

TEST(RepeatedMtp, AddsTheGradientsOfModulesWithEqualWeights) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    ModelConfig c = repeating();
    c.dropout = 0.2;  // each use draws its own masks
    c.moe = {
        .num_experts = 4, .topk = 2, .ffn_hidden_size = 3, .balancing = LoadBalancing::kAuxLoss, .aux_loss_coeff = 0.1};
    ModelConfig separate = c;
    separate.mtp_use_repeated_layer = false;
    Weights want = gradients(separate, context, {});
    for (int64_t k = 1; k < kDepths; ++k)
      for (const auto& [name, grad] : want)
        if (name.starts_with("mtp." + std::to_string(k))) want["mtp.0" + name.substr(5)].add_(grad);
    RecomputePolicy whole{.granularity = Recompute::kFull}, experts{.granularity = Recompute::kSelective};
    experts.modules = {.core_attn = true, .mlp = true, .moe = true};
    for (const RecomputePolicy& recompute : {RecomputePolicy{}, whole, experts}) {
      const Weights got = gradients(c, context, recompute);
      EXPECT_EQ(got.size(), static_cast<size_t>(std::ranges::count_if(want, [](const auto& one) {
                  return !one.first.starts_with("mtp.1") && !one.first.starts_with("mtp.2");
                })));
      for (const auto& [name, grad] : got) EXPECT_LT(relative_error(grad, want.at(name)), kTolerance) << name;
    }
  });
}

}  // namespace
}  // namespace ranklab
