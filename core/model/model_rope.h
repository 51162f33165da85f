// The RoPE tables of a model configuration: plain, partial or scaled (rope_config.h). Thread rule: pure.
#pragma once
#include "core/nn/rope.h"
#include "core/spec/model_config.h"

namespace ranklab {

// The table for all positions of a sequence; undefined without rotary positions.
RopeTable make_model_rope(const ModelConfig& config, const at::TensorOptions& options);

// The table of the sliding-window layers, if they have frequencies of their own; else `of_model`.
RopeTable make_local_rope(const ModelConfig& config, const RopeTable& of_model, const at::TensorOptions& options);

}  // namespace ranklab
