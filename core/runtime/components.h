// The parts that make up a training program (named as in nano-train's runtime). Thin mains choose them, and the engine
// calls them in a fixed order on every rank:
//   build_model -> build_data -> optimizer.initialize -> schedule.select -> checkpoint.load -> steps -> checkpoint.save
// Each build_* runs on the rank's own thread and returns objects of that rank. The providers themselves are shared by
// all ranks and must be safe to call from several threads at once (const, or locked).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/comm/world.h"
#include "core/config/train_config.h"
#include "core/model/causal_lm.h"
#include "core/optim/grad_clip.h"
#include "core/optim/loss_scaler.h"
#include "core/parallel/data/grad_bucket.h"
#include "core/parallel/data/grad_pass.h"
#include "core/runtime/hooks.h"

namespace ranklab {

class ModuleTracer;  // module_tracer.h
class TextCodec;     // text_codec.h
class RankTable;     // sentinels/rank_table.h
class SentinelFamily;
struct SentinelContext;

// Makes a family of sentinels that is not part of the runtime, on each rank's thread.
using MakeOwnFamily = std::function<std::unique_ptr<SentinelFamily>(SentinelContext&, RankTable&)>;

class ModelProvider {
 public:
  virtual ~ModelProvider() = default;
  // Parameters may have no values yet (Parameter::unmade), where a rank stores only their shards: the model's user must
  // first call make_values() (core/nn/initial_values.h).
  virtual std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const = 0;
};

// One rank's stream of batches. The batch must be a pure function of (step, microbatch, dp rank): ranks of one
// model-parallel group load it separately and must see the same tokens. In a pipeline only the ranks of a first or last
// stage load batches.
class RankData {
 public:
  virtual ~RankData() = default;
  virtual Batch train_batch(int64_t step, int64_t microbatch) = 0;
  // From this step on, the stream continues after this many consumed training samples (a checkpoint's cursor).
  virtual void seek(int64_t /*step*/, int64_t /*consumed_samples*/) {}
  virtual bool has_validation() const = 0;
  virtual Batch validation_batch(int64_t index, int64_t microbatch) = 0;
  // The number of targets that count (not -100) in a global batch of the plan's size, if it is the same for each
  // sequence and known without reading the data; otherwise the engine counts them and sums over dp.
  virtual std::optional<int64_t> global_tokens_per_batch() const { return std::nullopt; }
  // True if batches may mark the documents in them (Batch::documents); every pipeline stage then reads these.
  virtual bool marks_documents() const { return false; }
  // False if the tensors of batches have only shapes and no values (core/runtime/shapes).
  virtual bool has_tokens() const { return true; }
};

class DataProvider {
 public:
  virtual ~DataProvider() = default;
  virtual std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const = 0;
  virtual std::string describe() const = 0;  // one line for the start banner
  // Identifies the data: a checkpoint's cursor is meaningless with any other data.
  virtual std::map<std::string, std::string> identity() const { return {{"description", describe()}}; }
  // Converts between text and the data's tokens; null: the tokens are not text.
  virtual std::shared_ptr<TextCodec> text() const { return nullptr; }
};

// A range of elements of one parameter that this rank updates and whose optimizer state it stores, in the form in which
// a checkpoint saves it. All tensors are flat and have end - begin elements; loading writes into them.
struct OwnedState {
  const Parameter* parameter = nullptr;                     // the whole parameter, as in the model
  int64_t begin = 0, end = 0;                               // range of its local elements, row-major
  at::Tensor weight;                                        // the parameter's data, or its main parameter if it has one
  std::vector<std::pair<std::string, at::Tensor>> moments;  // "exp_avg", "exp_avg_sq"; empty: none are kept
  // In a checkpoint of a DiLoCo run: what each replica has for itself, its weight and the moments of its optimizer. The
  // weight and the moments above are then those of the outer optimizer, which all replicas share.
  std::vector<std::pair<std::string, at::Tensor>> of_replica = {};
};
// The name in `of_replica` of a replica's own weight.
inline constexpr char kReplicaWeight[] = "replica_weight";

// An update that an optimizer is about to perform, or has performed. `pieces` are what this rank updates: parameters,
// or with a ZeRO stage pieces of them (flat, with the partition of the whole). Their gradients are already reduced over
// the ranks, but before the update they have yet to be multiplied by `factor`, which clips and unscales them.
struct UpdateView {
  const std::vector<Parameter*>& pieces;
  OwnedPieces axes;  // the axes over which pieces are distributed
  double lr = 0, factor = 1, unscale = 1;
};
class UpdateWatch {
 public:
  virtual ~UpdateWatch() = default;
  // This rank's own sum of a parameter's gradients over the step's microbatches, before it is reduced with other ranks'
  // sums. Not called where no reduction happens.
  virtual void before_reduction(const Parameter& /*parameter*/, const at::Tensor& /*sum*/) {}
  virtual void before_update(const UpdateView& update) = 0;
  virtual void after_update(const UpdateView& update) = 0;  // the gradients may be gone
};
class UpdateWatches {
 public:
  void set(UpdateWatch& watch, bool there) {
    std::erase(watches_, &watch);
    if (there) watches_.push_back(&watch);
  }
  template <typename Call>
  void each(const Call& call) const {
    for (UpdateWatch* watch : watches_) call(*watch);
  }

