// Data-parallel gradients in flat buckets, reduced while backward runs (PyTorch DDP: Li et al. 2020, arXiv 2006.15704;
// Megatron's DistributedDataParallel). Buckets are filled in reverse creation order, about that in which backward
// produces gradients; while the last microbatch runs, each full bucket starts its Reduction (reduction.h). Earlier
// microbatches only accumulate (`no_sync`; grad_accumulator.h), so gradients travel once a step.
//
// In a pipeline each of the rank's stages sees its microbatches on its own, and a backward may come in two parts; a
// parameter is complete when every stage that has it has completed every microbatch, and its gradients are added in the
// order in which they come, which in all schedules is that of the microbatches.
//
// Where gradients are sharded (ZeRO stages 2 and 3), a bucket is made when its first gradient comes and freed when it
// is reduced, at most two being under way; else buckets stay.
//
// Gradients are SUMMED: each loss is already divided by the global token count. Under sequence parallelism the
// parameters that saw only this rank's tokens (Parameter::sum_grad_over_tp) share one bucket that is summed over tp
// first. Cost: one copy of each gradient into its bucket (none where nothing has to be reduced). Memory: the gradients
// once. Both without what the accumulator and the reduction say. Thread rule: its rank's thread; every member of the
// groups makes the same calls.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/parallel/data/grad_pass.h"
#include "core/parallel/data/reduction.h"
#include "core/parallel/data/sharded_units.h"

namespace ranklab {

struct GradReducerOptions {
  int64_t bucket_bytes = int64_t{25} << 20;
  bool overlap = true;  // false: all buckets start after the last backward
  GradAccumulation accumulation = GradAccumulation::kSequential;
  ZeroStage zero = kZeroStages[0];
  std::optional<at::ScalarType> grad_type = std::nullopt;  // in which they add up; unset: that of the parameters
  Communicator* replicas = nullptr;                        // HSDP: the ranks with the same shard in other groups
  // Sharded parameters: in which precision a weight is gathered; unset: all as they are.
  BucketShard::GatherPrecision gather = {};
  // Told what becomes of buckets (partial, reduced, updated), by their label.
  std::function<void(ZeroState state, const std::string& bucket)> watch = {};
};

// The parameters of one of the rank's stages, and how many microbatches of a step pass it.
struct GradStage {
  std::vector<Parameter*> parameters;
  int num_microbatches = 1;
};

class GradReducer {
 public:
  // `dp` replicates these parameters (Axis::kDpCp or kDp; kEdp for experts, in a reducer of their own). `tp` is needed
  // when a parameter has sum_grad_over_tp. Both outlive the reducer, the parameters too.
  GradReducer(std::vector<Parameter*> parameters, Communicator& dp, Communicator* tp, GradReducerOptions options);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  // Forgets the old gradients. In pairwise mode a parameter belongs to one stage.
  void begin_step(const std::vector<GradStage>& stages);
  void begin_pass(const GradPass& pass);  // before a backward, or a part of one
  void end_pass();
  // Waits; afterwards data.grad() of every owned() parameter is the sum over microbatches and ranks (zero if it had
  // none), in the options' type.
  void finish();

  // Whether ranks share out buckets: a group of one has nothing to share.
  bool shards() const { return options_.zero.optimizer; }
  // What this rank's optimizer updates: the parameters, or the pieces of them that it owns. They live as long as this.
  std::vector<Parameter*> owned() const;
  // Of one of owned(), the whole parameter and the piece's first element in it.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* piece) const;
  // After the update of owned(): every rank gets the others', bucket by bucket. Collective over dp.
  void gather_parameters();
  // Stage 3, when shards(): from here on only shards are kept, and `units` brings the whole.
  void share_out_parameters(ShardedUnits& units);

  // In the order in which they are reduced.
  std::vector<GradBucket> buckets() const;

 private:
  struct Bucket : FlatBucket {
    std::unique_ptr<Reduction> reduction;
    bool stays = false;    // in this step gradients may stay where autograd made them
    bool touched = false;  // has a gradient in this step
    size_t pending = 0;    // parameters that are not complete
    bool collected = false;
  };
  class Hook;

  void plan_buckets();
  std::string label_of(const BucketLayout& layout) const;
  void tell(ZeroState state, const Bucket& bucket) const {
    if (options_.watch) options_.watch(state, bucket.label);
  }
  at::ScalarType grad_type(const Parameter& parameter) const {
    return options_.grad_type.value_or(parameter.data.scalar_type());
  }
  void begin_stage(const GradStage& stage);
  void begin_bucket(Bucket& bucket);
  void on_grad(GradSlot& slot);
  void add(GradSlot& slot, const at::Tensor& grad);
  void complete(GradSlot& slot);
  void start_ready_buckets();
  void start(Bucket& bucket);
  void collect(Bucket& bucket);
  void hand_over(Bucket& bucket);

  std::vector<Parameter*> parameters_;
  Communicator& dp_;
  Communicator* tp_;
  GradReducerOptions options_;
  const GradAccumulator& accumulator_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const Parameter*, GradSlot*> slot_of_;
  std::vector<std::vector<GradSlot*>> stage_slots_;
  int num_levels_ = 0;            // of the accumulator, in this step
  bool adds_ = false;             // a parameter gets several gradients in this step
  std::optional<GradPass> pass_;  // running
  int64_t passes_left_ = 0;       // completing ones
  size_t next_start_ = 0;         // buckets start in order, the same on every rank
};

}  // namespace ranklab
