#include "core/parallel/data/grad_reducer.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/base/text.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// With sharded gradients: the maximum number of reductions in flight before the oldest one is awaited.
constexpr size_t kMostBucketsUnderWay = 2;

std::vector<const std::string*> names_of(const FlatBucket& bucket) {
  std::vector<const std::string*> names;
  for (const GradSlot& slot : bucket.slots) names.push_back(&slot.parameter->name);
  return names;
}

bool holds_last_stage(const std::vector<Parameter*>& parameters) {
  return std::ranges::any_of(parameters, [](const Parameter* p) { return p->unit.place == ModelUnit::Place::kLast; });
}

// Without other ranks to share with, nothing is sharded. RETURNS: how a rank accumulates the gradients that it reduces
// together.
GradAccumulation settled(GradReducerOptions& options, bool shares) {
  if (!shares) options.zero = kZeroStages[0];
  options.each_microbatch = options.each_microbatch && options.zero.gradients;
  return options.each_microbatch ? GradAccumulation::kSequential : options.accumulation;
}

}  // namespace

// Called by autograd when a leaf's gradient is complete in this backward (once, even for a tied parameter).
class GradReducer::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradReducer* reducer, GradSlot* slot) : reducer_(reducer), slot_(slot) {}
  void operator()(const torch::autograd::Variable&) override { reducer_->on_grad(*slot_); }

 private:
  GradReducer* reducer_;
  GradSlot* slot_;
};

GradReducer::GradReducer(std::vector<Parameter*> parameters, Communicator& dp, Communicator* tp,
                         GradReducerOptions options)
    : parameters_(std::move(parameters)),
      dp_(dp),
      tp_(tp),
      options_(std::move(options)),
      accumulator_(grad_accumulator(settled(options_, dp.size() > 1 && !parameters_.empty()))) {
  plan_buckets();
  for (Bucket& bucket : buckets_) {
    for (GradSlot& slot : bucket.slots) {
      slot_of_[slot.parameter] = &slot;
      torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter->data, std::make_unique<Hook>(this, &slot));
    }
  }
}

GradReducer::~GradReducer() {
  for (const auto& [parameter, slot] : slot_of_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter->data, nullptr);
}

void GradReducer::plan_buckets() {
  std::vector<BucketItem> items;
  for (const Parameter* parameter : parameters_) {
    RANKLAB_CHECK(!parameter->sum_grad_over_tp || tp_ != nullptr, ErrorKind::kInternal, .where = "GradReducer",
                  .what = "a parameter needs its gradient summed over tp, and no tp group was given",
                  .got = parameter->name);
    items.push_back({.name = parameter->name,
                     .elements = parameter->data.numel(),
                     .dtype = dtype_of(grad_type(*parameter)),
                     .sum_over_tp = parameter->sum_grad_over_tp,
                     .pipeline_ranks = parameter->pipeline_ranks,
                     .unit = options_.zero.parameters ? parameter->unit.name : "",
                     .matrix = parameter->hidden_matrix ? options_.matrices : MatrixBuckets::kMixed});
  }
  const int num_shards = shards() ? dp_.size() : 1;
  std::map<std::string, int> buckets_named;
  for (BucketLayout& layout : lay_out_buckets(items, options_.bucket_bytes, num_shards)) {
    Bucket bucket;
    bucket.label = label_of(layout);
    if (const int same = ++buckets_named[bucket.label]; same > 1) bucket.label += " #" + std::to_string(same);
    bucket.axis = dp_.group().axis;
    bucket.shards = num_shards;
    for (const BucketPlace& place : layout.places)
      bucket.slots.push_back({.parameter = parameters_[place.item], .bucket = buckets_.size(), .offset = place.offset});
    bucket.type = grad_type(*bucket.slots[0].parameter);
    bucket.reduction = make_reduction({options_.zero, layout, parameters_, dp_, options_.replicas});
    bucket.layout = std::move(layout);
    buckets_.push_back(std::move(bucket));
  }
}

// The first and last unit whose gradients the bucket holds; units fill it from the last to the first.
std::string GradReducer::label_of(const BucketLayout& layout) const {
  const Parameter& first = *parameters_[layout.places.back().item];
  const std::string &begin = first.unit.name, &end = parameters_[layout.places.front().item]->unit.name;
  std::string label = begin == end ? begin : begin + " - " + end;
  if (first.is_expert) label += " experts";
  if (layout.sum_over_tp) label += " norms";
  return label;
}