 private:
  std::vector<UpdateWatch*> watches_;
};

// Spans of finish_step() in a trace, at whose ends ranks have waited for each other: until gradients are reduced, and
// until the global gradient norm is known.
inline constexpr char kGradientSyncSpan[] = "gradient sync", kGradientNormSpan[] = "gradient norm";

// One rank's gradients and optimizer state.
class RankOptimizer {
 public:
  virtual ~RankOptimizer() = default;
  // This rank's part: with a ZeRO stage its shards, else every parameter (data-parallel peers have the same).
  virtual std::vector<OwnedState> owned_state() { return {}; }
  // What a checkpoint stores, and loading writes into.
  virtual std::vector<OwnedState> saved_state() { return owned_state(); }
  // The buckets in which gradients are reduced or sharded; empty if this implementation does not report them.
  virtual std::vector<GradBucket> grad_buckets() const { return {}; }
  virtual int64_t updates() const { return 0; }
  // Includes steps before a checkpoint, whether or not this run still has a loss scale.
  virtual SkippedSteps skipped() const { return {}; }
  // Counted since begin_step(); an implementation may count nothing.
  virtual ZeroCounters zero_counters() const { return {}; }
  // The observers of updates that are not skipped; null: this implementation has none.
  virtual UpdateWatches* update_watches() { return nullptr; }
  // Collective. Call after owned_state() or saved_state() was written into: copies main parameters to parameters and
  // gathers peers' shards.
  virtual void restored(int64_t /*updates*/, const SkippedSteps& /*skipped*/) {}
  // Collective. Updated parameters may still be on their way from other ranks after finish_step(), until the model uses
  // them (--overlap-param-gather). Call before they are read in another way, or owned_state() is written into.
  virtual void settle_parameters() {}
  virtual void set_step(int64_t /*step*/) {}  // number of the step that begins; without a call, they count from 0
  virtual void begin_step(int64_t num_microbatches) = 0;
  virtual void set_weight_decay(double /*weight_decay*/) {}  // for the step's update
  // Called before and after each backward (or part of one) of a microbatch in one of the rank's stages.
  virtual void begin_pass(const GradPass& pass) = 0;
  virtual void end_pass() = 0;
  // Reduces, clips, updates, clears; returns the norm before clipping. With a loss scale, gradients are first unscaled,
  // and the update is skipped when a gradient of any rank is infinite or NaN; then the returned norm is infinite.
  virtual double finish_step(double lr) = 0;
  // Whether finish_step() also makes DiLoCo's outer updates: a run with DiLoCo requires it. An optimizer of your own
  // does once it is wrapped: with_outer_updates() of core/runtime/outer_optimizer.h.
  virtual bool makes_outer_updates() const { return false; }
  // The loss is multiplied by its scale before backward; null: no scaling.
  virtual LossScaler* loss_scaler() { return nullptr; }
};

class OptimizerRuntime {
 public:
  virtual ~OptimizerRuntime() = default;
  // True when initialize() itself creates missing parameter values, sharded or whole. Otherwise they must exist before
  // the call.
  virtual bool makes_values() const { return false; }
  virtual std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const = 0;
};

// One rank's sums over the microbatches whose last stage it holds.
struct StepOutput {
  double loss_sum = 0;  // over this rank's tokens
  int64_t tokens = 0;
  double mtp_loss_sum = 0;  // of the multi-token-prediction modules, without their weight
  // With a loss scale: this step's scale, whether its update was skipped, and the number of skips so far. Otherwise 0.
  double loss_scale = 0;
  bool skipped = false;
  int64_t skipped_steps = 0;
  ModelReport report = {};
};

class ScheduleStrategy;

// The values from which measurements in later steps are computed: numbers by name, the same on all ranks of any layout,
// which checkpoints save.
using RunningValues = std::map<std::string, double>;
class KeepsRunningValues {
 public:
  virtual ~KeepsRunningValues() = default;
  virtual RunningValues running_values() const = 0;
  virtual void go_on_from(const RunningValues& values) = 0;
};

struct StepContext {
  RankContext& ctx;
  const RunPlan& plan;
  CausalLm& model;
  RankData& data;
  RankOptimizer& optimizer;
  int64_t step = 0;
  double loss = 0;                          // loss of the last step, over the global batch
  ModuleTracer* modules = nullptr;          // null: uses of modules are not traced
  ScheduleStrategy* schedule = nullptr;     // the run's schedule; null only where no pass is made
  KeepsRunningValues* sentinels = nullptr;  // null: the run has none
};

// How a rank runs the forward and backward passes of one global batch.
class ScheduleStrategy {
 public:
  virtual ~ScheduleStrategy() = default;
  virtual std::string name() const = 0;
  virtual StepOutput run_step(StepContext& context) = 0;
  virtual StepOutput run_validation(StepContext& context, int64_t batch) = 0;  // no gradients
  // [B, S, V] for one batch, on every pipeline rank. No gradients.
  virtual at::Tensor logits(StepContext& context, const Batch& batch) = 0;
};

class ScheduleSelector {
 public:
  virtual ~ScheduleSelector() = default;
  virtual std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const = 0;
};

class CheckpointManager {
 public:
  virtual ~CheckpointManager() = default;
  // Where the run resumes; called before any of its parts is built. Collective.
  virtual DataCursor start(RankContext& /*ctx*/) { return {}; }
  virtual int64_t load(StepContext& context) = 0;  // the first step to run: 0 for a fresh start
  virtual void after_step(StepContext& /*context*/, int64_t /*done_steps*/) {}  // every step, on every rank
  virtual void save(StepContext& context, int64_t done_steps) = 0;              // after the last step
  virtual std::string loaded() const { return {}; }                // what load() found, one line for the start banner
  virtual std::vector<CheckpointNote> take_notes() { return {}; }  // saved since the last call; called on rank 0
};

struct RuntimeComponents {
  std::shared_ptr<World> world;  // the bootstrap: created by a backend, passed in by the program
  std::shared_ptr<ModelProvider> model_provider;
  std::shared_ptr<DataProvider> data_provider;
  std::shared_ptr<OptimizerRuntime> optimizer_runtime;
  std::shared_ptr<ScheduleSelector> schedule_selector;
  std::shared_ptr<CheckpointManager> checkpoint_manager;
  // Makes the comparison of the ranks' tensors every few steps (--watch): parity_watch() of core/parity/watch.h.
  // Required for a run with --watch.
  MakeOwnFamily parity_watch = {};
};

// Transformer, text corpus, AdamW or SGD and pipeline schedule according to the plan; no checkpoints. Replace the parts
// that you want to change.
RuntimeComponents default_components(std::shared_ptr<World> world, const RunPlan& plan);
// Only the parts that need no files: model, optimizer and schedule; world, data and checkpoints are null.
RuntimeComponents default_parts();

}  // namespace ranklab
