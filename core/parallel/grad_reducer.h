// Data-parallel gradient reduction in flat buckets, overlapped with backward (PyTorch DDP: Li et al. 2020, arXiv
// 2006.15704; Megatron's DistributedDataParallel). Buckets are filled in reverse creation order, which is about the
// order in which backward produces gradients; while the last microbatch runs, each full bucket starts its all_reduce.
// Earlier microbatches only accumulate (`no_sync`).
//
// Gradients are SUMMED: each loss is already divided by the global token count. Under sequence parallelism the
// parameters that saw only this rank's tokens (Parameter::sum_grad_over_tp) share one bucket that is summed over tp
// first. Cost: one copy of each gradient into its bucket (none where nothing has to be reduced), 2(n-1)/n of the bytes
// on the wire. Memory: the gradients once, plus log2(microbatches) copies in pairwise mode. Thread rule: its rank's
// thread; every member of the groups makes the same calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"

namespace ranklab {

enum class GradAccumulation {
  kSequential,  // in place, one after another: least memory
  kPairwise,    // a balanced tree (grad_tree.h): bit-equal to more dp ranks with fewer microbatches
};

struct GradReducerOptions {
  int64_t bucket_bytes = int64_t{25} << 20;
  bool overlap = true;  // false: all buckets start after the last backward
  GradAccumulation accumulation = GradAccumulation::kSequential;
};

class GradReducer {
 public:
  // `dp` replicates these parameters (Axis::kDpCp or kDp; kEdp for experts, in a reducer of their own). `tp` is needed
  // when a parameter has sum_grad_over_tp. Both outlive the reducer, the parameters too.
  GradReducer(std::vector<Parameter*> parameters, Communicator& dp, Communicator* tp, GradReducerOptions options);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  void begin_step(int num_microbatches);  // forgets the old gradients
  void begin_microbatch(int index);       // before its backward
  void end_microbatch(int index);         // after its backward
  // Waits; afterwards data.grad() of every parameter is the sum over microbatches and ranks (zero if it had none).
  void finish();

  int64_t num_buckets() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Slot {
    Parameter* parameter = nullptr;
    size_t bucket = 0;
    int64_t offset = 0;  // elements
    at::Tensor view;     // its part of the bucket, in its shape
    std::vector<at::Tensor> levels;
    bool arrived = false;  // in this microbatch
  };
  struct Bucket {
    std::vector<size_t> slots;
    at::ScalarType dtype = at::kFloat;
    int64_t size = 0;  // elements
    at::Tensor flat;
    std::vector<at::Tensor> levels;
    bool sum_over_tp = false;
    size_t pending = 0;  // gradients still missing in the last microbatch
    bool started = false;
    WorkPtr work;
  };
  class Hook;

  void plan_buckets();
  void place(Parameter* parameter, size_t bucket);
  void allocate(Bucket& bucket);
  bool passes_through(const Bucket& bucket) const;
  void on_grad(size_t slot);
  void fold(Slot& slot, const at::Tensor& grad);
  void start_ready_buckets();
  void start(Bucket& bucket);

  std::vector<Parameter*> parameters_;
  Communicator& dp_;
  Communicator* tp_;
  GradReducerOptions options_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  int num_microbatches_ = 0;
  int microbatch_ = -1;    // running, or -1
  int completed_ = 0;      // microbatches of this step
  size_t next_start_ = 0;  // buckets start in order, the same on every rank
};

}  // namespace ranklab
