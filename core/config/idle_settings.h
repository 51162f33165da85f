// Settings that were given but that this run never reads: a momentum for AdamW, a router for a dense model. They
// contradict nothing, and one settings file may serve many runs, so they are only reported; --strict refuses them.
// Adding one = a row in idle_settings.cpp. Torch-free. Thread rule: pure.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// What the run does with the model that the settings describe.
enum class ModelUse {
  kTrains,
  kTrainsIfAsked,  // if there are steps (--train-iters)
  kOnlyRuns,
};

// Returns lines such as "--sgd-momentum 0.9 has no effect: it applies to --optimizer sgd", one for each setting given
// by a flag, --set or an environment variable, and for each line of a file that differs from the default. `plan` is
// resolved from the configuration with these origins.
std::vector<std::string> idle_settings(const RunPlan& plan, const std::map<std::string, std::string>& origins,
                                       ModelUse use = ModelUse::kTrains);

}  // namespace ranklab