std::vector<GradBucket> GradReducer::buckets() const {
  std::vector<GradBucket> all(buckets_.begin(), buckets_.end());
  for (GradBucket& bucket : all) bucket.parameters = parameters_;
  return all;
}

std::vector<Parameter*> GradReducer::owned() const {
  if (!shards()) return parameters_;
  std::vector<Parameter*> pieces;
  for (const Bucket& bucket : buckets_) {
    for (Parameter* piece : bucket.reduction->shard()->pieces()) pieces.push_back(piece);
  }
  return pieces;
}

std::pair<const Parameter*, int64_t> GradReducer::origin_of(const Parameter* piece) const {
  if (!shards()) return {piece, 0};
  for (const Bucket& bucket : buckets_) {
    if (const auto origin = bucket.reduction->shard()->origin_of(piece); origin.first != nullptr) return origin;
  }
  throw Error(ErrorKind::kInternal,
              {.where = "GradReducer", .what = "not a piece of these parameters", .got = piece->name});
}

void GradReducer::shard_parameters(ShardedUnits& units) {
  for (Bucket& bucket : buckets_) {
    BucketShard* shard = bucket.reduction->shard();
    if (shard == nullptr) continue;
    shard->keep_shard();
    if (options_.gather) shard->gather_in(options_.gather);
    units.add(bucket.layout.unit, *shard);
  }
}

void GradReducer::overlap_gathers(OverlappedGathers& gathers) {
  gathers_later_ = true;
  for (const Bucket& bucket : buckets_) {
    std::set<std::string> units;
    for (const BucketPlace& place : bucket.layout.places) units.insert(parameters_[place.item]->unit.name);
    if (BucketShard* shard = bucket.reduction->shard()) gathers.add(*shard, {units.begin(), units.end()});
  }
}

void GradReducer::gather_parameters() {
  for (Bucket& bucket : buckets_) {
    if (!gathers_later_) bucket.reduction->updated();
    tell(ZeroState::kUpdated, bucket);
  }
}

