// The ways to spread a model over a world: every size of every axis that divides, and a rough order among them, by
// which a search decides what to plan (layout_search.h). What is shown to people comes from plans, never from here.
// Torch-free. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

struct LayoutChoice {
  int tp = 1, pp = 1, cp = 1, ep = 1, virtual_stages = 1;
  int zero_stage = 1;
  int64_t micro_batch = 1;
  std::string recompute = "none";  // none, selective or full
  std::string schedule = "1f1b";
  GradSync grad_sync = GradSync::kStep;

  bool operator==(const LayoutChoice&) const = default;
  std::string flags() const;  // as one types them
  void apply(TrainConfig& config) const;
};

// What is settled of a layout before a search; what is not is searched.
struct PinnedLayout {
  std::optional<int> tp = {}, pp = {}, cp = {}, ep = {}, dp = {}, virtual_stages = {}, zero_stage = {};
  std::optional<int64_t> micro_batch = {};
  std::optional<std::string> recompute = {}, schedule = {};

  void apply(LayoutChoice& choice) const;
  bool holds(const TrainConfig& config, const LayoutChoice& choice) const;
};

// What a plan costs roughly: enough to leave out what cannot fit and to begin with what is likely fast.
struct RoughCost {
  double step_s = 0;
  double bytes = 0;  // of a rank
};
RoughCost rough_cost(const TrainConfig& config, const HardwareProfile& profile, const LayoutChoice& choice);

// Reduces sharded gradients after each microbatch, but in pipelines, whose microbatches are many.
void settle_grad_sync(const TrainConfig& config, LayoutChoice& choice);

// Whether several ranks have the same weights, so that a ZeRO stage shards anything.
bool has_replicas(const TrainConfig& config, const LayoutChoice& choice);

// Layouts of `config`'s model, world and batch with microbatches of one sequence, ZeRO stage 1 (0 without
// replicas) and no recomputation. But for what is pinned.
std::vector<LayoutChoice> layout_candidates(const TrainConfig& config, const HardwareProfile& profile,
                                            const PinnedLayout& pinned = {});
// Layouts that differ from it in one thing.
std::vector<LayoutChoice> neighbours(const TrainConfig& config, const LayoutChoice& choice);

}  // namespace ranklab
