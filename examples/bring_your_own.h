// A user's own model, dataset and optimizer; the engine adds data parallelism, clipping, virtual time, traces.
#pragma once

#include <map>
#include <optional>

#include "core/model/output_head.h"
#include "core/parallel/tensor/vocab_embedding.h"
#include "core/runtime/provide.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab::examples {

// Predicts the next token from the last one: an embedding, residual MLPs, a head. Its linear layers are split over tp;
// it does not deal with pipeline stages, ZeRO, recomputation, precision or checkpoints.
class Counter final : public LayerStack {
 public:
  Counter(const StackContext& stack, const RunPlan& plan)
      : config_(plan.config.model), model_(stack.registry), tp_(stack.tp) {}

  void make_embedding() override { embedding_.emplace(model_, embedding_spec(config_), tp_); }
  void make_layer(int64_t layer) override {
    layers_.try_emplace(layer, model_["layers"][std::to_string(layer)], config_, tp_);
  }
  void make_head() override {
    norm_.emplace(model_, norm_spec(config_, "norm", ModulePart::kFinalNorm), config_, tp_.sharded_sequence());
    head_.emplace(model_, config_, nullptr, tp_);
  }

  ResidualStream embed(const ForwardContext& context) override {
    return {(*embedding_)(context.batch.tokens_BS.t(), context.tokens)};
  }
  void run_layer(int64_t layer, ResidualStream& stream, const ForwardContext& context) override {
    const Mlp& mlp = layers_.at(layer);
    const NormOutput x = mlp.norm(stream.x_SBH, stream.branch_SBH);
    stream = {x.sum, mlp.down(activate(gelu_tanh, mlp.up(x, context.tokens)), context.tokens)};
  }
  at::Tensor predict(const ResidualStream& stream, const ForwardContext& context) override {
    return head_->predict((*norm_)(stream.x_SBH, stream.branch_SBH), context);
  }

 private:
  struct Mlp {
    Norm norm;
    ColumnParallelLinear up;
    RowParallelLinear down;

    Mlp(const ModuleScope& scope, const ModelConfig& c, const TensorParallel& tp)
        : norm(scope, norm_spec(c, "norm", ModulePart::kMlpNorm), c, tp.sharded_sequence()),
          up(scope,
             {.name = "up", .shape = {2 * c.hidden_size, c.hidden_size}, .split = ModuleSplit::kColumn, .bias = true},
             tp),
          down(scope,
               {.name = "down", .shape = {c.hidden_size, 2 * c.hidden_size}, .split = ModuleSplit::kRow, .bias = true},
               tp) {}
  };

  ModelConfig config_;
  ModuleScope model_;
  TensorParallel tp_;
  std::optional<VocabParallelEmbedding> embedding_;
  std::map<int64_t, Mlp> layers_;  // the layers of this rank
  std::optional<Norm> norm_;
  std::optional<OutputHead> head_;
};

// Sequence i of the global batch counts upwards from its own starting number.
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

// The parts of a run, with these three in place of the defaults.
inline RuntimeComponents own_components(RuntimeComponents parts) {
  parts.model_provider = provide_layers(
      [](const StackContext& stack, const RunPlan& plan) { return std::make_unique<Counter>(stack, plan); });
  parts.data_provider = provide_data("counting", counting);
  parts.optimizer_runtime = provide_optimizer([](std::vector<Parameter*> parameters, const RunPlan&) {
    return std::make_unique<SignSgd>(std::move(parameters));
  });
  return parts;
}

}  // namespace ranklab::examples
