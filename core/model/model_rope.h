// The rotary table that a model's settings describe: plain, in part, or stretched (rope_config.h). Thread rule: pure.
#pragma once
#include "core/nn/rope.h"
#include "core/spec/model_config.h"

namespace ranklab {

// Of all positions of a sequence; undefined where positions are learned.
RopeTable make_model_rope(const ModelConfig& config, const at::TensorOptions& options);

// ... of the layers with a window, where they have frequencies of their own; else the same.
RopeTable make_local_rope(const ModelConfig& config, const RopeTable& of_model, const at::TensorOptions& options);

}  // namespace ranklab
