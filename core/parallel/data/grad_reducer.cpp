#include "core/parallel/data/grad_reducer.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/parallel/data/grad_tree.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

BucketItem item_of(const Parameter& parameter, at::ScalarType type, bool by_unit) {
  return {.name = parameter.name,
          .elements = parameter.data.numel(),
          .dtype = dtype_of(type),
          .sum_over_tp = parameter.sum_grad_over_tp,
          .pipeline_ranks = parameter.pipeline_ranks,
          .unit = by_unit ? parameter_unit(parameter.name) : ""};
}

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
  std::vector<BucketItem> items;
  for (const Parameter* parameter : parameters_) {
    RANKLAB_CHECK(!parameter->sum_grad_over_tp || tp_ != nullptr, ErrorKind::kInternal, .where = "GradReducer",
                  .what = "a parameter needs its gradient summed over tp, and no tp group was given",
                  .got = parameter->name);
    items.push_back(
        item_of(*parameter, grad_type(*parameter), shards() && options_.sharding == GradSharding::kParameters));
  }
  for (BucketLayout& layout : lay_out_buckets(items, options_.bucket_bytes, shards() ? dp_.size() : 1)) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.label = label_of(layout);
    for (const BucketPlace& place : layout.places) {
      bucket.slots.push_back(slots_.size());
      Slot& slot = slots_.emplace_back();
      slot.parameter = parameters_[place.item];
      slot.bucket = buckets_.size() - 1;
      slot.offset = place.offset;
    }
    if (shards()) bucket.shard = std::make_unique<BucketShard>(layout, parameters_, dp_);
    bucket.layout = std::move(layout);
  }
}

// Of the units whose gradients lie in it; they fill it from the last to the first.
std::string GradReducer::label_of(const BucketLayout& layout) const {
  const Parameter& first = *parameters_[layout.places.back().item];
  const std::string begin = parameter_unit(first.name),
                    end = parameter_unit(parameters_[layout.places.front().item]->name);
  std::string label = begin == end ? begin : begin + " - " + end;
  if (first.is_expert) label += " experts";
  if (layout.sum_over_tp) label += " norms";
  const auto same = std::count_if(buckets_.begin(), buckets_.end(),
                                  [&](const Bucket& bucket) { return bucket.label.starts_with(label); });
  return same == 0 ? label : label + " #" + std::to_string(same + 1);
}

