// The parts a training program is put together from (the words of nano-train's runtime): thin mains choose them, the
// engine calls them in a fixed order on every rank:
//   build_model -> build_data -> optimizer.initialize -> schedule.select -> checkpoint.load -> steps -> checkpoint.save
// Each build_* runs on the rank's own thread and returns objects of that rank. The providers themselves are shared by
// all ranks and must be safe to call from several threads at once (const, or locked).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/comm/rank_context.h"
#include "core/comm/world.h"
#include "core/config/train_config.h"
#include "core/model/causal_lm.h"
#include "core/optim/loss_scaler.h"
#include "core/parallel/data/grad_bucket.h"
#include "core/parallel/data/grad_pass.h"
#include "core/runtime/hooks.h"

namespace ranklab {

class ModelProvider {
 public:
  virtual ~ModelProvider() = default;
  // Parameters may come without values (Parameter::unmade), where a rank is to keep shards of them alone: whoever uses
  // the model calls make_values() (core/nn/initial_values.h) first.
  virtual std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const = 0;
};

// One rank's stream of batches. The batch must be a pure function of (step, microbatch, dp rank): ranks of one
// model-parallel group ask separately and must see the same tokens. In a pipeline only the ranks of a first or last
// stage ask.
class RankData {
 public:
  virtual ~RankData() = default;
  virtual Batch train_batch(int64_t step, int64_t microbatch) = 0;
  // From this step on the stream goes on behind so many samples of training (a checkpoint's cursor).
  virtual void seek(int64_t /*step*/, int64_t /*consumed_samples*/) {}
  virtual bool has_validation() const = 0;
  virtual Batch validation_batch(int64_t index, int64_t microbatch) = 0;
  // Targets that count (not -100) in the whole global batch, when known without looking; else the engine counts and
  // sums over dp.
  virtual std::optional<int64_t> global_tokens_per_batch() const { return std::nullopt; }
};

class DataProvider {
 public:
  virtual ~DataProvider() = default;
  virtual std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const = 0;
  virtual std::string describe() const = 0;  // one line for the start banner
  // What makes it this data and no other: a checkpoint's cursor means nothing elsewhere.
  virtual std::map<std::string, std::string> identity() const { return {{"description", describe()}}; }
};

// A run of elements of one of the rank's parameters that this rank updates and keeps the state of: what a checkpoint
// takes from it. All tensors are flat and have end - begin elements; writing into them is loading.
struct OwnedState {
  const Parameter* parameter = nullptr;                     // the whole one, as the model has it
  int64_t begin = 0, end = 0;                               // of its local elements, row-major
  at::Tensor weight;                                        // the parameter's data, or the master of it
  std::vector<std::pair<std::string, at::Tensor>> moments;  // "exp_avg", "exp_avg_sq"; none: not kept
};

// One rank's gradients and optimizer state.
class RankOptimizer {
 public:
  virtual ~RankOptimizer() = default;
  // Of this rank: with a ZeRO stage the pieces that it owns, else every parameter (dp peers have the same).
  virtual std::vector<OwnedState> owned_state() { return {}; }
  // In which gradients are reduced, or sharded; none: whoever implements this does not say.
  virtual std::vector<GradBucket> grad_buckets() const { return {}; }
  virtual int64_t updates() const { return 0; }
  // Collective, after owned_state() was written into: parameters follow their masters, peers' pieces are gathered.
  virtual void restored(int64_t /*updates*/) {}
  virtual void begin_step(int64_t num_microbatches) = 0;
  // Around each backward, or part of one, of a microbatch in one of the rank's stages.
  virtual void begin_pass(const GradPass& pass) = 0;
  virtual void end_pass() = 0;
  // Reduces, clips, updates, clears; returns the norm before clipping. With a loss scale gradients are divided by it
  // before, and nothing is updated when one of any rank is infinite or NaN: then the norm is infinite.
  virtual double finish_step(double lr) = 0;
  // Whose scale the loss is multiplied with before backward; null: with 1.
  virtual LossScaler* loss_scaler() { return nullptr; }
};

class OptimizerRuntime {
 public:
  virtual ~OptimizerRuntime() = default;
  // Whether initialize() makes the values that it is given without, of shards or whole. Else they are made before it.
  virtual bool makes_values() const { return false; }
  virtual std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const = 0;
};

// One rank's sums over the microbatches whose last stage it holds.
struct StepOutput {
  double loss_sum = 0;  // over this rank's tokens
  int64_t tokens = 0;
  double mtp_loss_sum = 0;  // of the modules that predict further tokens, without weight
  // With a loss scale, else 0: that of this step, whether its update was left out, and how many were so far.
  double loss_scale = 0;
  bool skipped = false;
  int64_t skipped_steps = 0;
  ModelReport report = {};
};

struct StepContext {
  RankContext& ctx;
  const RunPlan& plan;
  CausalLm& model;
  RankData& data;
  RankOptimizer& optimizer;
  int64_t step = 0;
  double loss = 0;  // of the last step, over the global batch
};

// How a rank runs the forwards and backwards of one global batch.
class ScheduleStrategy {
 public:
  virtual ~ScheduleStrategy() = default;
  virtual std::string name() const = 0;
  virtual StepOutput run_step(StepContext& context) = 0;
  virtual StepOutput run_validation(StepContext& context, int64_t batch) = 0;  // no gradients
  // [B, S, V] of one batch, on every pipeline rank. No gradients.
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
  virtual int64_t load(StepContext& context) = 0;  // the first step to run: 0 for a fresh start
  virtual void after_step(StepContext& /*context*/, int64_t /*done_steps*/) {}  // every step, on every rank
  virtual void save(StepContext& context, int64_t done_steps) = 0;              // after the last step
  virtual std::string loaded() const { return {}; }                // what load() found, one line for the start banner
  virtual std::vector<CheckpointNote> take_notes() { return {}; }  // saved since the last call; asked on rank 0
};

struct RuntimeComponents {
  std::shared_ptr<World> world;  // the bootstrap: made by a backend, handed in by the program
  std::shared_ptr<ModelProvider> model_provider;
  std::shared_ptr<DataProvider> data_provider;
  std::shared_ptr<OptimizerRuntime> optimizer_runtime;
  std::shared_ptr<ScheduleSelector> schedule_selector;
  std::shared_ptr<CheckpointManager> checkpoint_manager;
};

// Transformer, text corpus, AdamW or SGD and pipeline schedule as the plan says, no checkpoints. Replace what you want
// to change.
RuntimeComponents default_components(std::shared_ptr<World> world, const RunPlan& plan);
// Those of them that no files are needed for: model, optimizer and schedule; world, data and checkpoints are left null.
RuntimeComponents default_parts();

}  // namespace ranklab
