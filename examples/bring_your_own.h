// A model, a dataset and an optimizer of one's own; the engine adds data parallelism, clipping, virtual time, traces.
#pragma once

#include "core/runtime/provide.h"
#include "core/sim/aten.h"

namespace ranklab::examples {

// The next token from the last one: embedding, GELU, projection.
class Counter final : public CausalLm {
 public:
  Counter(RankContext& ctx, const RunPlan& plan)
      : registry_(plan.config.seed, at::kDouble, ctx.device()),
        in_(registry_.create("in", replicated({plan.config.model.vocab_size, 32}), {}, true)),
        out_(registry_.create("out", replicated({plan.config.model.vocab_size, 32}), {}, true)) {}
  ParameterRegistry& registry() override { return registry_; }
  void set_training(bool) override {}  // no dropout
  at::Tensor logits(const Batch& batch) override {
    return at::linear(at::gelu(at::embedding(in_.data, batch.tokens_BS)), out_.data);
  }
  at::Tensor loss_sum(const Batch& batch) override {
    return at::cross_entropy_loss(logits(batch).flatten(0, 1), batch.targets_BS.flatten(), {}, at::Reduction::Sum);
  }

 private:
  ParameterRegistry registry_;
  Parameter &in_, &out_;
};

// Sequence i of the global batch counts upwards from a number of its own.
inline Batch counting(const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t microbatch) {
  const int64_t first = (ctx.coordinate(Axis::kDp) * plan.num_microbatches + microbatch) * plan.micro_batch_size;
  const at::Tensor sequence = at::arange(first, first + plan.micro_batch_size, at::kLong).unsqueeze(1);
  const at::Tensor position = at::arange(plan.config.model.seq_length + 1);
  const at::Tensor numbers = (sequence * 29 + step * 7 + position) % plan.config.model.vocab_size;
  return {.tokens_BS = numbers.slice(1, 0, -1), .targets_BS = numbers.slice(1, 1), .first_sample = first, .step = step};
}

// Moves every weight by lr against the sign of its gradient (signSGD: Bernstein et al. 2018, arXiv 1802.04434).
class SignSgd final : public Optimizer {
 public:
  explicit SignSgd(std::vector<Parameter*> parameters) : parameters_(std::move(parameters)) {}
  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (Parameter* p : parameters_) p->data.sub_(p->data.grad().sign(), lr);
  }
  void zero_grad() override {
    for (Parameter* p : parameters_) p->data.mutable_grad().reset();
  }

 private:
  std::vector<Parameter*> parameters_;
};

// The parts of a run with these three in place of its own.
inline RuntimeComponents own_components(RuntimeComponents parts) {
  parts.model_provider =
      provide_model([](RankContext& ctx, const RunPlan& plan) { return std::make_unique<Counter>(ctx, plan); });
  parts.data_provider = provide_data("counting", counting);
  parts.optimizer_runtime = provide_optimizer([](std::vector<Parameter*> parameters, const RunPlan&) {
    return std::make_unique<SignSgd>(std::move(parameters));
  });
  return parts;
}

}  // namespace ranklab::examples
