#include "core/runtime/outer_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/parallel/data/outer_update.h"
#include "core/runtime/record/trace_span.h"
#include "core/runtime/wrapped_optimizer.h"

namespace ranklab {
namespace {

class OuterOptimizer final : public WrappedOptimizer {
 public:
  OuterOptimizer(std::unique_ptr<RankOptimizer> optimizer, RankContext& ctx, const RunPlan& plan)
      : WrappedOptimizer(std::move(optimizer)), ctx_(ctx), rule_(plan.config.diloco) {
    std::map<Part, std::vector<at::Tensor>> weights;
    for (const OwnedState& state : inner().owned_state()) {
      std::vector<at::Tensor>& part = weights[part_of(*state.parameter, plan)];
      places_.push_back({part_of(*state.parameter, plan), part.size()});
      part.push_back(state.weight);
    }
    for (auto& [part, tensors] : weights) {
      Communicator& replicas = ctx.comm(part.second ? Axis::kEdpReplica : Axis::kDpReplica);
      parts_.emplace(part, OuterUpdate(std::move(tensors), replicas, ctx.device(), outer_rule()));
    }
  }

  void set_step(int64_t step) override {
    done_ = step;
    inner().set_step(step);
  }

  double finish_step(double lr) override {
    const double norm = inner().finish_step(lr);
    ++done_;
    if (const auto fragment = rule_.started_after(done_)) start(*fragment);
    if (const auto fragment = rule_.updated_after(done_)) update(*fragment);
    return norm;
  }

  bool makes_outer_updates() const override { return true; }

  std::vector<OwnedState> saved_state() override {
    std::vector<OwnedState> states = inner().owned_state();
    for (auto& [part, outer] : parts_) outer.settle();
    for (size_t i = 0; i < states.size(); ++i) {
      const auto& [part, index] = places_[i];
      const OuterUpdate& outer = parts_.at(part);
      OwnedState& state = states[i];
      state.of_replica = std::exchange(state.moments, {});
      state.of_replica.emplace_back(kReplicaWeight, state.weight);
      state.weight = outer.outer(index);
      state.moments.emplace_back("outer_momentum", outer.momentum(index));
      if (rule_.sync_delay > 0) state.moments.emplace_back("outer_gradient", outer.pending(index));
    }
    return states;
  }

 private:
  using Part = std::pair<int64_t, bool>;  // fragment, and whether of experts

  static Part part_of(const Parameter& parameter, const RunPlan& plan) {
    const DilocoConfig& rule = plan.config.diloco;
    // A user's own model may have more layers than the settings say.
    const int64_t layers = plan.config.model.num_layers, layer = std::min(parameter.unit.layer, layers - 1);
    switch (parameter.unit.place) {
      case ModelUnit::Place::kFirst:
        return {0, parameter.is_expert};
      case ModelUnit::Place::kLayer:
        return {rule.fragment_of_layer(layer, layers), parameter.is_expert};
      case ModelUnit::Place::kMtp:
      case ModelUnit::Place::kLast:
        break;
    }
    return {rule.fragments - 1, parameter.is_expert};
  }

  OuterRule outer_rule() const {
    return {.lr = rule_.outer_lr,
            .momentum = rule_.outer_momentum,
            .nesterov = rule_.outer_nesterov,
            .alpha = rule_.update_alpha,
            .keeps_pending = rule_.sync_delay > 0};
  }

  template <typename Call>
  void each_of(int64_t fragment, const Call& call) {
    for (const bool expert : {false, true})
      if (const auto part = parts_.find({fragment, expert}); part != parts_.end()) call(part->second);
  }

  void start(int64_t fragment) {
    const TraceSpan phase(ctx_, EventKind::kPhase, "outer start");
    each_of(fragment, [](OuterUpdate& part) { part.start(); });
  }

  void update(int64_t fragment) {
    const TraceSpan phase(ctx_, EventKind::kPhase, "outer update");
    inner().settle_parameters();
    each_of(fragment, [](OuterUpdate& part) { part.update(); });
    // All ranks of a replica gather their shards together, also those that have no part of this fragment.
    if (rule_.update_alpha < 1) inner().restored(inner().updates(), inner().skipped());
  }

  RankContext& ctx_;
  DilocoConfig rule_;
  std::map<Part, OuterUpdate> parts_;
  std::vector<std::pair<Part, size_t>> places_;  // for each state: its part, and its index there
  int64_t done_ = 0;                             // number of finished steps
};

}  // namespace

std::unique_ptr<RankOptimizer> with_outer_updates(std::unique_ptr<RankOptimizer> optimizer, RankContext& ctx,
                                                  const RunPlan& plan) {
  return std::make_unique<OuterOptimizer>(std::move(optimizer), ctx, plan);
}

}  // namespace ranklab
