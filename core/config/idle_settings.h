// Settings that somebody gave and that this run never looks at: a momentum for AdamW, a router for a dense model. They
// are no contradiction, and a file of settings may serve many runs, so that they are told and, with --strict, refused.
// Adding one = a row in idle_settings.cpp. Torch-free. Thread rule: pure.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// "--sgd-momentum 0.9 has no effect: it is of --optimizer sgd", for each setting that a flag, --set or a variable gave,
// and for each line of a file that says other than what would hold without it. `plan` is of that config.
std::vector<std::string> idle_settings(const RunPlan& plan, const std::map<std::string, std::string>& origins);

}  // namespace ranklab
