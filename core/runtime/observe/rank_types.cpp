#include "core/runtime/observe/rank_types.h"

#include <string>
#include <vector>

#include "core/config/diloco/diloco_choice.h"
#include "core/model/causal_lm.h"
#include "core/spmd/type_checker.h"

namespace ranklab {

// In backward, a module's gradients arrive before the gradients of its parameters, and modules nest only in forward.
class RankTypes::Follower final : public ModuleHook, public UpdateWatch {
 public:
  Follower(StepContext& context, const RankPartitions& partitions, const std::shared_ptr<TypeReport>& report)
      : context_(context),
        checker_(partitions, {gradient_axis(context.plan), expert_gradient_axis(context.plan)},
                 context.ctx.global_rank(), report) {
    for (const Parameter* parameter : context.model.registry().parameters())
      checker_.add({.name = parameter->name,
                    .data = parameter->data,
                    .is_expert = parameter->is_expert,
                    .split = !parameter->partition.replicated(),
                    .pipeline_ranks = parameter->pipeline_ranks});
    context.model.registry().hooks().set(*this, true);
    if (UpdateWatches* updates = context.optimizer.update_watches()) updates->set(*this, true);
  }
  // A step whose update was skipped has reduced its gradients all the same.
  ~Follower() override {
    context_.model.registry().hooks().set(*this, false);
    if (UpdateWatches* updates = context_.optimizer.update_watches()) updates->set(*this, false);
    checker_.check_gradients();
    checker_.check_norm();
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& /*input*/) override {
    open_.push_back(path);
    checker_.enter(path, pass == ModulePass::kRecompute ? TypePhase::kBackward : TypePhase::kForward);
  }
  void after_forward(const std::string& /*path*/, ModulePass pass, const at::Tensor& /*output*/) override {
    open_.pop_back();
    if (!open_.empty())
      checker_.enter(open_.back(), pass == ModulePass::kRecompute ? TypePhase::kBackward : TypePhase::kForward);
  }
  void before_backward(const std::string& path, const at::Tensor& /*grad*/) override {
    checker_.enter(path, TypePhase::kBackward);
  }
  void after_backward(const std::string& /*path*/, const at::Tensor& /*grad*/) override {}

  void before_update(const UpdateView& /*update*/) override {}
  void after_update(const UpdateView& /*update*/) override {
    checker_.resume();
    checker_.enter("the update", TypePhase::kUpdate);
  }

 private:
  StepContext& context_;
  TypeChecker checker_;
  std::vector<std::string> open_;
};

RankTypes::RankTypes(StepContext& context, const RankPartitions& partitions, const std::shared_ptr<TypeReport>& report)
    : follower_(std::make_unique<Follower>(context, partitions, report)) {}
RankTypes::~RankTypes() = default;

}  // namespace ranklab