std::vector<GradReducer::BucketInfo> GradReducer::buckets() const {
  std::vector<BucketInfo> result;
  for (const Bucket& bucket : buckets_) {
    BucketInfo info{.label = bucket.label, .elements = bucket.layout.elements, .padding = bucket.layout.padding()};
    const Parameter& first = *slots_[bucket.slots[0]].parameter;
    info.element_bytes = static_cast<int64_t>(first.data.itemsize());
    info.grad_bytes = static_cast<int64_t>(c10::elementSize(grad_type(first)));
    info.shards = dp_.size(), info.shard = dp_.rank();
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<GradBucket> GradReducer::layouts() const {
  std::vector<GradBucket> result;
  for (const Bucket& bucket : buckets_) {
    result.push_back({.axis = dp_.group().axis,
                      .shards = shards() ? dp_.size() : 1,
                      .layout = bucket.layout,
                      .parameters = {parameters_.begin(), parameters_.end()}});
  }
  return result;
}

std::vector<Parameter*> GradReducer::owned() const {
  if (!shards()) return parameters_;
  std::vector<Parameter*> pieces;
  for (const Bucket& bucket : buckets_) {
    for (Parameter* piece : bucket.shard->pieces()) pieces.push_back(piece);
  }
  return pieces;
}

std::pair<const Parameter*, int64_t> GradReducer::origin_of(const Parameter* piece) const {
  for (const Bucket& bucket : buckets_) {
    if (const auto origin = bucket.shard->origin_of(piece); origin.first != nullptr) return origin;
  }
  throw Error(ErrorKind::kInternal,
              {.where = "GradReducer", .what = "not a piece of these parameters", .got = piece->name});
}

void GradReducer::share_out_parameters(ShardedUnits& units) {
  for (Bucket& bucket : buckets_) {
    if (!bucket.shard) continue;
    bucket.shard->keep_shard();
    if (options_.gather) bucket.shard->gather_in(options_.gather);
    units.add(bucket.layout.unit, *bucket.shard);
  }
}

void GradReducer::gather_parameters() {
  for (Bucket& bucket : buckets_) {
    if (bucket.shard && options_.sharding != GradSharding::kParameters) bucket.shard->gather();
    if (bucket.shard && options_.sharding == GradSharding::kParameters) bucket.shard->updated_shard();
    tell(ZeroState::kUpdated, bucket);
  }
}

// Nothing to reduce, to add or to widen: the gradient may stay where autograd made it.
bool GradReducer::passes_through(const Bucket& bucket) const {
  const Parameter& first = *slots_[bucket.slots[0]].parameter;
  if (grad_type(first) != first.data.scalar_type()) return false;
  const bool reduces = dp_.size() > 1 || (bucket.layout.sum_over_tp && tp_->size() > 1);
  return !reduces && most_microbatches_ == 1 && !shares_parameters_;
}

void GradReducer::allocate(Bucket& bucket) {
  const MemoryScope memory(MemoryCategory::kGradients);
  const NoCostScope no_cost;
  const Parameter& first = *slots_[bucket.slots[0]].parameter;
  const auto options = first.data.options().requires_grad(false).dtype(grad_type(first));
  const auto view_of = [&](const at::Tensor& flat, const Slot& slot) {
    return flat.narrow(0, slot.offset, slot.parameter->data.numel()).view(slot.parameter->data.sizes());
  };
  if (!bucket.flat.defined()) {
    bucket.flat = at::zeros({bucket.layout.elements}, options);
    for (const size_t i : bucket.slots) slots_[i].view = view_of(bucket.flat, slots_[i]);
  }
  if (options_.accumulation != GradAccumulation::kPairwise) return;
  while (static_cast<int>(bucket.levels.size()) < grad_tree_levels(most_microbatches_)) {
    bucket.levels.push_back(at::zeros_like(bucket.flat));
    for (const size_t i : bucket.slots) slots_[i].levels.push_back(view_of(bucket.levels.back(), slots_[i]));
  }
}

void GradReducer::release(Bucket& bucket) {
  bucket.flat.reset();
  bucket.levels.clear();
  for (const size_t i : bucket.slots) {
    slots_[i].view.reset();
    slots_[i].levels.clear();
  }
}

void GradReducer::begin_step(int num_microbatches) {
  next_microbatch_ = 0;
  begin_step({GradStage{parameters_, num_microbatches}});
}

void GradReducer::begin_step(const std::vector<GradStage>& stages) {
  pass_.reset();
  next_start_ = 0;
  passes_left_ = 0;
  most_microbatches_ = 0;
  shares_parameters_ = false;
  stage_slots_.assign(stages.size(), {});
  for (Slot& slot : slots_) {
    slot.total = slot.completed = 0;
    slot.empty = true;
    slot.partial.clear();
  }
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int count = stages[stage].num_microbatches;
    RANKLAB_CHECK(count > 0, ErrorKind::kInvalidArgument, .where = "GradReducer::begin_step",
                  .what = "a step needs at least one microbatch", .got = std::to_string(count));
    passes_left_ += count;
    most_microbatches_ = std::max(most_microbatches_, count);
    for (const Parameter* parameter : stages[stage].parameters) {
      const auto slot =
          std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.parameter == parameter; });
      RANKLAB_CHECK(slot != slots_.end(), ErrorKind::kInternal, .where = "GradReducer::begin_step",
                    .what = "a stage has a parameter that is not reduced", .got = parameter->name);
      RANKLAB_CHECK(slot->total == 0 || options_.accumulation == GradAccumulation::kSequential,
                    ErrorKind::kInvalidArgument, .where = "GradReducer::begin_step",
                    .what = "pairwise accumulation needs each parameter in one stage", .got = parameter->name,
                    .fix = "--grad-accumulation sequential");
      shares_parameters_ = shares_parameters_ || slot->total > 0;
      slot->total += count;
      stage_slots_[stage].push_back(static_cast<size_t>(slot - slots_.begin()));
    }
  }
  for (Parameter* parameter : parameters_) parameter->data.mutable_grad().reset();
  for (Bucket& bucket : buckets_) {
    bucket.pending = static_cast<size_t>(
        std::count_if(bucket.slots.begin(), bucket.slots.end(), [&](size_t i) { return slots_[i].total > 0; }));
    bucket.started = false;
    bucket.touched = false;
    bucket.work = nullptr;
    const bool later = keeps_shards_only();
    if (!passes_through(bucket) && !later) allocate(bucket);
  }
}

