// A model's counts as text, for everything that shows models: `model info`, --dry-run and the start banner. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <string>

#include "core/config/train_config.h"
#include "core/spec/module_table.h"

namespace ranklab {

// "gpt_tiny"; or "gpt_tiny, changed" if other sizes change the number of parameters; or "custom model" if depth, width
// and MLP all differ, because then the preset that a converted configuration started from says nothing about the model.
std::string model_name(const TrainConfig& config);
// "870k parameters"; with experts "671B parameters, 37.6B active (36.6B without the embedding)", and MTP separately
std::string counts_text(const ModelCounts& counts);
// "embedding 32.8k, norms 1.15k, attention 262k, ...", in the order of the forward pass
std::string parts_text(const ModelConfig& model);
// "4.00 KiB a token in fp32"; for latent attention also how much it saves
std::string cache_text(const RunPlan& plan);
int64_t kv_cache_bytes_per_token(const RunPlan& plan);
// The bytes that layers with linear attention or a state space keep for a sequence, independent of its length.
double remembered_bytes(const RunPlan& plan);

}  // namespace ranklab
