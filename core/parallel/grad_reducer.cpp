#include "core/parallel/grad_reducer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/parallel/grad_tree.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int64_t kAlignmentElements = 16;  // 64 bytes of fp32: each gradient starts on a cache line

int64_t itemsize(const Parameter& parameter) { return static_cast<int64_t>(parameter.data.itemsize()); }
int64_t bytes_of(const Parameter& parameter) { return parameter.data.numel() * itemsize(parameter); }

}  // namespace

// Called by autograd when a leaf's gradient of this backward is complete (once, also for a tied parameter).
class GradReducer::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradReducer* reducer, size_t slot) : reducer_(reducer), slot_(slot) {}
  void operator()(const torch::autograd::Variable&) override { reducer_->on_grad(slot_); }

 private:
  GradReducer* reducer_;
  size_t slot_;
};

GradReducer::GradReducer(std::vector<Parameter*> parameters, Communicator& dp, Communicator* tp,
                         GradReducerOptions options)
    : parameters_(std::move(parameters)), dp_(dp), tp_(tp), options_(options) {
  plan_buckets();
  for (size_t i = 0; i < slots_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(slots_[i].parameter->data, std::make_unique<Hook>(this, i));
  }
}

GradReducer::~GradReducer() {
  for (const Slot& slot : slots_) torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter->data, nullptr);
}

void GradReducer::plan_buckets() {
  constexpr size_t kNone = static_cast<size_t>(-1);
  for (const bool sum_over_tp : {false, true}) {  // the tp-summed bucket last: it starts when backward is over
    size_t open = kNone;
    for (auto it = parameters_.rbegin(); it != parameters_.rend(); ++it) {
      Parameter* parameter = *it;
      if (parameter->sum_grad_over_tp != sum_over_tp) continue;
      RANKLAB_CHECK(!sum_over_tp || tp_ != nullptr, ErrorKind::kInternal, .where = "GradReducer",
                    .what = "a parameter needs its gradient summed over tp, and no tp group was given",
                    .got = parameter->name);
      const bool fits =
          open != kNone && buckets_[open].dtype == parameter->data.scalar_type() &&
          (sum_over_tp || bytes_of(*parameter) + buckets_[open].size * itemsize(*parameter) <= options_.bucket_bytes);
      if (!fits) {
        open = buckets_.size();
        Bucket& bucket = buckets_.emplace_back();
        bucket.dtype = parameter->data.scalar_type();
        bucket.sum_over_tp = sum_over_tp;
      }
      place(parameter, open);
    }
  }
}

void GradReducer::place(Parameter* parameter, size_t bucket_index) {
  Bucket& bucket = buckets_[bucket_index];
  Slot& slot = slots_.emplace_back();
  slot.parameter = parameter;
  slot.bucket = bucket_index;
  slot.offset = bucket.size;
  bucket.slots.push_back(slots_.size() - 1);
  const int64_t count = parameter->data.numel();
  bucket.size += (count + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
}

// Nothing to reduce and nothing to add in a special order: autograd's own in-place accumulation is enough.
bool GradReducer::passes_through(const Bucket& bucket) const {
  const bool reduces = dp_.size() > 1 || (bucket.sum_over_tp && tp_->size() > 1);
  return !reduces && (options_.accumulation == GradAccumulation::kSequential || num_microbatches_ == 1);
}

void GradReducer::allocate(Bucket& bucket) {
  const MemoryScope memory(MemoryCategory::kGradients);
  const NoCostScope no_cost;
  const auto options = slots_[bucket.slots[0]].parameter->data.options();
  const auto view_of = [&](const at::Tensor& flat, const Slot& slot) {
    return flat.narrow(0, slot.offset, slot.parameter->data.numel()).view(slot.parameter->data.sizes());
  };
  if (!bucket.flat.defined()) {
    bucket.flat = at::zeros({bucket.size}, options.requires_grad(false));
    for (const size_t i : bucket.slots) slots_[i].view = view_of(bucket.flat, slots_[i]);
  }
  if (options_.accumulation != GradAccumulation::kPairwise) return;
  while (static_cast<int>(bucket.levels.size()) < grad_tree_levels(num_microbatches_)) {
    bucket.levels.push_back(at::zeros_like(bucket.flat));
    for (const size_t i : bucket.slots) slots_[i].levels.push_back(view_of(bucket.levels.back(), slots_[i]));
  }
}

void GradReducer::begin_step(int num_microbatches) {
  RANKLAB_CHECK(num_microbatches > 0, ErrorKind::kInvalidArgument, .where = "GradReducer::begin_step",
                .what = "a step needs at least one microbatch", .got = std::to_string(num_microbatches));
  num_microbatches_ = num_microbatches;
  completed_ = 0;
  microbatch_ = -1;
  next_start_ = 0;
  for (Parameter* parameter : parameters_) parameter->data.mutable_grad().reset();
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.slots.size();
    bucket.started = false;
    bucket.work = nullptr;
    if (!passes_through(bucket)) allocate(bucket);
  }
}

