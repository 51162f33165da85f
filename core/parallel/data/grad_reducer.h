// Data-parallel gradient reduction in flat buckets, overlapped with backward (PyTorch DDP: Li et al. 2020, arXiv
// 2006.15704; Megatron's DistributedDataParallel). Buckets are filled in reverse creation order, which is about the
// order in which backward produces gradients; while the last microbatch runs, each full bucket starts its all_reduce.
// Earlier microbatches only accumulate (`no_sync`).
//
// In a pipeline each of the rank's stages sees its microbatches on its own, and a backward may come in two parts; a
// parameter is complete when every stage that has it has completed every microbatch, and its gradients are added in the
// order in which they come, which in all schedules is that of the microbatches.
//
// Shared out (ZeRO), a full bucket starts a reduce_scatter, never an all_reduce, and the rank's
// optimizer gets the pieces that it owns (owned(), bucket_shard.h); gather_parameters() brings the others' updates. The
// bits are those of the all_reduce. Stage 1 keeps the flat buckets. Stages 2 and 3 make a bucket when its first
// gradient comes and free it when it is reduced, at most two being under way, so that only shards stay. With several
// microbatches a bucket lives from the first to the last of them: gradients add up on the rank before they travel, once
// a step.
//
// Gradients may add up in a wider type than backward makes them in (Megatron's accumulate_allreduce_grads_in_fp32):
// each is widened when it comes, sums and messages are of that type, and data.grad() of owned() parameters too.
//
// Gradients are SUMMED: each loss is already divided by the global token count. Under sequence parallelism the
// parameters that saw only this rank's tokens (Parameter::sum_grad_over_tp) share one bucket that is summed over tp
// first. Cost: one copy of each gradient into its bucket (none where nothing has to be reduced), 2(n-1)/n of the bytes
// on the wire, shared out or not. Memory: the gradients once, plus log2(microbatches) copies in pairwise mode. Thread
// rule: its rank's thread; every member of the groups makes the same calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"
#include "core/parallel/data/bucket_layout.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/parallel/data/grad_bucket.h"
#include "core/parallel/data/grad_pass.h"
#include "core/parallel/data/sharded_units.h"

namespace ranklab {

enum class GradAccumulation {
  kSequential,  // in place, one after another: least memory
  kPairwise,    // a balanced tree (grad_tree.h): bit-equal to more dp ranks with fewer microbatches
};

enum class GradSharding {
  kNone,
  kOptimizer,   // each rank updates its shard of the parameters (ZeRO stage 1)
  kGradients,   // ... and keeps the gradients of its shard only (stage 2)
  kParameters,  // ... and the parameters of its shard only; a bucket a unit (stage 3, sharded_units.h)
};

// Of kGradients and kParameters: reduced buckets that are not awaited yet.
constexpr size_t kMostBucketsUnderWay = 2;

struct GradReducerOptions {
  int64_t bucket_bytes = int64_t{25} << 20;
  bool overlap = true;  // false: all buckets start after the last backward
  GradAccumulation accumulation = GradAccumulation::kSequential;
  GradSharding sharding = GradSharding::kNone;
  std::optional<at::ScalarType> grad_type = std::nullopt;  // in which they add up; unset: that of the parameters
  // HSDP (PyTorch FSDP's hybrid sharding): the ranks with the same place in other groups that share out, over which a
  // reduced shard is summed, too. Null: there is one such group.
  Communicator* replicas = nullptr;
  // Stage 3: in which precision a weight is gathered; unset: all as they are.
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
  void begin_pass(const GradPass& pass);
  void end_pass();
  // The same for one stage with all parameters, whose microbatches come one after another.
  void begin_step(int num_microbatches);
  void begin_microbatch(int index);  // before its backward
  void end_microbatch(int index);    // after its backward
  // Waits; afterwards data.grad() of every owned() parameter is the sum over microbatches and ranks (zero if it had
  // none).
  void finish();

  // Whether ranks share out buckets: a group of one has nothing to share.
  bool shards() const { return options_.sharding != GradSharding::kNone && dp_.size() > 1 && !parameters_.empty(); }
  // What this rank's optimizer updates: the parameters, or the pieces of them that it owns. They live as long as this.
  std::vector<Parameter*> owned() const;
  // When shards(): of one of owned(), the whole parameter and the piece's first element in it.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* piece) const;
  // After the update of owned(), when shards(): collective over dp, bucket by bucket. In stage 3 nothing: whoever uses
  // a parameter gathers it.
  void gather_parameters();
  // Stage 3, when shards(): from here on only shards are kept, and `units` brings the whole.
  void share_out_parameters(ShardedUnits& units);

  // Buckets in the order in which they are reduced; `label` as in core/trace/zero_event.h, `shards` the ranks that
  // share it out, or would.
  struct BucketInfo {
    std::string label;
    int64_t elements = 0, padding = 0;
    int64_t element_bytes = 0, grad_bytes = 0;  // of an element: of the parameter, and of its gradient here
    int shards = 1, shard = 0;
  };
  std::vector<BucketInfo> buckets() const;
  std::vector<GradBucket> layouts() const;
  int64_t num_buckets() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Slot {
    Parameter* parameter = nullptr;
    size_t bucket = 0;
    int64_t offset = 0;  // elements
    at::Tensor view;     // its part of the bucket, in its shape
    std::vector<at::Tensor> levels;
    std::map<int, at::Tensor> partial;  // pairwise: of microbatches that are not complete
    int total = 0;                      // microbatches to complete in this step, over its stages
    int completed = 0;
    bool empty = true;     // no gradient in this step yet
    bool arrived = false;  // in this pass
  };
  struct Bucket {
    std::string label;
    BucketLayout layout;
    std::vector<size_t> slots;
    bool touched = false;  // has a gradient in this step
    at::Tensor flat;
    std::vector<at::Tensor> levels;
    size_t pending = 0;  // parameters that are not complete
    bool started = false;
    WorkPtr work;
    WorkPtr replica_work;
    std::unique_ptr<BucketShard> shard;  // when shards()
  };
  class Hook;

  void plan_buckets();
  std::string label_of(const BucketLayout& layout) const;
  void tell(ZeroState state, const Bucket& bucket) const {
    if (options_.watch) options_.watch(state, bucket.label);
  }
  void allocate(Bucket& bucket);
  void release(Bucket& bucket);
  at::ScalarType grad_type(const Parameter& parameter) const {
    return options_.grad_type.value_or(parameter.data.scalar_type());
  }
  bool passes_through(const Bucket& bucket) const;
  bool keeps_shards_only() const { return shards() && options_.sharding >= GradSharding::kGradients; }
  void on_grad(size_t slot);
  void add(Slot& slot, const at::Tensor& grad);
  void complete(Slot& slot);
  void start_ready_buckets();
  void start(Bucket& bucket);
  void collect(Bucket& bucket);

  std::vector<Parameter*> parameters_;
  Communicator& dp_;
  Communicator* tp_;
  GradReducerOptions options_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<size_t>> stage_slots_;
  int most_microbatches_ = 0;       // of a stage
  bool shares_parameters_ = false;  // two stages have one in common
  std::optional<GradPass> pass_;    // running
  int64_t passes_left_ = 0;         // completing ones
  int next_microbatch_ = 0;         // of the simple form
  size_t next_start_ = 0;           // buckets start in order, the same on every rank
};

}  // namespace ranklab
