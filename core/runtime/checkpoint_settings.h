// What a checkpoint keeps of a run's settings, and which of them a run that goes on from it must share: the model's
// shape always; seed, data and optimizer where training goes on, since the rest of the curve depends on them. The
// layout, the batch size, the learning rate and the number of steps may be others. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/checkpoint/manifest.h"
#include "core/config/train_config.h"

namespace ranklab {

using SettingTexts = std::map<std::string, std::string>;  // by key, as config_fields() has them

SettingTexts all_settings(const TrainConfig& config);
SettingTexts model_settings(const TrainConfig& config);  // what shapes the model and its results
std::map<std::string, int64_t> layout_sizes(const RunPlan& plan);

// Settings, layout and data's identity into a manifest.
void describe_run(const RunPlan& plan, const SettingTexts& data, CheckpointManifest& manifest);
// Throws kInvalidArgument: saved and now, and what to do. `folder` is for messages.
void check_resumable(const CheckpointManifest& manifest, const RunPlan& plan, const SettingTexts& data,
                     const std::string& folder);
// "step 40 (saved by dp 8, ZeRO 1)"
// "; its products were onednn's and are mkl's from here on, ..." when a run goes on with another library, else "".
std::string other_gemm(const CheckpointManifest& manifest, const TrainConfig& config);
std::string origin_text(const CheckpointManifest& manifest);

}  // namespace ranklab