void GradReducer::begin_microbatch(int index) {
  RANKLAB_CHECK(index == completed_ && index < num_microbatches_ && microbatch_ < 0, ErrorKind::kInternal,
                .where = "GradReducer::begin_microbatch", .what = "microbatches out of order",
                .got = std::to_string(index), .want = strprintf("%d of %d", completed_, num_microbatches_));
  microbatch_ = index;
  for (Slot& slot : slots_) slot.arrived = false;
}

void GradReducer::on_grad(size_t index) {
  Slot& slot = slots_[index];
  Bucket& bucket = buckets_[slot.bucket];
  if (microbatch_ < 0 || passes_through(bucket)) return;
  RANKLAB_CHECK(!slot.arrived, ErrorKind::kInternal, .where = "GradReducer",
                .what = "a gradient arrived twice in one microbatch", .got = slot.parameter->name,
                .fix = "run one backward per microbatch");
  at::Tensor grad = std::move(slot.parameter->data.mutable_grad());
  slot.parameter->data.mutable_grad().reset();
  fold(slot, grad);
}

void GradReducer::fold(Slot& slot, const at::Tensor& grad) {
  // On a GPU the weight-gradient GEMM accumulates into the bucket directly (Megatron's gradient accumulation fusion).
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  const bool is_last = microbatch_ + 1 == num_microbatches_;
  slot.arrived = true;
  if (options_.accumulation == GradAccumulation::kPairwise) {
    fold_into_tree(grad, microbatch_, is_last, slot.levels, slot.view);
  } else if (microbatch_ == 0) {
    slot.view.copy_(grad);
  } else {
    slot.view.add_(grad);
  }
  if (!is_last) return;
  --buckets_[slot.bucket].pending;
  if (options_.overlap) start_ready_buckets();
}

void GradReducer::start_ready_buckets() {
  while (next_start_ < buckets_.size()) {
    Bucket& bucket = buckets_[next_start_];
    if (bucket.pending > 0 && !passes_through(bucket)) return;
    start(bucket);
    ++next_start_;
  }
}

void GradReducer::start(Bucket& bucket) {
  if (bucket.started || passes_through(bucket)) return;
  bucket.started = true;
  const at::NoGradGuard no_grad;
  if (bucket.sum_over_tp && tp_->size() > 1) tp_->all_reduce(bucket.flat);
  if (dp_.size() > 1) bucket.work = dp_.all_reduce_async(bucket.flat);
}

void GradReducer::end_microbatch(int index) {
  RANKLAB_CHECK(index == microbatch_, ErrorKind::kInternal, .where = "GradReducer::end_microbatch",
                .what = "this microbatch is not running", .got = std::to_string(index),
                .want = std::to_string(microbatch_));
  for (Slot& slot : slots_) {  // parameters that this loss does not use: every rank still takes part in their reduction
    if (slot.arrived || passes_through(buckets_[slot.bucket])) continue;
    fold(slot, at::zeros_like(slot.view));
  }
  microbatch_ = -1;
  ++completed_;
}

void GradReducer::finish() {
  RANKLAB_CHECK(completed_ == num_microbatches_ && microbatch_ < 0, ErrorKind::kInternal,
                .where = "GradReducer::finish", .what = "not all microbatches ran", .got = std::to_string(completed_),
                .want = std::to_string(num_microbatches_));
  start_ready_buckets();
  for (Bucket& bucket : buckets_) {
    if (bucket.work) bucket.work->wait();
    bucket.work = nullptr;
    for (const size_t i : bucket.slots) {
      at::Tensor& grad = slots_[i].parameter->data.mutable_grad();
      if (!passes_through(bucket)) {
        grad = slots_[i].view;
      } else if (!grad.defined()) {
        const NoCostScope no_cost;
        grad = at::zeros_like(slots_[i].parameter->data);
      }
    }
  }
}

}  // namespace ranklab
