// Where settings come from, and which one wins: default < preset < file (earlier < later) < environment < --set < flag.
// Every source first becomes a list of (key, text, origin); merge_config() applies them in that order, so each value
// knows its origin. Any source may name the preset: the highest one wins, and its values rank below the model keys of
// every source. Torch-free.
// Thread rule: pure functions.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct ConfigSetting {
  std::string key;     // "optim.lr"
  std::string text;    // as ConfigField::set takes it
  std::string origin;  // "run.toml:7", "environment RANKLAB_OPTIM_LR", "--set", "flag --lr"
};

struct MergedConfig {
  TrainConfig config;
  std::map<std::string, std::string> origins;  // one per field; "default" and "preset NAME" when no source set it

  // True when a source above the preset set this field.
  bool given(const std::string& key) const;
};

// The sizes of a layout, beside that of its world.
inline constexpr std::array kLayoutSizes = {"parallel.tp", "parallel.cp",  "parallel.pp", "parallel.dp",
                                            "parallel.ep", "parallel.etp", "parallel.sep"};

// The default mesh sizes form one layout, for 8 simulated ranks and two layers or more: once any size or that of the
// world is given, or the ranks are GPUs, sizes that no source set are 1, as in Megatron-LM. So `--tp 8` alone is tp 8,
// and `--world-size 8` dp 8. Once dp is given and the world size is not, the world is dp x cp x tp x pp. With quantized
// GEMMs tp is 1 unless given: tiny models do not split into whole blocks.
void settle_layout(TrainConfig& config, const std::map<std::string, std::string>& origins);

// `settings` are in ascending precedence. Ends with settle_batch(), settle_layout(), a --min-lr that fits --lr, and all
// of the training's data trained on where validation has data of its own.
// Throws kInvalidArgument with the origin of a value that its field refuses.
MergedConfig merge_config(const TrainConfig& defaults, std::span<const ConfigSetting> settings);

// True when the text contains the flag as a whole word ("--tp", not the beginning of "--tp-size").
bool mentions(const std::string& text, const std::string& flag);

// resolve() whose errors also name the origins of the settings that they mention, and of sizes that do not fit each
// other (core/base/size_error.h) recommend such that fit all others.
RunPlan resolve(const TrainConfig& config, const std::map<std::string, std::string>& origins);

// The settings among "NAME=value" strings: RANKLAB_ + the key in upper case with _ for the dot. Other RANKLAB_
// variables are ignored, except that a name that begins like a table of settings throws kInvalidArgument with the
// nearest name.
std::vector<ConfigSetting> environment_settings(std::span<const std::string> variables);
std::string environment_name(const std::string& key);
// This process's variables, for environment_settings().
std::vector<std::string> process_environment();

// "optim.lr=1e-3", as --set takes it. Throws kInvalidArgument with the nearest key.
ConfigSetting assignment_setting(const std::string& assignment);

}  // namespace ranklab
