#include "core/parity/rank_recorder.h"

#include <algorithm>
#include <utility>

#include "core/config/sharding.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/parity/epsilon.h"
#include "core/parity/rounding/one_unit.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/unseen_scope.h"

namespace ranklab {
namespace {

// Sits between the rank's own optimizer and the engine.
class RecordedOptimizer final : public WrappedOptimizer {
 public:
  RecordedOptimizer(std::unique_ptr<RankOptimizer> optimizer, ParityRecorder& recorder)
      : WrappedOptimizer(std::move(optimizer)), recorder_(recorder) {
    if (UpdateWatches* updates = inner().update_watches()) updates->set(recorder_, true);
  }
  void begin_step(int64_t num_microbatches) override {
    recorder_.begin_step();
    inner().begin_step(num_microbatches);
  }
  double finish_step(double lr) override {
    const double norm = inner().finish_step(lr);
    recorder_.end_step();
    return norm;
  }

 private:
  ParityRecorder& recorder_;
};

}  // namespace

void ParityRecorder::keep(TensorPieces& into, TensorKey key, GlobalSlice slice, const at::Tensor& value) {
  if (!wants(key)) return;
  const at::Tensor flat = value.detach().reshape({-1});
  into[std::move(key)].push_back({.rank = rank_,
                                  .order = order_++,
                                  .slice = std::move(slice),
                                  .value = flat.to(at::kCPU, flat.scalar_type(), false, true).contiguous()});
}

void ParityRecorder::keep_activation(ParityPhase phase, const std::string& path, const char* kind,
                                     const at::Tensor& tensor) {
  if (step_ < 0 || !tensor.defined()) return;
  TensorKey key{step_, phase, path, kind};
  if (!wants(key)) return;
  const UnseenScope unseen;
  // A router sees its tokens in one dim, with the tokens of a position next to each other.
  const bool rows = tensor.dim() == 2 && path.ends_with(".router");
  if (tensor.dim() != 3 && !rows) return;
  const int64_t sequences = rows ? plan_.micro_batch_size : tensor.size(1);
  const int64_t positions = rows ? tensor.size(0) / sequences : tensor.size(0);
  const int microbatch = ctx_->tracer().microbatch();
  const int loaded = sum_order_.reversed ? static_cast<int>(plan_.microbatches_of(step_)) - 1 - microbatch : microbatch;
  const auto part = activation_slice(plan_, *ctx_, step_, loaded, positions, sequences);
  if (!part) return;
  GlobalSlice slice =
      activation_global_slice(*part, plan_.config.model.seq_length, plan_.sequences_of(step_), {tensor.size(-1)});
  // Numbers the uses of a module that runs several times on the same tokens (an embedding that prediction modules
  // share).
  for (int use = 2; has(key, slice); ++use) key.kind = std::string(kind) + " of use " + std::to_string(use);
  keep(tensors_, key, std::move(slice), tensor);
}

bool ParityRecorder::has(const TensorKey& key, const GlobalSlice& slice) const {
  const auto found = tensors_.find(key);
  return found != tensors_.end() &&
         std::ranges::any_of(found->second, [&](const TensorPiece& piece) { return piece.slice == slice; });
}

void ParityRecorder::before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) {
  if (pass == ModulePass::kForward && !reads_residual_stream(path))
    keep_activation(ParityPhase::kForward, path, "input", input);
}
void ParityRecorder::residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) {
  if (pass == ModulePass::kForward) keep_activation(ParityPhase::kForward, path, "residual stream", sum);
}
void ParityRecorder::after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) {
  if (pass == ModulePass::kForward) keep_activation(ParityPhase::kForward, path, "output", output);
}
void ParityRecorder::before_backward(const std::string& path, const at::Tensor& grad_output) {
  keep_activation(ParityPhase::kBackward, path, "grad_output", grad_output);
}
void ParityRecorder::after_backward(const std::string& path, const at::Tensor& grad_input) {
  keep_activation(ParityPhase::kBackward, path, "grad_input", grad_input);
}

// A step's batches are loaded before its begin_step().
void ParityRecorder::loaded(const Batch& batch, int64_t) {
  const int64_t step = ctx_->tracer().step();
  const UnseenScope unseen;
  for (const auto& [what, tensor] : {std::pair{"tokens", batch.tokens_BS}, std::pair{"targets", batch.targets_BS}}) {
    if (!tensor.defined()) continue;
    GlobalSlice slice = whole_slice({plan_.sequences_of(step), tensor.size(1)});
    for (int64_t i = 0; i < tensor.size(0); ++i) slice.positions[0].push_back(batch.first_sample + i);
    const TensorKey key{step, ParityPhase::kBatch, "batch", what};
    // A rank's first and last stage load the same batch.
    if (has(key, slice)) continue;
    keep(tensors_, key, std::move(slice), tensor);
  }
}

void ParityRecorder::start(RankContext& ctx, CausalLm& model, RankOptimizer* optimizer) {
  ctx_ = &ctx;
  model_ = &model;
  optimizer_ = optimizer;
  records_ = plan_.gradient_groups() == 1 || ctx.coordinate(Axis::kDpReplica) == 0;
}

