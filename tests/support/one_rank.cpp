#include "tests/support/one_rank.h"

#include "core/config/config_fields.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {

const TrainingRecord& OneRankRuns::of(const TrainConfig& config, const std::string& model) {
  TrainConfig alone = on_one_rank(config);
  // Nothing to one rank, but settings all the same.
  alone.context_split = {};
  alone.context_sizes = {};
  alone.overlap_grad_reduce = true;
  alone.gpus_per_node = 0;
  std::string key = model;
  for (const ConfigField& field : config_fields()) key += "\n" + field.get(alone);
  const auto known = runs_.find(key);
  if (known != runs_.end()) return known->second;
  return runs_.emplace(key, record_training(alone, {.data = uneven_batches()})).first->second;
}

}  // namespace ranklab
