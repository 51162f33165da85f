// The settings of a hybrid model that Megatron-Core's pattern (core/spec/megatron_pattern.h) stands for. Torch-free.
// Thread rule: a pure function.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/config/foreign_config.h"

namespace ranklab {

struct MegatronHybrid {
  std::vector<ConfigSetting> settings = {};
  int64_t layers = 0;                // without MTP modules
  std::vector<int64_t> stages = {};  // layers of each stage; empty: the pattern does not set them
};

// Parses "M-M*|M-M-/*-", the value of `flag`. `has_experts`: whether the model has experts. Throws kInvalidArgument for
// MTP modules with layers that ranklab's MTP modules do not have.
MegatronHybrid read_megatron_hybrid(const std::string& text, const std::string& flag, bool has_experts);

}  // namespace ranklab
