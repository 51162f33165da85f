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
  std::map<std::string, std::string> origins;  // one per field; "default" or "preset NAME" when no source set it

  // True when a source above the preset set this field.
  bool given(const std::string& key) const;
};

// The sizes of a layout, apart from the world size.
inline constexpr std::array kLayoutSizes = {"parallel.tp", "parallel.cp",  "parallel.pp", "parallel.dp",
                                            "parallel.ep", "parallel.etp", "parallel.sep"};

// The default mesh sizes form one layout, for 8 simulated ranks and at least two layers. As soon as any size or the
// world size is given, or the ranks are GPUs, all sizes that no source set become 1, as in Megatron-LM. So `--tp 8`
// alone is tp 8, and `--world-size 8` is dp 8. If dp is given and the world size is not, the world size is dp x cp x tp
// x pp. With quantized GEMMs tp is 1 unless given, because tiny models do not split into whole blocks.
void settle_layout(TrainConfig& config, const std::map<std::string, std::string>& origins);

// Merges `settings`, which are in ascending precedence. Then calls settle_batch() and settle_layout(), lowers a default
// --min-lr that exceeds --lr, and sets validation_fraction to 0 where validation has its own data, so that all training
// data is trained on. Throws kInvalidArgument with the origin of a value that its field refuses.
MergedConfig merge_config(const TrainConfig& defaults, std::span<const ConfigSetting> settings);

// True when the text contains the flag as a whole word ("--tp", not the beginning of "--tp-size").
bool mentions(const std::string& text, const std::string& flag);

// resolve(), but its errors also name the origins of the settings that they mention, and errors about sizes that do not
// fit each other (core/base/size_error.h) recommend values that fit all other settings.
RunPlan resolve(const TrainConfig& config, const std::map<std::string, std::string>& origins);

// The settings among "NAME=value" strings: RANKLAB_ followed by the key in upper case, with _ in place of the dot.
// Other RANKLAB_ variables are ignored, except that a name which begins like a table of settings throws
// kInvalidArgument with the nearest name.
std::vector<ConfigSetting> environment_settings(std::span<const std::string> variables);
std::string environment_name(const std::string& key);
// This process's variables, for environment_settings().
std::vector<std::string> process_environment();

// Parses "optim.lr=1e-3", the form that --set takes. Throws kInvalidArgument with the nearest key.
ConfigSetting assignment_setting(const std::string& assignment);

}  // namespace ranklab
