// What optimizers have in common whose update works on each element by itself (AdamW, SGD, Lion): parameters with and
// without weight decay as two groups, their moments, and how these are saved and restored. Internal to core/optim.
// Thread rule: its rank's thread.
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
  // The names of the moments are those in checkpoints; the derived optimizer makes the moments.
  GroupedOptimizer(std::array<ParamGroup, 2> groups, std::vector<const char*> moment_names)
      : groups_(std::move(groups)), moment_names_(std::move(moment_names)) {}

  std::array<ParamGroup, 2> groups_;
  std::array<GroupMoments, 2> moments_;  // per group
  int64_t updates_ = 0;

 private:
  std::vector<const char*> moment_names_;
};

}  // namespace ranklab
