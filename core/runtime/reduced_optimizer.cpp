// Accumulates gradients over microbatches, reduces them in buckets over dp (experts' over edp) and over the pipeline
// ranks that share a parameter, clips them, and calls an Optimizer's update. With a ZeRO stage the reduction, the norm
// and the update cover this rank's shards, and the other ranks' updated shards are gathered, at once or during the next
// forward. Under a loss scale, gradients are unscaled together with clipping; 16-bit gradients when the update widens
// them.
#include <limits>

#include "core/base/injected_bug.h"
#include "core/comm/event_now.h"
#include "core/config/diloco/diloco_choice.h"
#include "core/config/loss_scale_choice.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/live/stepper_state.h"
#include "core/model/max_logit_book.h"
#include "core/nn/initial_values.h"
#include "core/nn/scalar_type.h"
#include "core/optim/grad_clip.h"
#include "core/parallel/data/grad_reducer.h"
#include "core/parallel/tensor/shared_grads.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/outer_optimizer.h"
#include "core/runtime/provide.h"
#include "core/runtime/qk_clip_pieces.h"
#include "core/runtime/rank_matrices.h"
#include "core/runtime/record/trace_span.h"
#include "core/runtime/zero_counter.h"
#include "core/spec/head_rows.h"
#include "core/trace/zero_event.h"

namespace ranklab {
namespace {

class ReducedOptimizer : public RankOptimizer {
 public:
  ReducedOptimizer(CausalLm& model, RankContext& ctx, const RunPlan& plan, const MakeOptimizer& make)
      : ctx_(ctx),
        stage_(plan.zero_stage),
        types_(state_types(plan)),
        parameters_(taken_from(model, plan)),
        clip_grad_(plan.config.clip_grad),
        trains_alone_(plan.gradient_groups() > 1),
        dense_(sharing(injected(InjectedBug::kDenseOverEdp) ? Axis::kEdp : gradient_axis(plan), Axis::kDpShard,
                       Axis::kDpReplica)),
        experts_(sharing(expert_gradient_axis(plan), Axis::kEdpShard, Axis::kEdpReplica)),
        reducer_(of_kind(parameters_, false), ctx.comm(dense_.axis),
                 ctx.size(Axis::kTp) > 1 ? &ctx.comm(Axis::kTp) : nullptr, reducer_options(plan, dense_)),
        expert_reducer_(of_kind(parameters_, true), ctx.comm(experts_.axis), nullptr, reducer_options(plan, experts_)),
        units_(shard_model(model, plan)),
        gathers_(overlapped_gathers(model, plan)),
        owned_(owned()),
        shared_(owned_, ctx.comm(Axis::kPp)),
        optimizer_(make(owned_, plan)),
        scaler_(make_scaler(plan)),
        microbatch_samples_(plan.micro_batch_size * plan.dp()),
        num_chains_(plan.schedule.num_chains()),
        max_logits_(model.max_logits()) {
    if (matrix_buckets(plan) != MatrixBuckets::kMixed) {
      matrices_ = std::make_unique<RankMatrices>(plan, ctx, reducer_, dense_.axis, expert_reducer_, experts_.axis);
      optimizer_->map_matrices_with(
          [this](const auto& pieces, auto& values, const MatrixMap& map) { matrices_->map(pieces, values, map); });
    }
    if (plan.config.qk_clip) make_qk_clip(plan);
    const std::vector<int> numbers = plan.schedule.stages_of(ctx.coordinate(Axis::kPp));
    for (int stage = 0; stage < model.num_stages(); ++stage) {
      const int chain = numbers.at(static_cast<size_t>(stage)) / plan.schedule.chain_length;
      stages_.push_back({of_kind(model.stage_parameters(stage), false), 0, chain});
      expert_stages_.push_back({of_kind(model.stage_parameters(stage), true), 0, chain});
    }
  }

