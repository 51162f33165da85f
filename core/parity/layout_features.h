// The layout choices of a run besides its split over dp, cp, tp and pp: one row per feature, with its choices. `parity
// --all` tries each choice on its own (every_layout.h), and tests combine them with everything else
// (tests/support/run_features.h). Torch-free. Thread rule: pure.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct LayoutChoice {
  std::string name;
  std::function<void(TrainConfig&)> change;
};

struct LayoutFeature {
  std::string name;
  std::vector<LayoutChoice> choices;
  bool (*matters)(const TrainConfig&);  // whether the choices have an effect on a run with this split
};

LayoutFeature zero_stage_choices();
LayoutFeature schedule_choices();
LayoutFeature context_exchange_choices();
LayoutFeature sequence_parallel_choices();
LayoutFeature expert_spread_choices();
std::vector<LayoutFeature> layout_features();

}  // namespace ranklab
