// Settings as JSON. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/config/train_config.h"

namespace ranklab {

// {"model.preset": "gpt_tiny", ...}: every setting by its key, with its own type; null if it is to be derived.
nlohmann::ordered_json settings_json(const TrainConfig& config);

}  // namespace ranklab
