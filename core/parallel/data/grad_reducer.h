// Data-parallel gradients in flat buckets, reduced while backward runs (PyTorch DDP: Li et al. 2020, arXiv 2006.15704;
// Megatron's DistributedDataParallel). Buckets are filled in reverse creation order, roughly that in which backward
// produces gradients; during the last microbatch each full bucket starts its Reduction (reduction.h). Earlier
// microbatches only accumulate (`no_sync`; grad_accumulator.h), so gradients are reduced once per step. Sharded
// gradients may instead be reduced after each microbatch, as PyTorch's FSDP does without no_sync (arXiv 2304.11277):
// then no rank holds whole gradients, at the cost of one reduction per microbatch.
//
// In a pipeline each of the rank's stages runs its microbatches separately, and a backward may be split in two passes.
// A parameter is complete when every stage that has it has completed every microbatch; its gradients are added in order
// of arrival, which in all schedules is that of the microbatches.
//
// With sharded gradients (ZeRO stages 2 and 3) a bucket is allocated when its first gradient arrives and freed when it
// is reduced, with at most two reductions in flight; otherwise buckets stay allocated.
//
// Gradients are SUMMED: each loss is already divided by the global token count. Parameters with
// Parameter::sum_grad_over_tp (with sequence parallelism they see only this rank's tokens) have a separate bucket that
// is first summed over tp. Cost: one copy of each gradient into its bucket (none where nothing has to be reduced).
// Memory: the gradients once, plus what the accumulator and the reduction need. Thread rule: its rank's thread; every
// member of the groups makes the same calls.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/parallel/data/grad_pass.h"
#include "core/parallel/data/overlapped_gathers.h"
#include "core/parallel/data/reduction.h"
#include "core/parallel/data/sharded_units.h"

namespace ranklab {

struct GradReducerOptions {
  int64_t bucket_bytes = int64_t{25} << 20;
  bool overlap = true;  // false: all buckets start after the last backward
  GradAccumulation accumulation = GradAccumulation::kSequential;
  // Reduce after each microbatch; shards are then summed in the order of microbatches. No effect without sharded
  // gradients.
  bool each_microbatch = false;
  ZeroStage zero = kZeroStages[0];
  std::optional<at::ScalarType> grad_type = std::nullopt;  // type of the sums; unset: that of the parameters
  Communicator* replicas = nullptr;                        // HSDP: the ranks with the same shard in other groups
  MatrixBuckets matrices = MatrixBuckets::kMixed;          // how hidden matrices lie in buckets
  // For sharded parameters: the precision in which a weight is gathered; unset: nothing is quantized.
  BucketShard::GatherPrecision gather = {};
  // Called with a bucket's label when its state changes (partial, reduced, updated).
  std::function<void(ZeroState state, const std::string& bucket)> watch = {};
  // Called with this rank's sum of each gradient before the reduction.
  std::function<void(const Parameter& parameter, const at::Tensor& sum)> local = {};
};

// The parameters of one of the rank's stages, and the number of microbatches per step. The stages of one chain process
// the same microbatches (DualPipe has two chains).
struct GradStage {
  std::vector<Parameter*> parameters;
  int num_microbatches = 1;
  int chain = 0;
};

class GradReducer {
 public:
  // `dp` is the group that replicates these parameters (Axis::kDpCp or kDp; kEdp for experts, which have a separate
  // reducer). `tp` is needed if a parameter has sum_grad_over_tp. Both and the parameters must outlive the reducer.
  GradReducer(std::vector<Parameter*> parameters, Communicator& dp, Communicator* tp, GradReducerOptions options);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  // Discards the old gradients. A parameter may belong to several stages (a tied embedding): its gradient of a
  // microbatch is the sum over all these stages, as on a rank with the whole model.
  void begin_step(const std::vector<GradStage>& stages);
  void begin_pass(const GradPass& pass);  // before a backward, or a part of one
  void end_pass();
  // Waits; afterwards data.grad() of every owned() parameter is the sum over microbatches and ranks (zero if it had no
  // gradient), in the options' grad_type.
  void finish();

  // Whether buckets are sharded over ranks; never true in a group of one.
  bool shards() const { return options_.zero.optimizer; }
  // What this rank's optimizer updates: the parameters, or the pieces of them that it owns. Valid as long as the
  // reducer.
  std::vector<Parameter*> owned() const;
  // For one of owned(): the whole parameter, and the index of the piece's first element in it.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* piece) const;
  // Call after the update of owned(): gathers the other ranks' updates, bucket by bucket. Collective over dp. After
  // overlap_gathers(), the call of OverlappedGathers::begin() that follows it starts the gathers instead.
  void gather_parameters();
  // Stages 1 and 2, if shards(): from here on `gathers` gathers the other ranks' updates.
  void overlap_gathers(OverlappedGathers& gathers);
  // Stage 3, if shards(): from here on only shards are kept, and `units` gathers the whole parameters.
  void shard_parameters(ShardedUnits& units);

  // The buckets in the order in which they are reduced.
  std::vector<GradBucket> buckets() const;

 private:
  struct Bucket : FlatBucket {
    std::unique_ptr<Reduction> reduction;
    bool stays = false;    // in this step gradients may stay where autograd put them, without a copy
    bool touched = false;  // has a gradient in this step
    size_t pending = 0;    // number of parameters for which the next reduction waits
    size_t arriving = 0;  // number of parameters whose gradient comes in this pass, if the pass may start the reduction
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
  void expect(Bucket& bucket);
  bool completes(const GradSlot& slot, const GradPass& pass) const;
  void order_buckets_of(const GradPass& pass);
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
  std::vector<int> chains_;       // by stage
  int most_microbatches_ = 0;     // largest number of microbatches of any parameter in this step
  int num_levels_ = 0;            // levels of the accumulator in this step
  bool adds_ = false;             // whether some parameter gets several gradients in this step
  std::optional<GradPass> pass_;  // the running pass
  bool gathers_later_ = false;    // after overlap_gathers()
  int64_t passes_left_ = 0;       // completing passes that are still to come
  std::vector<size_t> order_;     // buckets that start in this step, or pass, in order; the same on every rank
  size_t next_start_ = 0;         // index in order_
};

}  // namespace ranklab
