// Configuration as TOML (https://toml.io, 1.0): the part of a key before the dot is its table, so that "optim.lr" is
// `lr` in [optim]. The written form reads back to the identical configuration. Torch-free.
// Thread rule: pure functions.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

// The settings in file order, with origin "NAME:LINE". Throws kBadFile for text that is not TOML, and kInvalidArgument
// for an unknown key (with the nearest) or a value of the wrong type; both name the line.
std::vector<ConfigSetting> parse_config_toml(const std::string& text, const std::string& name);
// Throws kIo when `path` cannot be read.
std::vector<ConfigSetting> read_config_toml(const std::string& path);

// Every setting as TOML. A setting whose value is "auto" (derived later) is written as a comment. A non-empty
// `remark(key)` is appended to the line as a comment; the keys in `left_out` are also written as comments.
std::string config_toml(const TrainConfig& config, const std::function<std::string(const std::string&)>& remark = {},
                        const std::vector<std::string>& left_out = {});
// The settings that a source gave, each with its origin as a comment.
std::string given_toml(const MergedConfig& merged, const std::vector<ConfigSetting>& given);

}  // namespace ranklab
