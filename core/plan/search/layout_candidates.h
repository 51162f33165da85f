// The ways to distribute a model over a world: every size of every axis that divides, with a rough order among them
// from which a search decides what to plan (layout_search.h). What is shown to users comes from plans, never from here.
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
  std::string flags() const;  // as typed on a command line
  void apply(TrainConfig& config) const;
};

// What is fixed about a layout before a search; everything else is searched.
struct PinnedLayout {
  std::optional<int> tp = {}, pp = {}, cp = {}, ep = {}, dp = {}, virtual_stages = {}, zero_stage = {};
  std::optional<int64_t> micro_batch = {};
  std::optional<std::string> recompute = {}, schedule = {};

  void apply(LayoutChoice& choice) const;
  bool holds(const TrainConfig& config, const LayoutChoice& choice) const;
};

// A rough estimate of what a layout costs: enough to exclude layouts that cannot fit and to begin with those that are
// likely fast.
struct RoughCost {
  double step_s = 0;
  double bytes = 0;  // bytes per rank
};
RoughCost rough_cost(const TrainConfig& config, const HardwareProfile& profile, const LayoutChoice& choice);

// Chooses to reduce sharded gradients after each microbatch, except in pipelines, which have many microbatches.
void settle_grad_sync(const TrainConfig& config, LayoutChoice& choice);

// Whether several ranks have the same weights, so that a ZeRO stage has something to shard.
bool has_replicas(const TrainConfig& config, const LayoutChoice& choice);

// Layouts for `config`'s model, world and batch with microbatches of one sequence, ZeRO stage 1 (0 without replicas)
// and no recomputation, except for what is pinned.
std::vector<LayoutChoice> layout_candidates(const TrainConfig& config, const HardwareProfile& profile,
                                            const PinnedLayout& pinned = {});
// The layouts that differ from `choice` in one property.
std::vector<LayoutChoice> neighbours(const TrainConfig& config, const LayoutChoice& choice);

}  // namespace ranklab
