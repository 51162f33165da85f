#include "tests/support/one_rank.h"

#include "core/config/settings/fields.h"
#include "tests/support/small_config.h"

namespace ranklab {

const TrainingRecord& OneRankRuns::of(const TrainConfig& config, const std::string& model) {
  const TrainConfig alone = config.diloco.enabled() ? reference_layout(config) : on_one_rank(config);
  std::string key = model;
  for (const ConfigField& field : config_fields()) key += "\n" + field.get(alone);
  const auto known = runs_.find(key);
  if (known != runs_.end()) return known->second;
  return runs_.emplace(key, record_training(alone, {.data = data_})).first->second;
}

}  // namespace ranklab