void GradReducer::begin_pass(const GradPass& pass) {
  RANKLAB_CHECK(!pass_ && pass.stage >= 0 && static_cast<size_t>(pass.stage) < stage_slots_.size(),
                ErrorKind::kInternal, .where = "GradReducer::begin_pass",
                .what = pass_ ? "a pass is running" : "no such stage", .got = std::to_string(pass.stage),
                .want = strprintf("0 to %zu", stage_slots_.size()));
  pass_ = pass;
  for (const size_t slot : stage_slots_[static_cast<size_t>(pass.stage)]) slots_[slot].arrived = false;
}

void GradReducer::end_pass() {
  RANKLAB_CHECK(pass_.has_value(), ErrorKind::kInternal, .where = "GradReducer::end_pass",
                .what = "no pass is running");
  if (pass_->completes) {
    // What came with an earlier part of this backward, or is not used by this loss: every rank still takes part in its
    // reduction.
    for (const size_t slot : stage_slots_[static_cast<size_t>(pass_->stage)]) {
      if (!slots_[slot].arrived) complete(slots_[slot]);
    }
    --passes_left_;
  }
  pass_.reset();
}

void GradReducer::begin_microbatch(int index) {
  RANKLAB_CHECK(index == next_microbatch_ && passes_left_ > 0 && !pass_, ErrorKind::kInternal,
                .where = "GradReducer::begin_microbatch", .what = "microbatches out of order",
                .got = std::to_string(index), .want = std::to_string(next_microbatch_));
  begin_pass({.stage = 0, .microbatch = index});
}

void GradReducer::end_microbatch(int index) {
  RANKLAB_CHECK(index == next_microbatch_, ErrorKind::kInternal, .where = "GradReducer::end_microbatch",
                .what = "this microbatch is not running", .got = std::to_string(index),
                .want = std::to_string(next_microbatch_));
  end_pass();
  ++next_microbatch_;
}

void GradReducer::on_grad(size_t index) {
  Slot& slot = slots_[index];
  if (!slot.parameter->data.grad().defined()) return;  // deferred: this backward had only the input's gradient
  if (!pass_ || passes_through(buckets_[slot.bucket])) {
    slot.arrived = true;
    return;
  }
  RANKLAB_CHECK(!slot.arrived, ErrorKind::kInternal, .where = "GradReducer",
                .what = "a gradient arrived twice in one pass", .got = slot.parameter->name,
                .fix = "run one backward per microbatch");
  const at::Tensor grad = std::move(slot.parameter->data.mutable_grad());
  slot.parameter->data.mutable_grad().reset();
  add(slot, grad);
  slot.arrived = true;
  if (pass_->completes) complete(slot);  // now and not at the end of the pass, so that buckets start during backward
}