void ParityRecorder::perturb_weights() {
  const UnseenScope unseen;
  optimizer_->settle_parameters();
  for (const OwnedState& state : optimizer_->owned_state())
    move_by_one_unit(state.weight, parameter_slice(*state.parameter, state.begin, state.end),
                     epsilon_of(state.parameter->data.scalar_type()),
                     RandomStream(perturb_, RandomPurpose::kTest, state.parameter->name));
  optimizer_->restored(optimizer_->updates(), optimizer_->skipped());
}

void ParityRecorder::begin_step() {
  step_ = ctx_->tracer().step();
  if (std::exchange(perturbs_, false)) perturb_weights();
  order_ = 0;
  if (sum_order_.split) split_.emplace();
  const UnseenScope unseen;
  for (const Parameter* parameter : model_->registry().parameters())
    if (is_whole(*parameter))
      keep(ParityPhase::kWeights, parameter->name, "weight", parameter_slice(*parameter), parameter->data);
  keep_shards_of_weights();
  for (const auto& [name, buffer] : model_->buffers())
    keep(ParityPhase::kWeights, name, "buffer", whole_slice(buffer.sizes().vec()), buffer);
}

// With --overlap-param-gather they are still on their way when a step begins.
bool ParityRecorder::is_whole(const Parameter& parameter) const {
  return !is_freed(parameter.data) && !overlaps_param_gather(plan_);
}

// Where no rank has a whole parameter as a step begins, its shard, in the type in which it is gathered.
void ParityRecorder::keep_shards_of_weights() {
  if (optimizer_ == nullptr) return;  // a layer that is computed alone has none
  for (const OwnedState& state : optimizer_->owned_state()) {
    const Parameter& parameter = *state.parameter;
    if (is_whole(parameter) || !wants({step_, ParityPhase::kWeights, parameter.name, "weight"})) continue;
    keep(ParityPhase::kWeights, parameter.name, "weight", parameter_slice(parameter, state.begin, state.end),
         state.weight.to(parameter.data.scalar_type()));
  }
}

void ParityRecorder::before_reduction(const Parameter& parameter, const at::Tensor& sum) {
  if (step_ < 0 || wanted_) return;
  const UnseenScope unseen;
  const TensorKey key{step_, ParityPhase::kBackward, parameter.name, "grad"};
  if (const auto earlier = local_grads_.find(key); earlier != local_grads_.end()) {
    at::Tensor& value = earlier->second.front().value;  // the sum over the microbatches that were reduced before
    value.add_(sum.detach().reshape({-1}).to(value.device()));
    return;
  }
  keep(local_grads_, key, parameter_slice(parameter), sum);
}

void ParityRecorder::before_update(const UpdateView& update) {
  if (step_ < 0) return;
  const UnseenScope unseen;
  std::map<std::string, at::Tensor> grads;
  for (const Parameter* piece : update.pieces) grads[piece->name] = piece->data.grad();
  for (const OwnedState& state : optimizer_->owned_state()) {
    const at::Tensor& grad = grads.at(state.parameter->name);
    keep(ParityPhase::kBackward, state.parameter->name, "grad",
         parameter_slice(*state.parameter, state.begin, state.end),
         update.unscale == 1 ? grad : grad.to(c10::promoteTypes(grad.scalar_type(), at::kFloat)) * update.unscale);
  }
  keep(ParityPhase::kNorm, "grad_norm", "clip factor", whole_slice({1}),
       at::tensor({update.factor / update.unscale}, at::kDouble));
}

void ParityRecorder::end_step() {
  split_.reset();
  const UnseenScope unseen;
  if (LossScaler* const scaler = optimizer_->loss_scaler())
    keep(ParityPhase::kNorm, "loss_scale", "", whole_slice({1}), at::tensor({scaler->scale()}, at::kDouble));
  for (const OwnedState& state : optimizer_->owned_state()) {
    const GlobalSlice slice = parameter_slice(*state.parameter, state.begin, state.end);
    for (const auto& [kind, moment] : state.moments)
      keep(ParityPhase::kUpdate, state.parameter->name, kind, slice, moment);
    keep(ParityPhase::kUpdate, state.parameter->name, "updated weight", slice, state.weight);
  }
}

void ParityRecorder::hand_over(ParityRecord& record) {
  for (auto* from : {&tensors_, &local_grads_}) {
    TensorPieces& into = from == &tensors_ ? record.tensors : record.local_grads;
    for (auto& [key, pieces] : *from) {
      std::vector<TensorPiece>& all = into[key];
      all.insert(all.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
    }
    from->clear();
  }
}

ParityRecorders::ParityRecorders(const RunPlan& plan, uint64_t perturb, SumOrder order) {
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank)
    ranks_.push_back(std::make_unique<ParityRecorder>(plan, rank, perturb, order));
}

void ParityRecorders::hand_over(ParityRecord& record) {
  for (const auto& rank : ranks_) rank->hand_over(record);
}

std::shared_ptr<OptimizerRuntime> recorded_optimizer(std::shared_ptr<OptimizerRuntime> inner,
                                                     ParityRecorders& recorders) {
  return wrap_optimizers(std::move(inner), [&recorders](const OptimizerRuntime& own, CausalLm& model, RankContext& ctx,
                                                        const RunPlan& plan) {
    ParityRecorder& recorder = recorders.of(ctx.global_rank());
    auto optimizer = std::make_unique<RecordedOptimizer>(own.initialize(model, ctx, plan), recorder);
    recorder.start(ctx, model, optimizer.get());
    model.registry().hooks().set(recorder, true);
    return optimizer;
  });
}

}  // namespace ranklab
