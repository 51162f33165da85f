#include "core/plan/step_walk.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/pipeline/schedules.h"
#include "core/plan/owned_share.h"
#include "core/plan/planned_parameters.h"
#include "core/plan/product_walk.h"
#include "core/plan/stage_walk.h"

namespace ranklab {
namespace {

// Gradient buckets filling up during the last backward of each stage.
class BucketWalk {
 public:
  BucketWalk(const StepShape& shape, const std::vector<PlannedParameter>& parameters, std::vector<int> passes,
             StepVisitor& visitor)
      : shape_(shape), visitor_(visitor), parameters_(parameters), passes_(std::move(passes)) {
    buckets_ = planned_buckets(shape, parameters_);
    bucket_of_.resize(parameters_.size());
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const BucketPlace& place : buckets_[b].layout.places) bucket_of_[place.item] = b;
      pending_.push_back(static_cast<int64_t>(buckets_[b].layout.places.size()));
    }
    tickets_.assign(buckets_.size(), -1);
    missing_.assign(parameters_.size(), true);
  }

  // Before a pass that completes gradients of a stage of this rank.
  void begin_pass(int local_stage) { --passes_[static_cast<size_t>(local_stage)]; }

  // The gradients of a part are complete: of the latest made module of that kind whose gradients are missing.
  void arrive(int local_stage, ModulePart part) {
    if (passes_[static_cast<size_t>(local_stage)] > 0) return;
    const auto awaited = [&](size_t i) {
      return missing_[i] && parameters_[i].local_stage == local_stage && parameters_[i].part == part;
    };
    size_t end = parameters_.size();
    while (end > 0 && !awaited(end - 1)) --end;
    for (; end > 0 && awaited(end - 1); --end) {
      missing_[end - 1] = false;
      --pending_[bucket_of_[end - 1]];
    }
    if (shape_.overlap_grad_reduce) start_ready();
  }

  void finish() {
    start_ready();
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) wait(bucket);
    for (const int ticket : replica_tickets_) visitor_.wait(ticket);
    replica_tickets_.clear();
  }

  // What was updated in shards, back into the parameters.
  void gather() {
    if (shape_.zero_stage == 3) return agree();  // whoever uses them gathers
    for (const PlannedBucket& bucket : buckets_) {
      if (bucket.shards > 1) visitor_.wait(visitor_.post(bucket.axis, Verb::kAllGather, bucket.parameter_bytes()));
    }
  }
  const std::vector<PlannedBucket>& buckets() const { return buckets_; }

 private:
  // core/parallel/shard_codec.h
  void agree() {
    constexpr int64_t kNumberBytes = 4;
    for (const PlannedBucket& bucket : buckets_) {
      if (bucket.coded_groups > 0)
        visitor_.wait(visitor_.post(bucket.axis, Verb::kAllReduce, bucket.coded_groups * kNumberBytes));
    }
  }

  void start_ready() {
    for (; next_start_ < buckets_.size() && pending_[next_start_] == 0; ++next_start_) {
      const PlannedBucket& bucket = buckets_[next_start_];
      if (bucket.shards > 1 && shape_.zero_stage >= 2) wait_for_the_one_before_the_last(bucket.is_expert);
      if (bucket.layout.sum_over_tp) visitor_.wait(visitor_.post(Axis::kTp, Verb::kAllReduce, bucket.bytes()));
      if (shape_.dims.size(bucket.axis) == 1) continue;
      const Verb verb = bucket.shards > 1 ? Verb::kReduceScatter : Verb::kAllReduce;
      tickets_[next_start_] = visitor_.post(bucket.axis, verb, bucket.bytes());
    }
  }

  void wait(size_t bucket) {
    if (tickets_[bucket] < 0) return;
    visitor_.wait(tickets_[bucket]);
    tickets_[bucket] = -1;
    const PlannedBucket& one = buckets_[bucket];
    if (shape_.dims.replicas == 1 || one.shards == 1) return;
    const Axis over = one.is_expert ? Axis::kEdpReplica : Axis::kDpReplica;
    replica_tickets_.push_back(visitor_.post(over, Verb::kAllReduce, one.shard_bytes()));
  }

  // GradReducer with gradients shared out: two of its buckets may be under way.
  void wait_for_the_one_before_the_last(bool is_expert) {
    int before = 0;
    for (size_t b = next_start_; b-- > 0;) {
      if (buckets_[b].is_expert == is_expert && ++before == 2) return wait(b);
    }
  }

  const StepShape& shape_;
  StepVisitor& visitor_;
  const std::vector<PlannedParameter>& parameters_;
  std::vector<int> passes_;  // of each stage of the rank, still to come
  std::vector<PlannedBucket> buckets_;
  std::vector<size_t> bucket_of_;
  std::vector<int64_t> pending_;
  std::vector<int> tickets_;
  std::vector<int> replica_tickets_;
  std::vector<bool> missing_;  // of each parameter: its gradient
  size_t next_start_ = 0;
};