// On a GPU the weight-gradient GEMM accumulates into the bucket directly (Megatron's gradient accumulation fusion).
void GradReducer::add(Slot& slot, const at::Tensor& grad) {
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  Bucket& bucket = buckets_[slot.bucket];
  allocate(bucket);
  if (!std::exchange(bucket.touched, true)) tell(ZeroState::kPartial, bucket);
  if (options_.accumulation == GradAccumulation::kPairwise) {
    at::Tensor& sum = slot.partial[pass_->microbatch];
    sum = sum.defined() ? sum + grad : grad.to(slot.view.scalar_type());
  } else if (slot.empty) {
    slot.view.copy_(grad);
  } else {
    slot.view.add_(grad);
  }
  slot.empty = false;
}

// One more microbatch of this parameter is whole.
void GradReducer::complete(Slot& slot) {
  Bucket& bucket = buckets_[slot.bucket];
  if (passes_through(bucket)) return;
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  const bool is_last = slot.completed + 1 == slot.total;
  allocate(bucket);
  if (options_.accumulation == GradAccumulation::kPairwise) {
    at::Tensor grad = std::exchange(slot.partial[pass_->microbatch], {});
    if (!grad.defined()) grad = at::zeros_like(slot.view);
    fold_into_tree(grad, slot.completed, is_last, slot.levels, slot.view);
    slot.partial.erase(pass_->microbatch);
  } else if (is_last && slot.empty) {
    slot.view.zero_();
  }
  ++slot.completed;
  if (!is_last) return;
  --bucket.pending;
  if (options_.overlap) start_ready_buckets();
}

void GradReducer::start_ready_buckets() {
  for (; next_start_ < buckets_.size(); ++next_start_) {
    Bucket& bucket = buckets_[next_start_];
    if (bucket.pending > 0 && !passes_through(bucket)) return;
    const bool bounded = keeps_shards_only();
    if (bounded && next_start_ >= kMostBucketsUnderWay) collect(buckets_[next_start_ - kMostBucketsUnderWay]);
    start(bucket);
  }
}

void GradReducer::start(Bucket& bucket) {
  if (bucket.started || passes_through(bucket)) return;
  bucket.started = true;
  const at::NoGradGuard no_grad;
  if (bucket.layout.sum_over_tp && tp_->size() > 1) tp_->all_reduce(bucket.flat);
  if (dp_.size() == 1) return;
  if (!bucket.shard) {
    bucket.work = dp_.all_reduce_async(bucket.flat);
    return;
  }
  const MemoryScope memory(keeps_shards_only() ? MemoryCategory::kGradients : MemoryCategory::kBuffers);
  bucket.work = dp_.reduce_scatter_async(bucket.flat);
}

// Waits. On a GPU the shard of stage 1 is reduced in its place.
void GradReducer::collect(Bucket& bucket) {
  if (!bucket.work) return;
  at::Tensor shard = std::exchange(bucket.work, nullptr)->wait();
  if (!bucket.shard) return tell(ZeroState::kReduced, bucket);
  const at::NoGradGuard no_grad;
  {
    const NoCostScope no_cost;
    if (keeps_shards_only()) {
      release(bucket);
    } else {
      shard = bucket.flat.narrow(0, dp_.rank() * shard.numel(), shard.numel()).copy_(shard);
    }
    bucket.shard->set_grads(shard);
  }
  if (!options_.replicas) return tell(ZeroState::kReduced, bucket);
  bucket.replica_work = options_.replicas->all_reduce_async(shard);  // in place
}

void GradReducer::finish() {
  RANKLAB_CHECK(passes_left_ == 0 && !pass_, ErrorKind::kInternal, .where = "GradReducer::finish",
                .what = "not all microbatches ran", .got = std::to_string(passes_left_) + " missing", .want = "none");
  start_ready_buckets();
  for (Bucket& bucket : buckets_) {
    collect(bucket);
    if (bucket.shard || dp_.size() > 1) continue;
    tell(ZeroState::kReduced, bucket);
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.replica_work) {
      std::exchange(bucket.replica_work, nullptr)->wait();
      tell(ZeroState::kReduced, bucket);
    }
    if (bucket.shard) continue;
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
