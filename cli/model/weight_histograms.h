// The distribution of a model's weights by parameter group: tensors that differ only in their layer or expert form a
// group, as in the rows of `model info`. For a saved model its tensors are used, read one block at a time; for a
// preset, the values that training starts from, which follow from the seed. Cost: about 40 ns an element; memory of a
// block. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/common/style.h"
#include "core/base/numbers/value_spread.h"
#include "core/checkpoint/tensor_source.h"
#include "core/config/train_config.h"

namespace ranklab {

struct WeightGroup {
  std::string parameter = {};  // "layers.*.attention.qkv.weight"
  int64_t tensors = 0;
  ValueSpread spread = {};
};

// In the order of the model's modules.
std::vector<WeightGroup> saved_weight_groups(const TensorSource& tensors, const ModelConfig& model);
// Throws kInvalidArgument for models whose initial values would take too long to draw.
std::vector<WeightGroup> initial_weight_groups(const TrainConfig& config);

std::string histograms_text(const std::vector<WeightGroup>& groups, const Style& style);
nlohmann::ordered_json histograms_json(const std::vector<WeightGroup>& groups);

}  // namespace ranklab