class RankWalk {
 public:
  RankWalk(const StepShape& shape, const Schedule& schedule, int rank, StepVisitor& visitor)
      : s_(shape),
        schedule_(schedule),
        rank_(rank),
        v_(visitor),
        parameters_(planned_parameters(shape, schedule, rank)),
        buckets_(shape, parameters_, passes(), visitor),
        units_(buckets_.buckets(), visitor) {
    const std::vector<int> stages = schedule_.stages_of(rank_);
    for (size_t i = 0; i < stages.size(); ++i) {
      const int local = static_cast<int>(i);
      local_of_[stages[i]] = local;
      walks_.push_back(std::make_unique<StageWalk>(
          s_, schedule_.part(stages[i]), v_, [this, local](ModulePart p) { buckets_.arrive(local, p); }, &units_));
    }
  }

  void run() {
    const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank_)];
    for (size_t i = 0; i < actions.size(); ++i) {
      v_.begin_action(i);
      perform(actions[i]);
    }
    buckets_.finish();
    exchange_shared();
    update();
  }

 private:
  void update() {
    const OwnedShare share = largest_share(buckets_.buckets());
    const StateTypes types = s_.state();
    const auto bytes = static_cast<double>(share.elements * types.grad_bytes());
    if (s_.loss_scaled) look_for_overflows(bytes, static_cast<int>(share.pieces));
    v_.compute(0, bytes, static_cast<int>(share.pieces));
    norm();
    const bool divided_on_the_way = s_.loss_scaled && types.grad_bytes() == 2;  // by the update
    if ((s_.clips || s_.loss_scaled) && !divided_on_the_way) v_.compute(0, 2 * bytes, 1);
    const auto kernels = s_.optimizer == OptimizerKind::kAdamW ? 4 : 2;
    v_.compute(0, static_cast<double>(share.elements * types.update_bytes()), kernels);
    buckets_.gather();
    ProductWalk(s_, v_).end_step(static_cast<int64_t>(modules_of(s_.quantized_modules, parameters_).size()));
    if (s_.model.moe.enabled()) share_expert_loads();
  }

  // core/optim/grad_clip.h: any_overflow()
  void look_for_overflows(double bytes, int pieces) {
    constexpr int64_t kFlagBytes = 4;
    v_.compute(0, bytes, pieces);
    if (s_.dims.world > 1) v_.wait(v_.post(Axis::kWorld, Verb::kAllReduce, kFlagBytes));
  }

  void norm() {
    constexpr int64_t kNormBytes = 8;
    std::vector<Axis> axes;
    const auto shared_out = [&](bool expert) {
      return std::any_of(buckets_.buckets().begin(), buckets_.buckets().end(),
                         [&](const PlannedBucket& b) { return b.is_expert == expert && b.shards > 1; });
    };
    if (s_.shards(false) > 1) axes.push_back(s_.reduced_over(false));
    if (shared_out(true)) axes.push_back(s_.reduced_over(true));
    for (const Axis axis : {Axis::kTp, Axis::kEtp, Axis::kEp, Axis::kPp}) axes.push_back(axis);
    if (s_.dims.tp > 1) v_.compute(0, kNormBytes, 1);
    for (const Axis axis : axes) {
      if (s_.dims.size(axis) > 1) v_.wait(v_.post(axis, Verb::kAllReduce, kNormBytes));
    }
  }

  // core/model/expert_book.h: tokens of each expert, drops and losses, all layers.
  void share_expert_loads() {
    constexpr int64_t kExtras = 3, kNumberBytes = 8;
    const int64_t layers = s_.model.num_layers + s_.model.mtp_num_layers;
    const int64_t bytes = layers * (s_.model.moe.num_experts + kExtras) * kNumberBytes;
    for (const Axis axis : {Axis::kTp, Axis::kDp, Axis::kPp}) {
      if (s_.dims.size(axis) > 1) v_.wait(v_.post(axis, Verb::kAllReduce, bytes));
    }
  }

  std::vector<int> passes() const {
    std::vector<int> out;
    for (const int stage : schedule_.stages_of(rank_))
      out.push_back(schedule_.microbatches_of(stage / schedule_.chain_length));
    return out;
  }

  void perform(const Action& a) {
    if (a.has_forward()) {
      walk(a.stage).forward();
      if (!schedule_.is_last(a.stage)) send(a.stage + 1);
    }
    const int back = a.backward_stage();
    if (a.has_weight_grad()) buckets_.begin_pass(local_of_.at(back));
    if (a.has_input_grad() && a.has_weight_grad()) walk(back).backward();
    if (a.kind == ActionKind::kB) walk(back).input_grad();
    if (a.kind == ActionKind::kW) walk(back).weight_grad();
    if (a.has_input_grad() && !schedule_.is_first(back)) send(back - 1);
  }

  StageWalk& walk(int stage) { return *walks_[static_cast<size_t>(local_of_.at(stage))]; }

  // What a stage hands to its neighbour in the chain, when that is another rank's.
  void send(int to_stage) {
    if (schedule_.rank(to_stage) != rank_) v_.send(schedule_.rank(to_stage), s_.boundary_bytes(), false);
  }

  // core/parallel/shared_grads.h: a message to every other holder, parameters with the same holders together; where
  // they are shared out, of the rank's part.
  void exchange_shared() {
    std::map<std::vector<int>, int64_t> bytes;
    for (const PlannedParameter& parameter : parameters_) {
      if (parameter.pipeline_ranks.empty()) continue;
      bytes[parameter.pipeline_ranks] += parameter.elements * s_.state().grad_bytes() / s_.shards(parameter.is_expert);
    }
    for (const auto& [holders, together] : bytes) {
      for (const int holder : holders) {
        if (holder != rank_) v_.send(holder, together, true);
      }
    }
  }

  const StepShape& s_;
  const Schedule& schedule_;
  int rank_;
  StepVisitor& v_;
  std::vector<PlannedParameter> parameters_;
  BucketWalk buckets_;
  UnitWalk units_;
  std::map<int, int> local_of_;
  std::vector<std::unique_ptr<StageWalk>> walks_;
};

}  // namespace

PlannedExchange even_exchange(const StepShape& shape, int64_t logical_bytes) {
  const int64_t share = logical_bytes / shape.dims.ep, near = shape.ep_members_in_node();
  return {.logical = logical_bytes, .in_node = share * (near - 1), .across = share * (shape.dims.ep - near)};
}

Schedule plain_schedule(const StepShape& shape) {
  return make_schedule(
      "1f1b", {.num_ranks = shape.dims.pp,
               .num_microbatches = static_cast<int>(std::min<int64_t>(shape.num_microbatches, kMostMicrobatches + 1))});
}

void walk_step(const StepShape& shape, const Schedule& schedule, int pp_rank, StepVisitor& visitor) {
  RankWalk(shape, schedule, pp_rank, visitor).run();
}

}  // namespace ranklab