  void begin_step(int64_t num_microbatches) override {
    for (auto* stages : {&stages_, &expert_stages_}) {
      for (GradStage& stage : *stages) stage.num_microbatches = static_cast<int>(num_microbatches) / num_chains_;
    }
    step_samples_ = num_microbatches * microbatch_samples_;
    note_buckets();
    counts_ = true;
    counter_.clear();
    reducer_.begin_step(stages_);
    expert_reducer_.begin_step(expert_stages_);
  }
  void set_weight_decay(double weight_decay) override { optimizer_->set_weight_decay(weight_decay); }
  void begin_pass(const GradPass& pass) override {
    reducer_.begin_pass(pass);
    expert_reducer_.begin_pass(pass);
  }
  void end_pass() override {
    reducer_.end_pass();
    expert_reducer_.end_pass();
  }
  std::vector<OwnedState> owned_state() override {
    std::vector<OwnedState> result;
    for (const OptimizerState& state : optimizer_->states()) {
      const auto flat = [](const at::Tensor& tensor) { return tensor.detach().view({-1}); };
      const auto [whole, begin] = origin_of(state.parameter);
      OwnedState owned{.parameter = whole,
                       .begin = begin,
                       .end = begin + state.weight.numel(),
                       .weight = flat(state.weight),
                       .moments = {}};
      for (const auto& [name, moment] : state.moments) owned.moments.emplace_back(name, flat(moment));
      result.push_back(std::move(owned));
    }
    return result;
  }
  std::vector<GradBucket> grad_buckets() const override {
    std::vector<GradBucket> result = reducer_.buckets(), of_experts = expert_reducer_.buckets();
    if (matrices_) matrices_->note_work(result, of_experts);
    for (GradBucket& bucket : of_experts) result.push_back(std::move(bucket));
    return result;
  }
  int64_t updates() const override { return optimizer_->updates(); }
  SkippedSteps skipped() const override { return skipped_; }
  void restored(int64_t updates, const SkippedSteps& skipped) override {
    skipped_ = skipped;
    optimizer_->restored(updates);
    gather_parameters();
    settle_parameters();
  }
  void settle_parameters() override {
    if (gathers_) gathers_->settle();
  }

  ZeroCounters zero_counters() const override { return counter_.counters(); }
  UpdateWatches* update_watches() override { return &watches_; }

  LossScaler* loss_scaler() override { return scaler_ ? &*scaler_ : nullptr; }

  double finish_step(double lr) override {
    settle_parameters();  // of units that no pass of this step used
    {
      const TraceSpan phase(ctx_, EventKind::kPhase, kGradientSyncSpan);
      reducer_.finish();
      expert_reducer_.finish();
      shared_.sum();
      if (injected(InjectedBug::kExpertGradTimesEp)) scale_grads(expert_reducer_.owned(), ctx_.size(Axis::kEp));
    }
    const double scale = scaler_ ? scaler_->scale() : 1;
    const bool skips = scaler_ && any_overflow(owned_, ctx_);
    if (scaler_) update_scale(skips);
    if (skips) skipped_ = {.steps = skipped_.steps + 1, .samples = skipped_.samples + step_samples_};
    double norm = std::numeric_limits<double>::infinity();
    if (!skips) {
      const TraceSpan phase(ctx_, EventKind::kPhase, kGradientNormSpan);
      norm = grad_norm(owned_, ctx_, pieces()) / scale;
    }
    if (ctx_.tracer().has_stepper()) {
      const int64_t now_ns = ctx_.clock().now_ns();
      ctx_.tracer().observe("grad_norm", norm, now_ns);
      ctx_.tracer().at_boundary({.kind = BoundaryKind::kSpan, .name = "optimizer", .virtual_ns = now_ns});
    }
    if (!skips) {
      const TraceSpan phase(ctx_, EventKind::kPhase, "optimizer");
      const UpdateView view{owned_, pieces(), lr, clipped(norm) / scale, 1 / scale};
      watches_.each([&](UpdateWatch& watch) { watch.before_update(view); });
      update(lr, view.factor);
      watches_.each([&](UpdateWatch& watch) { watch.after_update(view); });
      if (qk_clip_) max_logits_->note_clipped(qk_clip_->clip(max_logits_->over_ranks()));
    }
    optimizer_->zero_grad();
    if (!skips && (reducer_.shards() || expert_reducer_.shards())) {
      const TraceSpan phase(ctx_, EventKind::kPhase, "parameter gather");
      gather_parameters();
    }
    if (units_) units_->check_all_away();
    return norm;
  }

 private:
  static std::optional<LossScaler> make_scaler(const RunPlan& plan) {
    const std::optional<LossScaleRule> rule = loss_scale_rule(plan.config);
    return rule ? std::optional<LossScaler>(*rule) : std::nullopt;
  }

  void make_qk_clip(const RunPlan& plan) {
    RANKLAB_CHECK(max_logits_ != nullptr, ErrorKind::kInvalidArgument, .where = "--qk-clip",
                  .what = "this model does not note the largest logits of its attention",
                  .got = "no CausalLm::max_logits()", .want = "a MaxLogitBook (core/model/max_logit_book.h)",
                  .fix = "leave --qk-clip out");
    const TrainConfig& c = plan.config;
    const QkClipOptions options{.alpha = c.qk_clip_alpha,
                                .threshold = c.qk_clip_threshold,
                                .together = heads_scaled_together(c.model),
                                .fixed_layers = layers_of_fixed_logits(c.model)};
    qk_clip_.emplace(qk_clip_pieces(c.model, options.alpha, optimizer_->states(),
                                    [this](const Parameter* piece) { return origin_of(piece); }),
                     options);
  }