void GradReducer::begin_step(const std::vector<GradStage>& stages) {
  pass_.reset();
  order_.clear();
  next_start_ = 0;
  passes_left_ = 0;
  stage_slots_.clear();
  chains_.clear();
  for (Bucket& bucket : buckets_) {
    for (GradSlot& slot : bucket.slots) {
      slot.sum.begin_step();
      slot.stages.clear();
      slot.passes.clear();
    }
  }
  most_microbatches_ = 0;
  adds_ = false;
  for (const GradStage& stage : stages) begin_stage(stage);
  adds_ = adds_ || most_microbatches_ > 1;
  num_levels_ = accumulator_.levels(most_microbatches_);
  for (Parameter* parameter : parameters_) parameter->data.mutable_grad().reset();
  for (Bucket& bucket : buckets_) begin_bucket(bucket);
  if (options_.each_microbatch) return;
  order_.resize(buckets_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
}

void GradReducer::begin_stage(const GradStage& stage) {
  RANKLAB_CHECK(stage.num_microbatches > 0, ErrorKind::kInvalidArgument, .where = "GradReducer::begin_step",
                .what = "a step needs at least one microbatch", .got = std::to_string(stage.num_microbatches));
  passes_left_ += stage.num_microbatches;
  chains_.push_back(stage.chain);
  most_microbatches_ = std::max(most_microbatches_, stage.num_microbatches);
  std::vector<GradSlot*>& slots = stage_slots_.emplace_back();
  for (const Parameter* parameter : stage.parameters) {
    const auto found = slot_of_.find(parameter);
    RANKLAB_CHECK(found != slot_of_.end(), ErrorKind::kInternal, .where = "GradReducer::begin_step",
                  .what = "a stage has a parameter that is not reduced", .got = parameter->name);
    GradSlot& slot = *found->second;
    adds_ = adds_ || slot.sum.total > 0;
    if (slot.stages[stage.chain]++ == 0) slot.sum.total += stage.num_microbatches;
    most_microbatches_ = std::max(most_microbatches_, slot.sum.total);
    slots.push_back(&slot);
  }
}

void GradReducer::begin_bucket(Bucket& bucket) {
  const bool reduces = dp_.size() > 1 || (bucket.layout.sum_over_tp && tp_->size() > 1);
  const bool widens = bucket.type != bucket.slots[0].parameter->data.scalar_type();
  bucket.stays = !reduces && !adds_ && !widens;
  bucket.reductions = 0;
  expect(bucket);
  if (!bucket.stays && !options_.zero.gradients) bucket.allocate(num_levels_);
}

// Determines what the bucket's next reduction waits for.
void GradReducer::expect(Bucket& bucket) {
  bucket.pending = 0;
  for (GradSlot& slot : bucket.slots) {
    slot.fresh = false;
    if (slot.sum.completed < slot.sum.total) ++bucket.pending;
  }
  bucket.touched = bucket.collected = false;
}

void GradReducer::begin_pass(const GradPass& pass) {
  RANKLAB_CHECK(!pass_ && pass.stage >= 0 && static_cast<size_t>(pass.stage) < stage_slots_.size(),
                ErrorKind::kInternal, .where = "GradReducer::begin_pass",
                .what = pass_ ? "a pass is running" : "no such stage", .got = std::to_string(pass.stage),
                .want = strprintf("0 to %zu", stage_slots_.size()));
  pass_ = pass;
  for (GradSlot* slot : stage_slots_[static_cast<size_t>(pass.stage)]) slot->arrived = false;
  if (options_.each_microbatch) order_buckets_of(pass);
}

// Whether the pass completes its microbatch for the parameter, in all stages that have it.
bool GradReducer::completes(const GradSlot& slot, const GradPass& pass) const {
  const auto done = slot.passes.find(pass.microbatch);
  const int before = done == slot.passes.end() ? 0 : done->second;
  return before + 1 == slot.stages.at(chains_[static_cast<size_t>(pass.stage)]);
}

// Orders the buckets that the pass will make ready. The order is determined when the pass begins, so that ranks start
// the same buckets in the same order even if their gradients arrive in different orders (an expert without tokens has
// none).
void GradReducer::order_buckets_of(const GradPass& pass) {
  order_.clear();
  next_start_ = 0;
  if (!pass.completes) return;
  std::map<size_t, size_t> made_ready;  // number of parameters, by bucket
  for (const GradSlot* slot : stage_slots_[static_cast<size_t>(pass.stage)]) {
    ++buckets_[slot->bucket].arriving;
    if (!slot->fresh && completes(*slot, pass)) ++made_ready[slot->bucket];
  }
  for (const auto& [bucket, parameters] : made_ready)
    if (parameters == buckets_[bucket].pending) order_.push_back(bucket);
}

void GradReducer::end_pass() {
  RANKLAB_CHECK(pass_.has_value(), ErrorKind::kInternal, .where = "GradReducer::end_pass",
                .what = "no pass is running");
  if (pass_->completes) {
    // Parameters whose gradients came in an earlier pass of this backward, or that this loss does not use: every rank
    // still takes part in their reduction.
    for (GradSlot* slot : stage_slots_[static_cast<size_t>(pass_->stage)]) {
      if (!slot->arrived) complete(*slot);
    }
    --passes_left_;
  }
  if (options_.each_microbatch) {
    start_ready_buckets();
    for (const size_t bucket : order_) collect(buckets_[bucket]);
  }
  pass_.reset();
}

void GradReducer::on_grad(GradSlot& slot) {
  at::Tensor& grad = slot.parameter->data.mutable_grad();
  if (!grad.defined()) return;  // deferred: this backward computed only the input's gradient
  if (TypeWatch* watch = type_watch_of_thread) watch->arrived(slot.parameter->name, grad);
  if (pass_ && !buckets_[slot.bucket].stays) {
    RANKLAB_CHECK(!slot.arrived, ErrorKind::kInternal, .where = "GradReducer",
                  .what = "a gradient arrived twice in one pass", .got = slot.parameter->name,
                  .fix = "run one backward per microbatch");
    const at::Tensor arrived = std::exchange(grad, {});
    add(slot, arrived);
    // Here and not only at the end of the pass, so that reductions start during backward.
    if (pass_->completes) complete(slot);
  }
  slot.arrived = true;
}

void GradReducer::add(GradSlot& slot, const at::Tensor& grad) {
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  Bucket& bucket = buckets_[slot.bucket];
  bucket.allocate(num_levels_);
  if (!std::exchange(bucket.touched, true)) tell(ZeroState::kPartial, bucket);
  if (injected(InjectedBug::kLastMicrobatchLocal) && slot.sum.total > 1 && slot.sum.completed + 1 == slot.sum.total) {
    slot.after_sum = slot.after_sum.defined() ? slot.after_sum + grad : grad;
    return;
  }
  const bool first = slot.sum.empty;
  accumulator_.add(slot.sum, grad, pass_->microbatch);
  if (injected(InjectedBug::kGradBufferStale) && first && !is_freed(slot.parameter->data))
    slot.sum.view.add_(slot.parameter->data);
}

// A stage has completed one more microbatch of this parameter.
void GradReducer::complete(GradSlot& slot) {
  Bucket& bucket = buckets_[slot.bucket];
  if (bucket.stays) return;
  if (bucket.arriving > 0) --bucket.arriving;
  const bool whole = completes(slot, *pass_);
  if (slot.stages.at(chains_[static_cast<size_t>(pass_->stage)]) > 1) ++slot.passes[pass_->microbatch];
  if (!whole) return;
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  bucket.allocate(num_levels_);
  accumulator_.complete(slot.sum, pass_->microbatch);
  if (!options_.each_microbatch && slot.sum.completed < slot.sum.total) return;
  if (std::exchange(slot.fresh, true)) return;
  --bucket.pending;
  if (options_.overlap) start_ready_buckets();
}

void GradReducer::start_ready_buckets() {
  for (; next_start_ < order_.size(); ++next_start_) {
    Bucket& bucket = buckets_[order_[next_start_]];
    if (bucket.stays) continue;
    if (bucket.pending + bucket.arriving > 0) return;
    if (options_.zero.gradients && next_start_ >= kMostBucketsUnderWay)
      collect(buckets_[order_[next_start_ - kMostBucketsUnderWay]]);
    start(bucket);
  }
}

void GradReducer::start(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  ++bucket.reductions;
  bucket.last_reduction =
      std::ranges::all_of(bucket.slots, [](const GradSlot& slot) { return slot.sum.completed == slot.sum.total; });
  expect(bucket);
  if (options_.local)
    for (const GradSlot& slot : bucket.slots) options_.local(*slot.parameter, slot.sum.view);
  if (TypeWatch* watch = type_watch_of_thread) watch->begin_bucket(bucket.flat, names_of(bucket));
  if (bucket.layout.sum_over_tp && tp_->size() > 1) {
    tp_->all_reduce(bucket.flat);
    if (injected(InjectedBug::kNormAveraged)) bucket.flat.div_(tp_->size());
  }
  if (injected(InjectedBug::kLastStageUnsynced) && !shards() && holds_last_stage(parameters_)) return;
  bucket.reduction->start(bucket);
}

void GradReducer::collect(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  if (std::exchange(bucket.collected, true)) return;
  if (bucket.stays || bucket.reduction->collect(bucket).defined()) tell(ZeroState::kReduced, bucket);
}

void GradReducer::finish() {
  RANKLAB_CHECK(passes_left_ == 0 && !pass_, ErrorKind::kInternal, .where = "GradReducer::finish",
                .what = "not all microbatches ran", .got = std::to_string(passes_left_) + " missing", .want = "none");
  start_ready_buckets();
  for (Bucket& bucket : buckets_) collect(bucket);
  for (Bucket& bucket : buckets_) {
    if (bucket.reduction->finish()) tell(ZeroState::kReduced, bucket);
    if (bucket.reduction->shard() == nullptr) hand_over(bucket);
  }
}

void GradReducer::hand_over(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  for (GradSlot& slot : bucket.slots) {
    at::Tensor& grad = slot.parameter->data.mutable_grad();
    if (!bucket.stays) {
      grad = slot.sum.view;
      if (TypeWatch* watch = type_watch_of_thread) watch->handed_over(slot.parameter->name, grad);
      if (slot.after_sum.defined()) grad.add_(std::exchange(slot.after_sum, {}));
    } else if (!grad.defined()) {
      const NoCostScope no_cost;
      grad = at::zeros_like(slot.parameter->data);
    }
  }
}

}  // namespace ranklab
