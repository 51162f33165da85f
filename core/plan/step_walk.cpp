#include "core/plan/step_walk.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/pipeline/schedules.h"
#include "core/plan/planned_parameters.h"
#include "core/plan/stage_walk.h"
#include "core/runtime/pipeline_layout.h"

namespace ranklab {
namespace {

// Gradient buckets filling up during the last backward of each stage.
class BucketWalk {
 public:
  BucketWalk(const StepShape& shape, const std::vector<PlannedParameter>& parameters, std::vector<int> passes,
             StepVisitor& visitor)
      : shape_(shape), visitor_(visitor), parameters_(parameters), passes_(std::move(passes)) {
    buckets_ = planned_buckets(shape, parameters_, bucket_of_);
    for (const PlannedBucket& bucket : buckets_) pending_.push_back(bucket.parameters);
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
    for (const int ticket : tickets_) {
      if (ticket >= 0) visitor_.wait(ticket);
    }
  }

 private:
  Axis axis(const PlannedBucket& bucket) const {
    if (bucket.is_expert) return Axis::kEdp;
    return shape_.dims.cp > 1 ? Axis::kDpCp : Axis::kDp;
  }
  void start_ready() {
    for (; next_start_ < buckets_.size() && pending_[next_start_] == 0; ++next_start_) {
      const PlannedBucket& bucket = buckets_[next_start_];
      const int64_t bytes = bucket.elements * shape_.element_bytes();
      if (bucket.sum_over_tp) visitor_.wait(visitor_.post(Axis::kTp, Verb::kAllReduce, bytes));
      if (shape_.dims.size(axis(bucket)) > 1) {
        tickets_[next_start_] = visitor_.post(axis(bucket), Verb::kAllReduce, bytes);
      }
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
        buckets_(shape, parameters_, passes(), visitor) {
    const std::vector<int> stages = schedule_.stages_of(rank_);
    for (size_t i = 0; i < stages.size(); ++i) {
      const int local = static_cast<int>(i);
      local_of_[stages[i]] = local;
      walks_.push_back(std::make_unique<StageWalk>(s_, schedule_.part(stages[i]), v_,
                                                   [this, local](ModulePart p) { buckets_.arrive(local, p); }));
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
    double bytes = 0;
    for (const PlannedParameter& parameter : parameters_) {
      const double one = static_cast<double>(parameter.elements * s_.element_bytes());
      v_.compute(0, one, 1);
      bytes += one;
    }
    constexpr int64_t kNormBytes = 8;
    if (s_.dims.tp > 1) v_.compute(0, kNormBytes, 1);
    for (const Axis axis : {Axis::kTp, Axis::kEtp, Axis::kEp, Axis::kPp}) {
      if (s_.dims.size(axis) > 1) v_.wait(v_.post(axis, Verb::kAllReduce, kNormBytes));
    }
    if (s_.clips) v_.compute(0, 2 * bytes, 1);
    const bool adamw = s_.optimizer == OptimizerKind::kAdamW;
    v_.compute(0, (adamw ? 7 : 3) * bytes, adamw ? 4 : 2);
    if (s_.model.moe.enabled()) share_expert_loads();
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

  // core/parallel/shared_grads.h: a message to every other holder, parameters with the same holders together.
  void exchange_shared() {
    std::map<std::vector<int>, int64_t> bytes;
    for (const PlannedParameter& parameter : parameters_) {
      const std::vector<int> holders = holders_of(parameter);
      if (holders.size() > 1) bytes[holders] += parameter.elements * s_.element_bytes();
    }
    for (const auto& [holders, together] : bytes) {
      for (const int holder : holders) {
        if (holder != rank_) v_.send(holder, together, true);
      }
    }
  }

  std::vector<int> holders_of(const PlannedParameter& parameter) const {
    const int last = schedule_.chain_length - 1;
    const int own = schedule_.part(schedule_.stages_of(rank_)[static_cast<size_t>(parameter.local_stage)]);
    const bool tied = parameter.is_embedding && s_.embedding_at_both_ends();
    return ranks_holding(schedule_, [&](int part) { return part == own || (tied && (part == 0 || part == last)); });
  }

  const StepShape& s_;
  const Schedule& schedule_;
  int rank_;
  StepVisitor& v_;
  std::vector<PlannedParameter> parameters_;
  BucketWalk buckets_;
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