  void update_scale(bool overflow) {
    const double before = scaler_->scale();
    scaler_->update(overflow);
    if (!injected(InjectedBug::kLossScaleUnsynced) || !overflow || overflows_here(owned_)) return;
    LossScaleState state = scaler_->state();
    state.scale = before;
    scaler_->restore(state);
  }

  double clipped(double norm) const {
    if (injected(InjectedBug::kClipFirstTpRankOnly) && ctx_.coordinate(Axis::kTp) > 0) return 1;
    return clip_factor(norm, clip_grad_);
  }

  // Scaled 16-bit gradients could underflow if they were unscaled before the update.
  void update(double lr, double factor) {
    const bool narrow = scaler_ && types_.grad_bytes() == 2;
    if (narrow && optimizer_->step_scaled(lr, factor)) return;
    if (!narrow && optimizer_->scales_in_update()) {
      charge_scaling(owned_, factor);  // charged before the update, which is when a host scales
      const bool updated = optimizer_->step_scaled(lr, factor);
      RANKLAB_CHECK(updated, ErrorKind::kInternal, .where = "reduced optimizer",
                    .what = "an optimizer that scales gradients in its update has no scaled step");
      return;
    }
    scale_grads(owned_, factor);
    optimizer_->step(lr);
  }

  // Parameters that are not sharded need their values immediately.
  static std::vector<Parameter*> taken_from(CausalLm& model, const RunPlan& plan) {
    if (!plan.zero().parameters) make_values(model.registry());
    return model.registry().parameters();
  }

  static std::vector<Parameter*> of_kind(std::vector<Parameter*> parameters, bool expert) {
    std::erase_if(parameters, [&](const Parameter* parameter) { return parameter->is_expert != expert; });
    return parameters;
  }
  // The axis over which gradients are reduced, and whether its ranks shard the result.
  struct Sharing {
    Axis axis = Axis::kDp;
    Communicator* replicas = nullptr;
    bool shares = true;
  };
  // HSDP: groups of neighbours shard, and their shards are all-reduced over the groups. Where a shard group has one
  // rank (experts with few edp ranks) ranks keep whole replicas. With DiLoCo a group reduces and shards alone.
  Sharing sharing(Axis all, Axis shard, Axis replica) {
    if (trains_alone_ || ctx_.size(replica) == 1) return {.axis = all};
    if (ctx_.size(shard) == 1) return {.axis = all, .shares = false};
    return {.axis = shard, .replicas = &ctx_.comm(replica)};
  }
  GradReducerOptions reducer_options(const RunPlan& plan, const Sharing& sharing) {
    return {.bucket_bytes = plan.bucket_bytes,
            .overlap = plan.config.overlap_grad_reduce,
            .accumulation = plan.config.accumulation == Accumulation::kPairwise ? GradAccumulation::kPairwise
                                                                                : GradAccumulation::kSequential,
            .each_microbatch = plan.config.grad_sync == GradSync::kMicrobatch,
            .zero = sharing.shares ? plan.zero() : kZeroStages[0],
            .grad_type = scalar_type(injected(InjectedBug::kBf16Accumulation) ? types_.params : types_.main_grads),
            .replicas = sharing.replicas,
            .matrices = matrix_buckets(plan),
            .gather = gather_precision(plan),
            .watch = [this](ZeroState state, const std::string& bucket) { note(state, bucket); },
            .local =
                [this](const Parameter& parameter, const at::Tensor& sum) {
                  watches_.each([&](UpdateWatch& watch) { watch.before_reduction(parameter, sum); });
                }};
  }
  // Quantized weights are gathered in the recipe's gather format, if it has one.
  static BucketShard::GatherPrecision gather_precision(const RunPlan& plan) {
    if (!plan.zero().parameters || !plan.precision || !plan.precision->recipe().gather.quantized()) return {};
    return [policy = plan.precision](const Parameter& parameter) { return policy->gather_of(parameter.name); };
  }
  // Timeline events for state changes of buckets and units (core/trace/zero_event.h).
  Event instant(const std::string& name) { return event_now(ctx_, EventKind::kInstant, name); }
  void note(ZeroState state, const std::string& bucket) {
    count(state, bucket);
    if (ctx_.tracer().enabled()) ctx_.tracer().record(instant(zero_event_name(state, bucket)));
  }
  // Gathers of initial or loaded values before the first step do not count in any step.
  void count(ZeroState state, const std::string& bucket) {
    if (!counts_) return;
    if (counter_.empty())
      for (const GradBucket& one : grad_buckets()) counter_.add(one);
    counter_.note(state, bucket);
  }
  // Hidden matrices have separate buckets where the optimizer keeps different states for them.
  static bool is_hidden(const GradBucket& bucket) { return bucket.layout.matrix != MatrixBuckets::kMixed; }
  void note_buckets() {
    if (!ctx_.tracer().enabled()) return;
    for (const GradReducer* reducer : {&reducer_, &expert_reducer_}) {
      for (const GradBucket& b : reducer->buckets()) {
        const std::vector<int64_t> numbers = {b.layout.elements,           b.layout.padding(),
                                              ctx_.size(b.axis),           ctx_.coordinate(b.axis),
                                              b.parameter_bytes(),         stage_,
                                              reducer == &expert_reducer_, types_.optimizer_bytes(is_hidden(b)),
                                              b.layout.element_bytes};
        ctx_.tracer().record(instant(std::string(kZeroBucketEvent) + b.label), {numbers.begin(), numbers.end()});
      }
    }
  }
  std::unique_ptr<ShardedUnits> shard_model(CausalLm& model, const RunPlan& plan) {
    std::unique_ptr<ShardedUnits> units;
    if (plan.zero().parameters && (reducer_.shards() || expert_reducer_.shards())) {
      units = std::make_unique<ShardedUnits>([this](ZeroState state, const std::string& unit) { note(state, unit); });
      model.set_parameter_gate(units.get());
      reducer_.shard_parameters(*units);
      expert_reducer_.shard_parameters(*units);
    }
    make_values(model.registry());  // the values of parameters that are not sharded
    return units;
  }
  std::unique_ptr<OverlappedGathers> overlapped_gathers(CausalLm& model, const RunPlan& plan) {
    if (!overlaps_param_gather(plan) || !(reducer_.shards() || expert_reducer_.shards())) return nullptr;
    auto gathers = std::make_unique<OverlappedGathers>();
    model.set_parameter_gate(gathers.get());
    reducer_.overlap_gathers(*gathers);
    expert_reducer_.overlap_gathers(*gathers);
    return gathers;
  }
  void gather_parameters() {
    reducer_.gather_parameters();
    expert_reducer_.gather_parameters();
    if (gathers_) gathers_->begin();
  }
  OwnedPieces pieces() const {
    OwnedPieces result;
    if (reducer_.shards()) result.dense = dense_.axis;
    if (expert_reducer_.shards()) result.experts = experts_.axis;
    return result;
  }
  // The whole parameter that `parameter` is, or of which it is a shard, and its offset there.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* parameter) const {
    return (parameter->is_expert ? expert_reducer_ : reducer_).origin_of(parameter);
  }
  std::vector<Parameter*> owned() const {
    if (!reducer_.shards() && !expert_reducer_.shards()) return parameters_;  // in creation order
    std::vector<Parameter*> all = reducer_.owned();
    for (Parameter* expert : expert_reducer_.owned()) all.push_back(expert);
    return all;
  }

