// Which of a run's settings a checkpoint stores, and which of them a resumed run must share: always the model's shape;
// where training continues also seed, data and optimizer, since the rest of the loss curve depends on them. Layout,
// batch size, learning rate and number of steps may change. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/config/train_config.h"

namespace ranklab {

using SettingTexts = std::map<std::string, std::string>;  // by key, as in config_fields()

SettingTexts all_settings(const TrainConfig& config);
SettingTexts model_settings(const TrainConfig& config);  // settings that determine the model and its outputs
std::map<std::string, int64_t> layout_sizes(const RunPlan& plan);

// Writes settings, layout and the data's identity into a manifest.
void describe_run(const RunPlan& plan, const SettingTexts& data, CheckpointManifest& manifest);
// Throws kInvalidArgument with the saved value, the current value, and what to do. `folder` is used in messages.
void check_resumable(const CheckpointManifest& manifest, const RunPlan& plan, const SettingTexts& data,
                     const std::string& folder);
// The settings, by their flags, in which a model is not the saved one: what they are now, and as saved.
struct OtherModel {
  std::vector<std::string> now = {}, saved = {};
};
// For a model that is run and not trained: which settings make it another one. Dropped tokens, which only training
// knows, do not, nor does the stretching of rotary positions for longer texts.
OtherModel other_model_to_run(const SettingTexts& saved, const TrainConfig& config);
// Throws kInvalidArgument if the model is another one. `folder`: where the saved one is.
void require_same_model(const OtherModel& other, const std::string& folder, const std::string& fix);
// "; --rotary-base 500000, saved with 10000": the changes that --finetune may make to rotary positions; "" if there are
// none.
std::string other_positions(const CheckpointManifest& manifest, const TrainConfig& config);
// What to warn of when --finetune goes on with tokens that are not the checkpoint's; "" if they are, or if nobody
// knows. `tokenizer`: the hash of the data's, or "".
std::string other_tokens(const CheckpointManifest& manifest, const TrainConfig& config, const std::string& tokenizer);
// "; its products were onednn's and are mkl's from here on, ..." when a run resumes with another GEMM library; else "".
std::string other_gemm(const CheckpointManifest& manifest, const TrainConfig& config);
// "; settings that changed: --lr 0.001 (0.003)": the settings that a resumed run may change and that affect its loss
// curve.
std::string other_training(const CheckpointManifest& manifest, const TrainConfig& config);
// "step 40 (saved by dp 8, ZeRO 1)"
std::string origin_text(const CheckpointManifest& manifest);

}  // namespace ranklab
