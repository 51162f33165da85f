// Where settings come from, and which one wins: default < preset < file (earlier < later) < environment < --set <
// flag. Every source is first turned into a list of (key, text, origin); merge_config() applies them in that order, so
// each value can say where it came from. The preset may be named by any source: the highest one wins, and its numbers
// lie below every source's own model keys. Torch-free.
// Thread rule: pure functions.
#pragma once
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
  std::map<std::string, std::string> origins;  // one of each field; "default" and "preset NAME" when no source set it

  // Whether a source above the preset set this field.
  bool given(const std::string& key) const;
};

// The default sizes of the mesh are one layout, for 8 simulated ranks and two layers or more: once tp, pp, dp, ep or
// etp is given, the world is another one, or the ranks are GPUs, sizes that no source set are 1, as in Megatron-LM. So
// `--tp 8` alone is tp 8. Once dp is given and the world's size is not, the world is dp x cp x tp x pp. With products
// in few bits tp is 1 unless given: tiny models do not cut into whole blocks.
void settle_layout(TrainConfig& config, const std::map<std::string, std::string>& origins);

// `settings` rise in precedence. Ends with settle_layout(). Throws kInvalidArgument with the origin of a value its
// field refuses.
MergedConfig merge_config(const TrainConfig& defaults, std::span<const ConfigSetting> settings);

// resolve() whose refusal says where the settings it names came from.
RunPlan resolve(const TrainConfig& config, const std::map<std::string, std::string>& origins);

// The settings among "NAME=value" strings: RANKLAB_ + the key in upper case with _ for the dot. Other RANKLAB_
// variables are left alone unless they begin like a table of settings: then throws kInvalidArgument with the nearest
// name.
std::vector<ConfigSetting> environment_settings(std::span<const std::string> variables);
std::string environment_name(const std::string& key);
// This process's variables, for environment_settings().
std::vector<std::string> process_environment();

// "optim.lr=1e-3", as --set takes it. Throws kInvalidArgument with the nearest key.
ConfigSetting assignment_setting(const std::string& assignment);

// The key closest to `key`, or ""; what every "unknown key" message offers.
std::string nearest_config_key(const std::string& key);

}  // namespace ranklab