  RankContext& ctx_;
  int stage_;  // ZeRO stage
  StateTypes types_;
  std::vector<Parameter*> parameters_;
  double clip_grad_;
  bool trains_alone_;  // as a DiLoCo replica (outer_optimizer.h)
  Sharing dense_, experts_;
  GradReducer reducer_;                         // over dp
  GradReducer expert_reducer_;                  // over edp: the ranks that own the same experts
  std::unique_ptr<ShardedUnits> units_;         // stage 3
  std::unique_ptr<OverlappedGathers> gathers_;  // null: gathers are complete when a step ends
  std::vector<Parameter*> owned_;
  SharedGrads shared_;
  std::unique_ptr<RankMatrices> matrices_;  // null: the optimizer updates elements
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<LossScaler> scaler_;
  SkippedSteps skipped_;
  int64_t microbatch_samples_;  // samples of one microbatch over all data-parallel ranks
  int64_t step_samples_ = 0;
  UpdateWatches watches_;
  ZeroCounter counter_;
  bool counts_ = false;
  std::vector<GradStage> stages_, expert_stages_;
  int num_chains_;
  MaxLogitBook* max_logits_;  // null: the model does not record them
  std::optional<QkClip> qk_clip_;
};

class ReducedOptimizerRuntime : public OptimizerRuntime {
 public:
  explicit ReducedOptimizerRuntime(MakeOptimizer make) : make_(std::move(make)) {}
  bool makes_values() const override { return true; }
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    auto optimizer = std::make_unique<ReducedOptimizer>(model, ctx, plan, make_);
    return plan.config.diloco.enabled() ? with_outer_updates(std::move(optimizer), ctx, plan) : std::move(optimizer);
  }

 private:
  MakeOptimizer make_;
};

}  // namespace

std::shared_ptr<OptimizerRuntime> provide_optimizer(MakeOptimizer make) {
  return std::make_shared<ReducedOptimizerRuntime>(std::move(make));
}

}  // namespace ranklab
