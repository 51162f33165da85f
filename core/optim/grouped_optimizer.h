// The common part of optimizers whose update treats each element on its own (AdamW, SGD, Lion): parameters with and
// without weight decay as two groups, their moments, and how the moments are saved and restored. Internal to
// core/optim. Thread rule: its rank's thread.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"

namespace ranklab {

class GroupedOptimizer : public Optimizer {
 public:
  void step(double lr) override { step_scaled(lr, 1); }
  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }
  std::vector<OptimizerState> states() const override {
    std::vector<OptimizerState> result;
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].add_states(moments_[g], moment_names_, result);
    return result;
  }
  int64_t updates() const override { return updates_; }
  void restored(int64_t updates) override {
    updates_ = updates;
    for (const ParamGroup& group : groups_) group.publish();
  }

 protected:
  // `moment_names` are the names in checkpoints; the derived optimizer creates the moments.
  GroupedOptimizer(std::array<ParamGroup, 2> groups, std::vector<const char*> moment_names)
      : groups_(std::move(groups)), moment_names_(std::move(moment_names)) {}

  std::array<ParamGroup, 2> groups_;
  std::array<GroupMoments, 2> moments_;  // per group
  int64_t updates_ = 0;

 private:
  std::vector<const char*> moment_names_;
};

}  // namespace ranklab
